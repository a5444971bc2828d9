/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values as users write them in options, settings, sampling specs and
 * arguments of operations. A struct typed describes which texts are accepted,
 * and error messages take their wording from it. Pure functions.
 */
#ifndef FS_BASE_UTIL_TYPED_H
#define FS_BASE_UTIL_TYPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum typed_kind {
	TYPED_NUMBER, /* decimal digits */
	TYPED_OCTAL,  /* octal digits */
	/* Decimal digits, and K, M, G or T for powers of 1024, in either case,
	   with or without iB: 4096, 512k, 512MiB. */
	TYPED_SIZE,
	/* Seconds: decimal digits, and s, m or h: 90, 90s, 5m. */
	TYPED_TIME,
	TYPED_WORD, /* the value is the word's index */
};

struct typed {
	enum typed_kind kind;
	/* Numbers: the first and the last that is accepted. If `max` of a size
	   is UINT64_MAX - 1, messages mention no maximum. */
	uint64_t min, max;
	/* Numbers: no leading zeros, and a size has the unit KiB, MiB, GiB or
	   TiB, or none. For texts that become names. */
	bool strict;
	/* Words: "one|two", or a function that returns the word at an index,
	   and NULL past the end. */
	const char *words;
	const char *(*word_at)(size_t i);
};

/* Initializers of the usual types; no limit is above TYPED_SIZE_FROM(). */
#define TYPED_NUMBER_IN(low, high)                                             \
	{                                                                      \
		TYPED_NUMBER, .min = (low), .max = (high)                      \
	}
#define TYPED_STRICT_IN(low, high)                                             \
	{                                                                      \
		TYPED_NUMBER, .min = (low), .max = (high), .strict = true      \
	}
#define TYPED_SIZE_IN(low, high)                                               \
	{                                                                      \
		TYPED_SIZE, .min = (low), .max = (high)                        \
	}
#define TYPED_SIZE_FROM(low) TYPED_SIZE_IN(low, UINT64_MAX - 1)
#define TYPED_WORD_OF(list)                                                    \
	{                                                                      \
		TYPED_WORD, .words = (list)                                    \
	}

/* Parses a text, which need not end with a NUL. Returns false, and leaves *out
   alone, unless the text is accepted. */
bool typed_parse(const struct typed *type, const char *text, size_t size,
		 uint64_t *out);

/* Parses a string that ends with a NUL. */
bool typed_parse_string(const struct typed *type, const char *text,
			uint64_t *out);

enum { TYPED_EXPECTED_SIZE = 256 };

/*
 * Describes the accepted texts, as in "a whole number from 1 to 8", "a size
 * from 16MiB, such as 512MiB", "one of auto, os, process". Returns `out`.
 */
const char *typed_expected(const struct typed *type,
			   char out[TYPED_EXPECTED_SIZE]);

#endif
