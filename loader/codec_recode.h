/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JPEG once more, without loss: the same coefficients, and so the same pixels
 * in every decoder, but as baseline.h decodes them fastest: one scan, Huffman
 * tables made for it, no restart markers, with an index of entry points. One
 * thread. Input is hostile.
 */
#ifndef LOADER_CODEC_RECODE_H
#define LOADER_CODEC_RECODE_H

#include <stddef.h>
#include <stdint.h>

struct codec_recoder;

enum {
	RECODE_ROWS = 0, /* an entry for each row of MCUs */
	RECODE_NO_INDEX = -1,
};

struct recoded {
	uint8_t *bytes; /* malloc'ed, the caller's */
	size_t size;
	size_t index_size; /* of it; 0: there is none */
};

int codec_recoder_open(struct codec_recoder **out);
void codec_recoder_close(struct codec_recoder *r);

/*
 * `step` is RECODE_ROWS, RECODE_NO_INDEX or a number of MCUs. What cannot have
 * an index, such as CMYK, gets none. Comments, EXIF and other segments stay.
 * -EBADMSG: damaged, or of a kind that libjpeg does not copy.
 */
int codec_recode(struct codec_recoder *r, const uint8_t *bytes, size_t size,
		 int step, struct recoded *out);

/* Why the last call failed; valid until the next call. */
const char *codec_recoder_message(const struct codec_recoder *r);

#endif
