/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a JPEG that is cropped, resized and mirrored, in every quality:
 * what exact gives, the others give too. With -DFUZZ_MAIN a program that
 * replays files.
 */
#include "loader/codec.h"
#include "loader/frame.h"
#include "tests/fuzz/fuzz.h"

/* More pixels are right, and slow. */
enum { PIXELS_MAX = 1 << 18 };

static int run(struct frame *f, const struct pipeline_value *v,
	       enum quality quality, uint32_t side)
{
	uint32_t x = (uint32_t)(v->size % v->width);
	uint32_t y = (uint32_t)(v->size / 3 % v->height);
	struct rect part = { x, y, 1 + (v->width - x - 1) / 2,
			     1 + (v->height - y - 1) / 2 };
	struct band band = { .rows = 1 };
	bool mirror;
	int r = frame_start(f, v, quality, NULL);

	if (r)
		return r;
	if (v->size % 2)
		frame_mirror(f);
	frame_crop(f, &part);
	r = frame_resample(f, v->size % 3 == 0, (struct size){ side, side });
	frame_crop(f, &(struct rect){ 2, 3, side - 5, side - 4 });
	frame_mirror(f);
	while (!r && band.rows)
		r = frame_next(f, &band, &mirror);
	return r;
}

static void run_all(struct frame *f, const struct pipeline_value *v,
		    uint32_t side)
{
	int exact = run(f, v, QUALITY_EXACT, side);

	MUST(!exact || frame_message(f)[0]);
	MUST(!run(f, v, QUALITY_DEFAULT, side) || exact);
	MUST(!run(f, v, QUALITY_DRAFT, side) || exact);
}

/* The second is so small that drafts are reduced as far as they can be. */
static void run_sides(struct frame *f, const struct pipeline_value *v)
{
	run_all(f, v, 21);
	run_all(f, v, 6);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct codec *codec; /* kept, as a worker keeps its own */
	static struct frame *frame;
	uint8_t *bytes = malloc(size ? size : 1);
	struct codec_info info;

	MUST(bytes && (codec || !codec_open(&codec)));
	MUST(frame || !frame_open(&frame));
	memcpy(bytes, data, size);
	if (!codec_probe(codec, bytes, size, &info) &&
	    (uint64_t)info.width * info.height <= PIXELS_MAX)
		run_sides(frame,
			  &(struct pipeline_value){ bytes, size, BETON_MODE_JPG,
						    info.width, info.height });
	free(bytes);
	return 0;
}
