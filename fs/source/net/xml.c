/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/net/xml.h"

#include <stdint.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/utf8.h"

/* Returns the end of a tag's name in `tag`, which begins behind "<", if the
   name is `name`; prefixes of namespaces are skipped. */
static const char *match_name(const char *tag, const char *end,
			      const char *name)
{
	size_t size = strlen(name);
	const char *p = tag;

	while (p < end && *p != '>' && *p != ' ' && *p != '/' && *p != ':')
		p++;
	if (p < end && *p == ':')
		tag = p + 1;
	if ((size_t)(end - tag) <= size || memcmp(tag, name, size) != 0)
		return NULL;
	return tag + size;
}

/* Returns the first byte behind the opening tag, or NULL. */
static const char *find_element(const char *xml, const char *end,
				const char *name)
{
	const char *p = xml, *after;

	while ((p = memchr(p, '<', (size_t)(end - p)))) {
		after = match_name(++p, end, name);
		if (!after)
			continue;
		if (*after == '>')
			return after + 1;
		if (*after != ' ' && *after != '\t' && *after != '\n')
			continue;
		after = memchr(after, '>', (size_t)(end - after));
		return after && after[-1] != '/' ? after + 1 : NULL;
	}
	return NULL;
}

/* --- entities --- */

static const struct {
	const char *name;
	char value;
} entities[] = {
	{ "amp;", '&' },  { "lt;", '<' },    { "gt;", '>' },
	{ "quot;", '"' }, { "apos;", '\'' },
};

static int digit(char c, unsigned base)
{
	int v = -1;

	if (c >= '0' && c <= '9')
		v = c - '0';
	else if (base == 16 && (c | 32) >= 'a' && (c | 32) <= 'f')
		v = (c | 32) - 'a' + 10;
	return v;
}

/* Decodes a number behind "&#". Returns the bytes of the number, or 0. */
static size_t take_number(const char *p, const char *end, uint32_t *out)
{
	const char *from = p;
	unsigned base = 10;
	uint32_t v = 0;

	if (p < end && *p == 'x') {
		base = 16;
		p++;
	}
	for (; p < end && digit(*p, base) >= 0; p++) {
		if (v > 0x10ffff)
			return 0;
		v = v * base + (uint32_t)digit(*p, base);
	}
	if (p == end || *p != ';' || digit(p[-1], base) < 0)
		return 0;
	*out = v;
	return (size_t)(p + 1 - from);
}

/* Decodes an entity behind "&". Returns its bytes, or 0. */
static size_t take_entity(const char *p, const char *end, char out[4],
			  size_t *out_size)
{
	uint32_t c = 0;
	size_t size;

	if (p < end && *p == '#') {
		size = take_number(p + 1, end, &c);
		*out_size = c < ' ' || c == 0x7f ? 0 : utf8_put(c, out);
		return size && *out_size ? size + 1 : 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(entities); i++) {
		size = strlen(entities[i].name);
		if ((size_t)(end - p) >= size &&
		    !memcmp(p, entities[i].name, size)) {
			out[0] = entities[i].value;
			*out_size = 1;
			return size;
		}
	}
	return 0;
}

/* Decodes [p, end). Returns false if it is no text, or does not fit. */
static bool decode(const char *p, const char *end, char *out, size_t size)
{
	char bytes[4];
	size_t n, taken;

	while (p < end) {
		bytes[0] = *p;
		n = 1;
		taken = 1;
		if (*p == '&')
			taken = 1 + take_entity(p + 1, end, bytes, &n);
		if ((*p == '&' && taken == 1) || n >= size ||
		    (unsigned char)*p < ' ' || *p == 0x7f)
			return false;
		memcpy(out, bytes, n);
		p += taken;
		out += n;
		size -= n;
	}
	*out = '\0';
	return true;
}

bool xml_text(const char *xml, size_t size, const char *name, char *out,
	      size_t out_size)
{
	const char *end = xml + size, *from, *to;

	if (!out_size)
		return false;
	*out = '\0';
	from = size ? find_element(xml, end, name) : NULL;
	to = from ? memchr(from, '<', (size_t)(end - from)) : NULL;
	if (!to || end - to < 2 || to[1] != '/' ||
	    !match_name(to + 2, end, name))
		return false;
	while (from < to && strchr(" \t\r\n", *from))
		from++;
	while (from < to && strchr(" \t\r\n", to[-1]))
		to--;
	if (decode(from, to, out, out_size))
		return true;
	explicit_bzero(out, out_size);
	return false;
}
