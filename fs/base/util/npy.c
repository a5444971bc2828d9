/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/util/npy.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"

enum { PREFIX = 10, ALIGN = 64 };

size_t npy_header(char out[NPY_HEADER_MAX], const char *dtype, uint32_t ndim,
		  const uint64_t *shape)
{
	size_t used = PREFIX, total;

	used += (size_t)sprintf(
		out + used,
		"{'descr': '%s', 'fortran_order': False, 'shape': (", dtype);
	for (uint32_t i = 0; i < ndim; i++)
		used += (size_t)sprintf(out + used, "%llu,%s",
					(unsigned long long)shape[i],
					i + 1 < ndim ? " " : "");
	used += (size_t)sprintf(out + used, "), }");
	total = align_up(used + 1, ALIGN);
	memset(out + used, ' ', total - used);
	out[total - 1] = '\n';
	memcpy(out, "\x93NUMPY\x01\x00", 8);
	store16(out + 8, (uint16_t)(total - PREFIX));
	return total;
}

/* --- reading --- */

/* The rest of a header that is still to be parsed: the text of a Python dict.
 */
struct npy_text {
	const char *at;
	const char *end;
};

static void skip_blanks(struct npy_text *t)
{
	while (t->at < t->end && isspace((unsigned char)*t->at))
		t->at++;
}

/* If `word` comes next, skips it with the blanks around it. */
static bool take_word(struct npy_text *t, const char *word)
{
	size_t size = strlen(word);

	skip_blanks(t);
	if ((size_t)(t->end - t->at) < size || memcmp(t->at, word, size) != 0)
		return false;
	t->at += size;
	skip_blanks(t);
	return true;
}

static bool take_dtype(struct npy_text *t, char out[BETON_DTYPE_SIZE])
{
	size_t n = 0;

	if (!take_word(t, "'"))
		return false;
	for (; t->at < t->end && *t->at != '\''; t->at++) {
		if (n + 1 == BETON_DTYPE_SIZE ||
		    !isprint((unsigned char)*t->at))
			return false;
		out[n++] = *t->at;
	}
	out[n] = '\0';
	return take_word(t, "'");
}

static bool take_number(struct npy_text *t, uint64_t *out)
{
	uint64_t v = 0;

	if (t->at == t->end || !isdigit((unsigned char)*t->at))
		return false;
	for (; t->at < t->end && isdigit((unsigned char)*t->at); t->at++) {
		if (!mul_ok(v, 10, &v) ||
		    !add_ok(v, (uint64_t)(*t->at - '0'), &v))
			return false;
	}
	*out = v;
	return true;
}

static bool take_shape(struct npy_text *t, struct npy *out)
{
	bool more = take_word(t, "(");

	if (!more)
		return false;
	for (out->ndim = 0; !take_word(t, ")"); out->ndim++) {
		if (!more || out->ndim == BETON_MAX_NDIM ||
		    !take_number(t, &out->shape[out->ndim]))
			return false;
		more = take_word(t, ",");
	}
	return true;
}

static bool take_order(struct npy_text *t, struct npy *out)
{
	out->fortran = take_word(t, "True");
	return out->fortran || take_word(t, "False");
}

static bool take_dict(struct npy_text *t, struct npy *out)
{
	unsigned has = 0;
	bool more = take_word(t, "{");

	while (!take_word(t, "}")) {
		if (!more)
			return false;
		if (take_word(t, "'descr':") && take_dtype(t, out->dtype))
			has |= 1;
		else if (take_word(t, "'fortran_order':") && take_order(t, out))
			has |= 2;
		else if (take_word(t, "'shape':") && take_shape(t, out))
			has |= 4;
		else
			return false;
		more = take_word(t, ",");
	}
	return has == 7 && t->at == t->end;
}

bool npy_parse(const void *bytes, size_t size, struct npy *out)
{
	return npy_parse_any(bytes, size, out) && !out->fortran;
}

bool npy_parse_any(const void *bytes, size_t size, struct npy *out)
{
	const uint8_t *head = bytes;
	size_t start = PREFIX, length;
	struct npy_text text;

	if (size < PREFIX + 2 || memcmp(head, "\x93NUMPY", 6) != 0)
		return false;
	length = load16(head + 8);
	/* The header's length has 32 bits in formats 2.0 and 3.0. */
	if (head[6] > 1) {
		length = load32(head + 8);
		start += 2;
	}
	if (head[6] < 1 || head[6] > 3 || !range_ok(start, length, size))
		return false;
	text.at = (const char *)bytes + start;
	text.end = text.at + length;
	*out = (struct npy){ .offset = start + length };
	return take_dict(&text, out);
}
