/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a JPEG that is cropped, resized and mirrored, in every quality:
 * what exact gives, the others give too, and all but drafts give the same where
 * the whole image was kept. With -DFUZZ_MAIN a program that replays files.
 */
#include "loader/image/codec/codec.h"
#include "loader/run/transform/frame.h"
#include "tests/fuzz/fuzz.h"

/* More pixels are right, and slow. */
enum { PIXELS_MAX = 1 << 18, KEPT_MAX = 1 << 20 };

/* The result of decoding an image, and its cached form or NULL. */
struct run {
	enum quality quality;
	uint32_t side;
	struct value_store *stash;
	uint64_t sum;
};

static void add_band(struct run *run, const struct band *band, bool mirror)
{
	for (uint32_t y = 0; y < band->rows; y++)
		for (uint32_t x = 0; x < run->side - 5; x++)
			for (unsigned c = 0; c < IMAGE_CHANNELS; c++) {
				size_t at = mirror ? run->side - 6 - x : x;

				run->sum *= 31;
				run->sum += band->channel[c][y * band->stride +
							     at * band->step];
			}
}

static int run(struct frame *f, const struct pipeline_value *v, struct run *run)
{
	uint32_t x = (uint32_t)(v->size % v->width);
	uint32_t y = (uint32_t)(v->size / 3 % v->height);
	struct rect part = { x, y, 1 + (v->width - x - 1) / 2,
			     1 + (v->height - y - 1) / 2 };
	struct band band = { .rows = 1 };
	bool mirror;
	int r = frame_start(f, v, run->quality, NULL);

	if (r)
		return r;
	if (run->stash)
		frame_cache(f, run->stash, 0);
	if (v->size % 2)
		frame_mirror(f);
	frame_crop(f, &part);
	r = frame_resample(f, v->size % 3 == 0,
			   (struct size){ run->side, run->side });
	frame_crop(f, &(struct rect){ 2, 3, run->side - 5, run->side - 4 });
	frame_mirror(f);
	while (!r && band.rows) {
		r = frame_next(f, &band, &mirror);
		if (!r)
			add_band(run, &band, mirror);
	}
	return r;
}

/* The same without and with what is kept. */
static int run_twice(struct frame *f, const struct pipeline_value *v,
		     enum quality quality, uint32_t side)
{
	struct run plain = { quality, side, NULL, 0 };
	struct run kept = plain;
	int r = run(f, v, &plain);

	MUST(!value_store_open(KEPT_MAX, &kept.stash));
	MUST(run(f, v, &kept) == r);
	MUST(r || kept.sum == plain.sum);
	value_store_close(kept.stash);
	return r;
}

static void run_all(struct frame *f, const struct pipeline_value *v,
		    uint32_t side)
{
	int exact = run_twice(f, v, QUALITY_EXACT, side);
	struct run draft = { QUALITY_DRAFT, side, NULL, 0 };

	MUST(!exact || frame_message(f)[0]);
	MUST(!run_twice(f, v, QUALITY_DEFAULT, side) || exact);
	MUST(!run(f, v, &draft) || exact);
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
		run_sides(frame, &(struct pipeline_value){
					 bytes, size, BETON_MODE_JPG,
					 info.width, info.height, NULL });
	free(bytes);
	return 0;
}
