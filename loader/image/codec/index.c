/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/codec/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/jpeg/baseline.h"

enum {
	MARKER_APP0 = 0xe0,
	SEGMENT_HEAD = 4, /* marker and length */
	SOI_SIZE = 2,
	/* INDEX_AUTO has at most so many entries in a row, and no smaller
	   step. */
	PER_ROW = 4,
	STEP_MIN = 4,
	WHOLE_ROWS = 0, /* of baseline_index(): an entry per row of MCUs */
};

struct codec_indexer {
	struct baseline *baseline;
	uint8_t segment[ENTRY_SEGMENT];
};

int codec_indexer_open(struct codec_indexer **out)
{
	struct codec_indexer *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	if (baseline_open(&x->baseline)) {
		codec_indexer_close(x);
		return -ENOMEM;
	}
	*out = x;
	return 0;
}

void codec_indexer_close(struct codec_indexer *x)
{
	if (!x)
		return;
	baseline_close(x->baseline);
	free(x);
}

/* After JFIF's segment, which has to be the first. */
static size_t place_of(const uint8_t *bytes, size_t size)
{
	size_t at = SOI_SIZE;

	if (range_ok(at, SEGMENT_HEAD, size) && bytes[at] == 0xff &&
	    bytes[at + 1] == MARKER_APP0)
		at += 2 + ((size_t)bytes[at + 2] << 8 | bytes[at + 3]);
	return at;
}

/* Writes the content of the segment to x->segment. */
static int make(struct codec_indexer *x, const struct baseline_image *image,
		uint32_t step, size_t *made)
{
	struct entry_scan scan = baseline_scan(image);
	struct entry_index index;
	int r = baseline_index(x->baseline, image, step, &index);

	return r ? r : entry_emit(&index, &scan, x->segment, made);
}

/* Makes a coarser index if a fine one is too large for a segment. */
static int make_auto(struct codec_indexer *x,
		     const struct baseline_image *image, size_t *made)
{
	uint32_t step = (image->mcus_across + PER_ROW - 1) / PER_ROW;
	int r = make(x, image, (uint32_t)max_u64(step, STEP_MIN), made);

	return r == -E2BIG ? make(x, image, WHOLE_ROWS, made) : r;
}

static int make_segment(struct codec_indexer *x, const uint8_t *bytes,
			size_t size, uint32_t step, size_t *made)
{
	struct baseline_image image;
	struct entry_index index;
	int r = baseline_header(x->baseline, bytes, size, &image);

	if (r)
		return r;
	if (!baseline_stored_index(x->baseline, &image, &index))
		return -EEXIST;
	return step == INDEX_AUTO ? make_auto(x, &image, made)
				  : make(x, &image, step, made);
}

int codec_index(struct codec_indexer *x, const uint8_t *bytes, size_t size,
		uint32_t step, uint8_t **out, size_t *out_size)
{
	size_t at = place_of(bytes, size);
	size_t n = 0;
	int r = make_segment(x, bytes, size, step, &n);
	uint8_t *p;

	if (r)
		return r;
	p = malloc(size + SEGMENT_HEAD + n);
	if (!p)
		return -ENOMEM;
	*out = p;
	*out_size = size + SEGMENT_HEAD + n;
	memcpy(p, bytes, at);
	p += at;
	*p++ = 0xff;
	*p++ = ENTRY_MARKER;
	*p++ = (uint8_t)((n + 2) >> 8);
	*p++ = (uint8_t)(n + 2);
	memcpy(p, x->segment, n);
	memcpy(p + n, bytes + at, size - at);
	return 0;
}
