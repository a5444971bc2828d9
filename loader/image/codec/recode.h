/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rewrites a JPEG without loss: it keeps the coefficients, so every decoder
 * gives the same pixels. baseline.h decodes the result fastest. It has one
 * scan, Huffman tables of its own or of all JPEGs of a dataset, no restart
 * markers, and an index of entry points. One thread. Input is hostile.
 */
#ifndef LOADER_IMAGE_CODEC_RECODE_H
#define LOADER_IMAGE_CODEC_RECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/image/jpeg/huffman_best.h"

struct codec_recoder;

enum {
	RECODE_AUTO = 0, /* INDEX_AUTO of index.h */
	RECODE_NO_INDEX = -1,
};

struct recoded {
	uint8_t *bytes; /* malloc'ed, the caller's */
	size_t size;
	size_t index_size; /* size of the index; 0: none */
	bool own_codes;	   /* not the shared ones */
};

int codec_recoder_open(struct codec_recoder **out);
void codec_recoder_close(struct codec_recoder *r);

/*
 * Adds the symbols that codec_recode() would write. -EBADMSG as codec_recode().
 */
int codec_count(struct codec_recoder *r, const uint8_t *bytes, size_t size,
		struct symbols *sum);

/*
 * `shared` are codes of all symbols, which are used unless some of its own make
 * the JPEG smaller by more than a decoder's time to make tables is worth; NULL:
 * there are none. `step` is RECODE_AUTO, RECODE_NO_INDEX or a number of MCUs.
 * If a JPEG cannot have an index, such as CMYK, it gets none. Comments, EXIF
 * and other segments stay. -EBADMSG: damaged, or of a kind that libjpeg does
 * not copy.
 */
int codec_recode(struct codec_recoder *r, const uint8_t *bytes, size_t size,
		 int step, const struct symbols_codes *shared,
		 struct recoded *out);

/* The reason why the last call failed; valid until the next call. */
const char *codec_recoder_message(const struct codec_recoder *r);

#endif
