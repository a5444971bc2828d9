/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/entry_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/image/jpeg/baseline.h"
#include "tests/unit/encoded.h"
#include "tests/unit/planes.h"
#include "tests/unit/t.h"

enum { MARKER_SIZE = 4, SOI_SIZE = 2 };

static const struct kind COLOR = {
	.width = 200,
	.height = 120,
	.components = 3,
	.across = 2,
	.down = 2,
	.quality = 90,
	.noise = 80,
};

static struct baseline *baseline;

static struct baseline_image header(struct jpeg jpeg)
{
	struct baseline_image image = { 0 };

	CHECK(!baseline_header(baseline, jpeg.bytes, jpeg.size, &image));
	return image;
}

static struct entry_index make_index(const struct baseline_image *image,
				     uint32_t step)
{
	struct entry_index index;
	size_t size;
	void *copy;

	CHECK(!baseline_index(baseline, image, step, &index));
	size = index.n * sizeof(*index.entries);
	copy = malloc(size);
	CHECK(copy);
	index.entries = memcpy(copy, index.entries, size);
	return index;
}

/* The JPEG with a segment behind its first marker. */
static struct jpeg with_segment(struct jpeg jpeg, const uint8_t *segment,
				size_t size)
{
	struct jpeg out = { malloc(jpeg.size + size + MARKER_SIZE),
			    jpeg.size + size + MARKER_SIZE };
	uint8_t *p = out.bytes;

	CHECK(p && size <= ENTRY_SEGMENT);
	memcpy(p, jpeg.bytes, SOI_SIZE);
	p += SOI_SIZE;
	*p++ = 0xff;
	*p++ = ENTRY_MARKER;
	*p++ = (uint8_t)((size + 2) >> 8);
	*p++ = (uint8_t)(size + 2);
	memcpy(p, segment, size);
	memcpy(p + size, jpeg.bytes + SOI_SIZE, jpeg.size - SOI_SIZE);
	return out;
}

static struct jpeg with_index(struct jpeg jpeg, uint32_t step)
{
	static uint8_t segment[ENTRY_SEGMENT];
	struct baseline_image image = header(jpeg);
	struct entry_index index = make_index(&image, step);
	struct entry_scan scan = baseline_scan(&image);
	struct jpeg out;
	size_t size = 0;

	CHECK(!entry_emit(&index, &scan, segment, &size));
	out = with_segment(jpeg, segment, size);
	free((void *)(uintptr_t)index.entries);
	return out;
}

static void check_same(const struct entry_index *a, const struct entry_index *b)
{
	CHECK(a->n == b->n && a->step == b->step);
	for (uint32_t i = 0; i < a->n; i++) {
		CHECK(a->entries[i].byte == b->entries[i].byte);
		CHECK(a->entries[i].bit == b->entries[i].bit);
		for (int k = 0; k < 3; k++)
			CHECK(a->entries[i].dc[k] == b->entries[i].dc[k]);
	}
}

static void check_round_trip(const struct kind *kind, uint32_t step)
{
	struct jpeg jpeg = encode(kind);
	struct jpeg indexed = with_index(jpeg, step);
	struct baseline_image image = header(indexed);
	struct entry_index want = make_index(&image, step);
	struct entry_index got;

	CHECK(!baseline_stored_index(baseline, &image, &got));
	check_same(&want, &got);
	free((void *)(uintptr_t)want.entries);
	free(indexed.bytes);
	free(jpeg.bytes);
}

static void stored_entries_are_read_back(void)
{
	for (int sampling = 0; sampling < 5; sampling++)
		for (uint32_t step = 0; step < 9; step += 4) {
			struct kind kind = COLOR;

			kind.components = sampling == 4 ? 1 : 3;
			kind.across = 1 + sampling % 2;
			kind.down = 1 + sampling / 2 % 2;
			check_round_trip(&kind, step);
		}
}

static void extremes_are_stored(void)
{
	uint8_t end[] = { 0xff, 0xd9 };
	struct entry entries[3] = {
		{ 0 },
		{ ENTRY_DELTA_MAX, 7, { ENTRY_DC_MAX, ENTRY_DC_MIN, -1 } },
		{ 2 * ENTRY_DELTA_MAX, 0, { ENTRY_DC_MIN, 0, ENTRY_DC_MAX } },
	};
	struct entry_index index = { entries, 3, 5 };
	struct entry_scan scan = { end, sizeof(end), 11, 1, 3, 0 };
	static uint8_t segment[ENTRY_SEGMENT];
	struct entry got[3];
	size_t size = 0;

	CHECK(!entry_emit(&index, &scan, segment, &size));
	CHECK(size == 18 + 2 * 7);
	CHECK(entry_step(segment, size, &scan) == 5);
	CHECK(!entry_parse(segment, size, &scan, got));
	check_same(&index, &(struct entry_index){ got, 3, 5 });
	entries[2].byte++;
	CHECK(entry_emit(&index, &scan, segment, &size) == -E2BIG);
}

