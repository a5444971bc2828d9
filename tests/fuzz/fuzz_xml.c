/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an answer of S3 or STS. A text that is found is a string without
   control characters. */
#include "fs/source/net/xml.h"
#include "tests/fuzz/fuzz.h"

static void find(const char *xml, size_t size, const char *name,
		 size_t out_size)
{
	char out[64];

	memset(out, 'x', sizeof(out));
	if (xml_text(xml, size, name, out, out_size)) {
		MUST(strlen(out) < out_size);
		for (const char *p = out; *p; p++)
			MUST((unsigned char)*p >= ' ' || *p == '\t');
	} else if (out_size) {
		MUST(!*out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "Code", "Region", "a" };

	for (size_t i = 0; i < 3; i++) {
		find((const char *)data, size, names[i], 64);
		find((const char *)data, size, names[i], 3);
		find((const char *)data, size, names[i], 0);
	}
	return 0;
}
