/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a JPEG: what the baseline decoder takes, libjpeg-turbo has no
 * doubt about, and decodes to the same planes, whole and in part, with an index
 * and without, at each size.
 */
#include <errno.h>

#include "fs/base/util/bytes.h"
#include "loader/image/jpeg/baseline.h"
#include "loader/image/jpeg/entry_index.h"
#include "loader/image/jpeg/entry_record.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/planes.h"

/* More pixels are right, and slow. */
enum { PIXELS_MAX = 1 << 18, MARGIN = 1 };

/* The middle of the image, moved about by `seed`. */
static struct rect rect_in(const struct baseline_image *image, size_t seed)
{
	uint32_t x = (uint32_t)(seed % image->width);
	uint32_t y = (uint32_t)(seed / 3 % image->height);

	return (struct rect){
		.x = x,
		.y = y,
		.width = 1 + (image->width - x - 1) / 2,
		.height = 1 + (image->height - y - 1) / 2,
	};
}

static void compare(const struct planes *want,
		    const struct baseline_plane got[BASELINE_COMPONENTS])
{
	for (unsigned i = 0; i < want->n; i++)
		MUST(planes_agree(&want->plane[i], &got[i]));
}

static void compare_part(struct baseline *b, const struct baseline_image *image,
			 const struct planes *want, size_t seed,
			 const struct entry_index *index)
{
	struct baseline_plane got[BASELINE_COMPONENTS];
	struct rect rect = rect_in(image, seed);

	MUST(!baseline_decode(b, image, &rect, MARGIN, index, got));
	compare(want, got);
}

/* An image that is accepted at full size is accepted at every reduced size. */
static void compare_reduced(struct baseline *b,
			    const struct baseline_image *whole,
			    const uint8_t *bytes, size_t size)
{
	struct baseline_plane got[BASELINE_COMPONENTS];
	struct baseline_image image;
	struct planes want;

	for (unsigned by = 2; by <= BASELINE_REDUCE_MAX; by *= 2) {
		baseline_reduce(whole, by, &image);

		struct rect all = { 0, 0, image.width, image.height };

		MUST(planes_reduced(bytes, size, by, &want));
		MUST(!baseline_decode(b, &image, &all, MARGIN, NULL, got));
		compare(&want, got);
		compare_part(b, &image, &want, size / by, NULL);
		planes_free(&want);
	}
}

/* Returns a new record of the image, or NULL if it cannot have one. */
static struct entry_record *make_record(const struct baseline_image *image)
{
	struct entry_scan scan = baseline_scan(image);
	struct entry_record *record;

	if (image->restart_interval)
		return NULL;
	record = malloc(entry_record_size(&scan));
	MUST(record);
	entry_record_init(record, &scan);
	return record;
}

/* Crops with a record fail where they fail without. */
static void try_recorded(struct baseline *b, const struct baseline_image *image,
			 size_t seed)
{
	struct baseline_plane got[BASELINE_COMPONENTS];
	struct entry_record *record = make_record(image);

	for (size_t i = 0; record && i < 4; i++) {
		struct rect rect = rect_in(image, seed * (i + 1) / 3);
		int r = baseline_decode(b, image, &rect, MARGIN, NULL, got);

		MUST(r == baseline_decode_recorded(b, image, &rect, MARGIN,
						   record, got));
	}
	free(record);
}

/* Crops with a record are those without. */
static void compare_recorded(struct baseline *b,
			     const struct baseline_image *image,
			     const struct planes *want, size_t seed)
{
	struct baseline_plane got[BASELINE_COMPONENTS];
	struct entry_record *record = make_record(image);

	for (size_t i = 0; record && i < 4; i++) {
		struct rect rect = rect_in(image, seed * (i + 1) / 3);

		MUST(!baseline_decode_recorded(b, image, &rect, MARGIN, record,
					       got));
		compare(want, got);
	}
	free(record);
}

static void decode(struct baseline *b, const struct baseline_image *image,
		   const uint8_t *bytes, size_t size)
{
	struct rect all = { 0, 0, image->width, image->height };
	struct rect part = rect_in(image, size);
	struct baseline_plane got[BASELINE_COMPONENTS];
	struct entry_index index;
	struct planes want;
	int r;

	/* The pixels are unspecified. */
	if (!baseline_stored_index(b, image, &index))
		baseline_decode(b, image, &part, MARGIN, &index, got);
	try_recorded(b, image, size);
	r = baseline_decode(b, image, &all, MARGIN, NULL, got);

	MUST(!r || r == -ENOTSUP);
	MUST(!r == !baseline_message(b)[0]);
	if (r)
		return;
	MUST(planes_decode(bytes, size, &want));
	compare(&want, got);
	compare_part(b, image, &want, size, NULL);
	compare_recorded(b, image, &want, size);
	compare_reduced(b, image, bytes, size);
	if (!baseline_index(b, image, (uint32_t)size % 5, &index)) {
		void *entries = malloc(index.n * sizeof(*index.entries));

		MUST(entries);
		index.entries = memcpy(entries, index.entries,
				       index.n * sizeof(*index.entries));
		compare_part(b, image, &want, size / 5, &index);
		free(entries);
	}
	planes_free(&want);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct baseline *baseline; /* kept, as a worker keeps its own */
	struct baseline_image image;
	int r;

	MUST(baseline || !baseline_open(&baseline));
	r = baseline_header(baseline, data, size, &image);
	MUST(!r || r == -ENOTSUP);
	MUST(!r == !baseline_message(baseline)[0]);
	if (!r && (uint64_t)image.width * image.height <= PIXELS_MAX)
		decode(baseline, &image, data, size);
	return 0;
}