static void an_index_that_is_too_large_is_refused(void)
{
	struct kind kind = COLOR;
	static uint8_t segment[ENTRY_SEGMENT];

	kind.width = kind.height = 900;
	kind.across = kind.down = 1;
	kind.quality = 10;

	struct jpeg jpeg = encode(&kind);
	struct baseline_image image = header(jpeg);
	struct entry_scan scan = baseline_scan(&image);
	struct entry_index index = make_index(&image, 1);
	size_t size = 0;

	CHECK(entry_emit(&index, &scan, segment, &size) == -E2BIG);
	free((void *)(uintptr_t)index.entries);
	free(jpeg.bytes);
}

static int stored(struct jpeg jpeg)
{
	struct baseline_image image = header(jpeg);
	struct entry_index index;

	return baseline_stored_index(baseline, &image, &index);
}

static void every_byte_of_the_segment_matters(void)
{
	struct jpeg jpeg = encode(&COLOR);
	struct jpeg indexed = with_index(jpeg, 4);
	size_t from = SOI_SIZE + MARKER_SIZE;
	size_t to = from + indexed.size - jpeg.size - MARKER_SIZE;

	CHECK(!stored(indexed));
	for (size_t i = from; i < to; i++)
		for (int bit = 0; bit < 8; bit++) {
			indexed.bytes[i] ^= (uint8_t)(1 << bit);
			CHECK(stored(indexed) == -ENOENT);
			indexed.bytes[i] ^= (uint8_t)(1 << bit);
		}
	CHECK(!stored(indexed));
	free(indexed.bytes);
	free(jpeg.bytes);
}

/* As where a program rewrites the picture and keeps what it does not know. */
static void an_index_of_another_scan_is_noticed(void)
{
	struct kind kind = COLOR;
	struct jpeg jpeg = encode(&kind);
	struct jpeg indexed = with_index(jpeg, 0);
	size_t size = indexed.size - jpeg.size - MARKER_SIZE;
	struct jpeg other;
	struct jpeg mixed;

	kind.quality = 89;
	other = encode(&kind);
	mixed = with_segment(other, indexed.bytes + SOI_SIZE + MARKER_SIZE,
			     size);
	CHECK(stored(mixed) == -ENOENT);
	free(mixed.bytes);
	free(other.bytes);
	free(indexed.bytes);
	free(jpeg.bytes);
}

/* Data of the same size that differs where an entry points. */
static void data_at_an_entry_matters(void)
{
	struct jpeg jpeg = encode(&COLOR);
	struct jpeg indexed = with_index(jpeg, 0);
	struct baseline_image image = header(indexed);
	struct entry_index index;
	uint8_t *data;

	CHECK(!baseline_stored_index(baseline, &image, &index));
	data = indexed.bytes + (image.scan - indexed.bytes) +
	       index.entries[index.n - 1].byte;
	*data ^= 1;
	CHECK(stored(indexed) == -ENOENT);
	free(indexed.bytes);
	free(jpeg.bytes);
}

static void other_readers_pass_over_it(void)
{
	struct jpeg jpeg = encode(&COLOR);
	struct jpeg indexed = with_index(jpeg, 0);
	struct planes a;
	struct planes b;

	CHECK(planes_decode(jpeg.bytes, jpeg.size, &a));
	CHECK(planes_decode(indexed.bytes, indexed.size, &b));
	for (unsigned i = 0; i < a.n; i++) {
		struct baseline_plane part = {
			.samples = b.plane[i].samples,
			.stride = b.plane[i].stride,
			.width = COLOR.width / (i ? 2 : 1),
			.height = COLOR.height / (i ? 2 : 1),
		};

		CHECK(planes_agree(&a.plane[i], &part));
	}
	planes_free(&a);
	planes_free(&b);
	free(indexed.bytes);
	free(jpeg.bytes);
}

static void most_jpegs_have_none(void)
{
	struct kind kind = COLOR;
	struct jpeg jpeg = encode(&kind);

	CHECK(stored(jpeg) == -ENOENT);
	free(jpeg.bytes);
}

int main(void)
{
	CHECK(!baseline_open(&baseline));
	stored_entries_are_read_back();
	extremes_are_stored();
	an_index_that_is_too_large_is_refused();
	every_byte_of_the_segment_matters();
	an_index_of_another_scan_is_noticed();
	data_at_an_entry_matters();
	other_readers_pass_over_it();
	most_jpegs_have_none();
	baseline_close(baseline);
	return 0;
}
