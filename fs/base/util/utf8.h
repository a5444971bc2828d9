/* SPDX-License-Identifier: Apache-2.0 */
/* Characters of UTF-8. */
#ifndef FS_BASE_UTIL_UTF8_H
#define FS_BASE_UTIL_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the bytes of the character at `s`; 0: it is not UTF-8. `size` is at
   least 1. */
static inline size_t utf8_length(const uint8_t *s, size_t size)
{
	/* The range of the second byte excludes encodings that are too long,
	   surrogates, and characters above U+10FFFF. */
	uint8_t low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
	uint8_t high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
	size_t n = s[0] < 0x80			 ? 1
		   : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
		   : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
		   : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
						 : 0;

	if (n > size || (n > 1 && (s[1] < low || s[1] > high)))
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* Returns the code point of a character of n bytes. */
static inline uint32_t utf8_code(const uint8_t *s, size_t n)
{
	uint32_t code = n > 1 ? s[0] & (0x7fU >> n) : s[0];

	for (size_t i = 1; i < n; i++)
		code = code << 6 | (s[i] & 0x3f);
	return code;
}

/* Returns whether a character of n bytes is a control character: C0, DEL or
   C1. */
static inline bool utf8_is_control(const uint8_t *s, size_t n)
{
	return n == 1 ? s[0] < ' ' || s[0] == 0x7f
		      : n == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

/* Writes a code point, and returns its bytes; 0: it is none. */
static inline size_t utf8_put(uint32_t code, char out[4])
{
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const uint8_t first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	for (size_t i = n; --i; code >>= 6)
		out[i] = (char)(0x80 | (code & 0x3f));
	out[0] = (char)(first[n] | code);
	return n;
}

/* Returns whether bytes are UTF-8 without a NUL. */
static inline bool utf8_is_text(const void *bytes, size_t size)
{
	const uint8_t *s = bytes;
	size_t n;

	for (size_t i = 0; i < size; i += n) {
		n = s[i] ? utf8_length(s + i, size - i) : 0;
		if (!n)
			return false;
	}
	return true;
}

#endif
