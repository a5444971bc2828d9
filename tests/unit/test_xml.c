/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/net/xml.h"

#include <string.h>

#include "fs/base/util/bytes.h"
#include "tests/unit/t.h"

/* The text of <a>, or "!". */
static const char *text_of(const char *xml)
{
	static char out[16];

	if (xml_text(xml, strlen(xml), "a", out, sizeof(out)))
		return out;
	CHECK(!*out);
	return "!";
}

static void elements_have_texts(void)
{
	static const char *const table[][2] = {
		{ "<a>x</a>", "x" },
		{ "<?xml version=\"1.0\"?>\n<e><b>y</b><a>x</a></e>", "x" },
		{ "<e><ab>y</ab><a b='c'>x</a></e>", "x" },
		{ "<n:e><n:a>x</n:a></n:e>", "x" },
		{ "<a></a>", "" },
		{ "<a> x y\n</a>", "x y" },
		{ "<a>1</a><a>2</a>", "1" },
		{ "<a>&amp;&lt;&gt;&quot;&apos;</a>", "&<>\"'" },
		{ "<a>&#65;&#x42;&#xe9;&#x20ac;&#x1F600;</a>",
		  "AB\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "<a>123456789012345</a>", "123456789012345" },
		{ "<a>1234567890123456</a>", "!" },
		{ "<a>12345678901234&#xe9;</a>", "!" },
		{ "<a><b>x</b></a>", "!" },
		{ "<a><!-- x --></a>", "!" },
		{ "<a><![CDATA[x]]></a>", "!" },
		{ "<a>x</b>", "!" },
		{ "<a>x", "!" },
		{ "<a>x<", "!" },
		{ "<a", "!" },
		{ "<a/>", "!" },
		{ "<a b='c'/>", "!" },
		{ "<a>&x;</a>", "!" },
		{ "<a>&</a>", "!" },
		{ "<a>&#;</a>", "!" },
		{ "<a>&#x;</a>", "!" },
		{ "<a>&#0;</a>", "!" },
		{ "<a>&#10;</a>", "!" },
		{ "<a>&#xD800;</a>", "!" },
		{ "<a>&#x110000;</a>", "!" },
		{ "<a>&#99999999999999999999;</a>", "!" },
		{ "<a>x\ny</a>", "!" },
		{ "", "!" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (strcmp(text_of(table[i][0]), table[i][1]))
			fprintf(stderr, "%s: %s\n", table[i][0],
				text_of(table[i][0]));
		CHECK(!strcmp(text_of(table[i][0]), table[i][1]));
	}
}

int main(void)
{
	elements_have_texts();
	return 0;
}
