/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/baseline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/image/jpeg/entry_index.h"
#include "tests/unit/encoded.h"
#include "tests/unit/jpegs.h"
#include "tests/unit/photos.h"
#include "tests/unit/planes.h"
#include "tests/unit/t.h"

static struct baseline *baseline;

static struct baseline_image header(struct jpeg jpeg)
{
	struct baseline_image image = { 0 };

	CHECK(!baseline_header(baseline, jpeg.bytes, jpeg.size, &image));
	return image;
}

/* That a plane has all that the rectangle and the margin want of it. */
static void check_place(const struct baseline_component *c,
			const struct rect *rect, uint32_t margin,
			const struct baseline_plane *p)
{
	uint32_t left = rect->x / c->across;
	uint32_t top = rect->y / c->down;
	uint32_t right = (rect->x + rect->width + c->across - 1) / c->across;
	uint32_t bottom = (rect->y + rect->height + c->down - 1) / c->down;

	CHECK(p->x == (left > margin ? left - margin : 0));
	CHECK(p->y == (top > margin ? top - margin : 0));
	CHECK(p->x + p->width == min_u64(right + margin, c->width));
	CHECK(p->y + p->height == min_u64(bottom + margin, c->height));
}

static void check_rect(const struct baseline_image *image,
		       const struct planes *want, const struct rect *rect,
		       uint32_t margin, const struct entry_index *index)
{
	struct baseline_plane got[BASELINE_COMPONENTS];

	CHECK(!baseline_decode(baseline, image, rect, margin, index, got));
	for (unsigned i = 0; i < image->components; i++) {
		check_place(&image->component[i], rect, margin, &got[i]);
		CHECK(planes_agree(&want->plane[i], &got[i]));
	}
}

static struct rect random_rect(struct rng *rng,
			       const struct baseline_image *image)
{
	uint32_t x = below(rng, image->width);
	uint32_t y = below(rng, image->height);

	return (struct rect){ x, y, 1 + below(rng, image->width - x),
			      1 + below(rng, image->height - y) };
}

static void check_reduced(struct jpeg jpeg, const struct entry_index *index,
			  struct rng *rng, int n, unsigned by)
{
	struct baseline_image whole = header(jpeg), image;
	struct planes want;

	baseline_reduce(&whole, by, &image);
	CHECK(planes_reduced(jpeg.bytes, jpeg.size, by, &want));

	struct rect all = { 0, 0, image.width, image.height };

	check_rect(&image, &want, &all, 0, index);
	for (int i = 0; i < n; i++) {
		struct rect rect = random_rect(rng, &image);

		check_rect(&image, &want, &rect, below(rng, 4), index);
	}
	planes_free(&want);
}

/* Random crops of the full image and of its reduced forms. */
static void check_crops(struct jpeg jpeg, const struct entry_index *index,
			struct rng *rng, int n)
{
	check_reduced(jpeg, index, rng, n, 1);
	for (unsigned by = 2; by <= BASELINE_REDUCE_MAX; by *= 2)
		check_reduced(jpeg, index, rng, (n + 2) / 3, by);
}

/* The index is the decoder's until its next call: this one is ours. */
static struct entry_index copy_index(const struct entry_index *index)
{
	size_t size = index->n * sizeof(*index->entries);
	struct entry_index copy = *index;
	void *entries = malloc(size);

	CHECK(entries);
	copy.entries = memcpy(entries, index->entries, size);
	return copy;
}

static struct entry_index make_index(struct jpeg jpeg, uint32_t step)
{
	struct baseline_image image = header(jpeg);
	struct entry_index index;

	CHECK(!baseline_index(baseline, &image, step, &index));
	return copy_index(&index);
}

static void check_kind(const struct kind *kind, struct rng *rng, int n)
{
	static const uint32_t steps[] = { 0, 1, 3, 8 };
	struct jpeg jpeg = encode(kind);

	check_crops(jpeg, NULL, rng, n);
	for (size_t i = 0; i < ARRAY_LEN(steps) && !kind->restart; i++) {
		struct entry_index index = make_index(jpeg, steps[i]);

		check_crops(jpeg, &index, rng, n);
		free((void *)index.entries);
	}
	free(jpeg.bytes);
}

static void planes_are_those_of_libjpeg(void)
{
	static const uint32_t sizes[][2] = {
		{ 1, 1 },   { 2, 1 },	{ 1, 9 },     { 7, 8 },	  { 8, 7 },
		{ 16, 16 }, { 17, 33 }, { 31, 15 },   { 33, 48 }, { 64, 3 },
		{ 65, 90 }, { 5, 130 }, { 210, 131 },
	};
	struct rng rng = { .key = 1 };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		for (int sampling = 0; sampling < 8; sampling++) {
			struct kind kind = {
				.width = sizes[i][0],
				.height = sizes[i][1],
				.components = sampling & 4 ? 1 : 3,
				.across = 1 + (sampling & 1),
				.down = 1 + (sampling >> 1 & 1),
				.quality = 85,
				.noise = 60,
			};

			check_kind(&kind, &rng, 12);
		}
}

static void planes_of_all_qualities_are_those_of_libjpeg(void)
{
	struct rng rng = { .key = 2 };

	for (int quality = 1; quality <= 100; quality++) {
		struct kind kind = {
			.width = 90,
			.height = 50,
			.components = 3,
			.across = 1 + quality % 2,
			.down = 1 + quality / 2 % 2,
			.quality = quality,
			.optimized = quality % 3 == 0,
			.noise = quality % 5 * 63,
		};

		check_kind(&kind, &rng, 3);
	}
}

/* Noise at quality 100 has coefficients in every place of a block. */
static void full_blocks_are_those_of_libjpeg(void)
{
	struct rng rng = { .key = 3 };

	for (int optimized = 0; optimized < 2; optimized++) {
		struct kind kind = {
			.width = 160,
			.height = 160,
			.components = 3,
			.across = 2,
			.down = 2,
			.quality = 100,
			.optimized = optimized,
			.noise = 256,
		};

		check_kind(&kind, &rng, 10);
	}
}

static void restart_markers_are_followed(void)
{
	struct rng rng = { .key = 4 };

	for (unsigned interval = 1; interval < 20; interval += 2) {
		struct kind kind = {
			.width = 150,
			.height = 70,
			.components = 3,
			.across = 1 + interval % 2,
			.down = 1,
			.quality = 80,
			.restart = interval,
			.noise = 40,
		};

		check_kind(&kind, &rng, 20);
	}
}

/* The JPEG with fill bytes before each marker but the first. */
static struct jpeg filled(struct jpeg jpeg)
{
	struct jpeg out = { .bytes = malloc(4 * jpeg.size) };
	bool is_scan = false;

	CHECK(out.bytes);
	for (size_t i = 0; i < jpeg.size;) {
		bool is_marker = i && i + 1 < jpeg.size &&
				 jpeg.bytes[i] == 0xff && jpeg.bytes[i + 1];
		size_t n = 1;

		if (is_marker) {
			unsigned marker = jpeg.bytes[i + 1];

			memset(out.bytes + out.size, 0xff, 3);
			out.size += 3;
			n = is_scan ? 2
				    : 2u + (jpeg.bytes[i + 2] << 8) +
					      jpeg.bytes[i + 3];
			is_scan |= marker == 0xda;
		} else if (!i) {
			n = 2;
		}
		memcpy(out.bytes + out.size, jpeg.bytes + i, n);
		out.size += n;
		i += n;
	}
	return out;
}

static void fill_bytes_change_nothing(void)
{
	struct rng rng = { .key = 5 };

	for (unsigned interval = 0; interval < 12; interval += 3) {
		struct kind kind = {
			.width = 150,
			.height = 70,
			.components = 3,
			.across = 2,
			.down = 1 + interval % 2,
			.quality = 80,
			.restart = interval,
			.noise = 40,
		};
		struct jpeg plain = encode(&kind), jpeg = filled(plain);

		CHECK(jpeg.size > plain.size + 3 * 5);
		check_crops(jpeg, NULL, &rng, 10);
		free(jpeg.bytes);
		free(plain.bytes);
	}
}

static void other_kinds_are_not_taken(void)
{
	static const struct {
		const uint8_t *bytes;
		size_t size;
		int want;
	} kinds[] = {
		{ JPEG_GRAY, sizeof(JPEG_GRAY), 0 },
		{ JPEG_PROGRESSIVE, sizeof(JPEG_PROGRESSIVE), -ENOTSUP },
		{ JPEG_FULL, sizeof(JPEG_FULL), 0 },
		{ JPEG_HALF, sizeof(JPEG_HALF), 0 },
		{ JPEG_CMYK, sizeof(JPEG_CMYK), -ENOTSUP },
	};
	struct baseline_image image;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		CHECK(baseline_header(baseline, kinds[i].bytes, kinds[i].size,
				      &image) == kinds[i].want);
		CHECK(!baseline_message(baseline)[0] == !kinds[i].want);
	}
}

/* Chroma of half the sides becomes as large as luma, other chroma does not. */
static void reduced_images_are_smaller(void)
{
	static const struct {
		int across;
		int down;
		unsigned by;
		uint32_t size[2][2]; /* of luma, of chroma */
	} kinds[] = {
		{ 1, 1, 2, { { 45, 16 }, { 45, 16 } } },
		{ 2, 2, 1, { { 89, 31 }, { 45, 16 } } },
		{ 2, 2, 2, { { 45, 16 }, { 45, 16 } } },
		{ 2, 2, 8, { { 12, 4 }, { 12, 4 } } },
		{ 2, 1, 2, { { 45, 16 }, { 23, 16 } } },
		{ 1, 2, 4, { { 23, 8 }, { 23, 4 } } },
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct kind kind = {
			.width = 89,
			.height = 31,
			.components = 3,
			.across = kinds[i].across,
			.down = kinds[i].down,
			.quality = 50,
		};
		struct jpeg jpeg = encode(&kind);
		struct baseline_image image = header(jpeg), got;

		baseline_reduce(&image, kinds[i].by, &got);
		CHECK(got.width == kinds[i].size[0][0]);
		CHECK(got.height == kinds[i].size[0][1]);
		for (size_t c = 0; c < 3; c++) {
			const uint32_t *want = kinds[i].size[c > 0];

			CHECK(got.component[c].width == want[0]);
			CHECK(got.component[c].height == want[1]);
		}
		free(jpeg.bytes);
	}
}

static const struct kind SMALL = {
	.width = 70,
	.height = 60,
	.components = 3,
	.across = 2,
	.down = 2,
	.quality = 85,
	.noise = 50,
};

static void rectangles_must_lie_inside(void)
{
	static const struct rect outside[] = {
		{ 0, 0, 71, 60 }, { 0, 0, 70, 61 }, { 70, 0, 1, 1 },
		{ 0, 60, 1, 1 },  { 5, 5, 0, 1 },   { UINT32_MAX, 0, 2, 1 },
	};
	struct baseline_plane unused[BASELINE_COMPONENTS];
	struct jpeg jpeg = encode(&SMALL);
	struct baseline_image image = header(jpeg);

	for (size_t i = 0; i < ARRAY_LEN(outside); i++)
		CHECK(baseline_decode(baseline, &image, &outside[i], 1, NULL,
				      unused) == -ERANGE);
	free(jpeg.bytes);
}

/* A block of the exact size, so that sanitizers see any byte past it. */
static struct jpeg exact_copy(struct jpeg jpeg, size_t size)
{
	struct jpeg copy = { malloc(size ? size : 1), size };

	CHECK(copy.bytes);
	memcpy(copy.bytes, jpeg.bytes, size);
	return copy;
}

/*
 * Decodes damaged data. If our decoder accepts it, libjpeg does, too, without a
 * warning, except for the end marker: libjpeg misses it, and we do not read it.
 */
static bool check_damaged(struct jpeg jpeg)
{
	struct baseline_plane got[BASELINE_COMPONENTS];
	struct baseline_image image;
	struct planes want;
	int r = baseline_header(baseline, jpeg.bytes, jpeg.size, &image);

	CHECK(!r || r == -ENOTSUP);
	if (r || (uint64_t)image.width * image.height > 1 << 20)
		return false;

	struct rect all = { 0, 0, image.width, image.height };

	r = baseline_decode(baseline, &image, &all, 1, NULL, got);
	CHECK(!r || r == -ENOTSUP);
	CHECK(!r == !baseline_message(baseline)[0]);
	if (r)
		return false;
	CHECK(planes_decode(jpeg.bytes, jpeg.size, &want));
	for (unsigned i = 0; i < image.components; i++)
		CHECK(planes_agree(&want.plane[i], &got[i]));
	planes_free(&want);
	return true;
}

static void an_early_end_is_noticed(void)
{
	struct jpeg jpeg = encode(&SMALL);

	for (size_t n = 0; n + 3 < jpeg.size; n++) {
		struct jpeg part = exact_copy(jpeg, n);

		CHECK(!check_damaged(part));
		free(part.bytes);
	}
	free(jpeg.bytes);
}

static void damaged_jpegs_fall_back_to_libjpeg(void)
{
	struct rng rng = { .key = 5 };
	struct kind kind = SMALL;
	int taken = 0;

	for (int i = 0; i < 6000; i++) {
		kind.restart = i % 3 ? 0 : 3;
		kind.optimized = i % 2;

		struct jpeg jpeg = encode(&kind);
		struct jpeg bad = exact_copy(jpeg, jpeg.size);

		for (uint32_t k = 1 + below(&rng, 3); k; k--)
			bad.bytes[below(&rng, (uint32_t)bad.size)] =
				(uint8_t)rng_next(&rng);
		taken += check_damaged(bad);
		free(bad.bytes);
		free(jpeg.bytes);
	}
	CHECK(taken > 100);
}

/* Two bits for a block is the least there can be. */
static void large_sizes_need_bytes(void)
{
	struct kind kind = SMALL;
	struct baseline_image image;

	kind.quality = 1;
	kind.noise = 0;

	struct jpeg jpeg = encode(&kind);
	uint8_t *size = memchr(jpeg.bytes, 0xc0, jpeg.size);

	while (size[-1] != 0xff)
		size = memchr(size + 1, 0xc0, jpeg.size);
	memset(size + 4, 0xf0, 4);
	CHECK(baseline_header(baseline, jpeg.bytes, jpeg.size, &image) ==
	      -ENOTSUP);
	CHECK(strstr(baseline_message(baseline), "too few bytes"));
	free(jpeg.bytes);
}

/* An index of damaged entries is refused, or gives what it gives. */
static void any_index_is_harmless(void)
{
	struct jpeg jpeg = encode(&SMALL);
	struct baseline_image image = header(jpeg);
	struct rng rng = { .key = 6 };

	for (int i = 0; i < 3000; i++) {
		struct entry_index index = make_index(jpeg, 1 + below(&rng, 4));
		uint8_t *bytes = (uint8_t *)(uintptr_t)index.entries;
		size_t size = index.n * sizeof(*index.entries);
		struct rect rect = random_rect(&rng, &image);
		struct baseline_plane got[BASELINE_COMPONENTS];

		for (uint32_t k = 1 + below(&rng, 20); k; k--)
			bytes[below(&rng, (uint32_t)size)] =
				(uint8_t)rng_next(&rng);
		baseline_decode(baseline, &image, &rect, 1, &index, got);
		index.n--;
		CHECK(baseline_decode(baseline, &image, &rect, 1, &index,
				      got) == -ENOTSUP);
		free(bytes);
	}
	free(jpeg.bytes);
}

static void an_index_needs_a_scan_without_restarts(void)
{
	struct kind kind = SMALL;
	struct entry_index index;

	kind.restart = 4;

	struct jpeg jpeg = encode(&kind);
	struct baseline_image image = header(jpeg);

	CHECK(baseline_index(baseline, &image, 0, &index) == -ENOTSUP);
	free(jpeg.bytes);
}

struct photo_crops {
	struct rng rng;
	int n; /* of each photograph */
};

static void check_photo(void *arg, const uint8_t *bytes, size_t size)
{
	struct jpeg jpeg = { (uint8_t *)(uintptr_t)bytes, size };
	struct photo_crops *crops = arg;
	struct baseline_image image;
	struct entry_index index;

	if (baseline_header(baseline, jpeg.bytes, jpeg.size, &image))
		return;
	check_crops(jpeg, NULL, &crops->rng, crops->n);
	for (uint32_t step = 0; step < 10; step += 4) {
		if (baseline_index(baseline, &image, step, &index))
			break;
		index = copy_index(&index);
		check_crops(jpeg, &index, &crops->rng, crops->n);
		free((void *)index.entries);
	}
}

/* BETON_CROPS in the environment: of all photographs, not one in 25. */
static void planes_of_photographs_are_those_of_libjpeg(void)
{
	const char *n = getenv("BETON_CROPS");
	struct photo_crops crops = { { .key = 7 }, n ? atoi(n) : 12 };

	photos_each(n ? 1 : 25, check_photo, &crops);
}

int main(void)
{
	CHECK(!baseline_open(&baseline));
	planes_are_those_of_libjpeg();
	planes_of_all_qualities_are_those_of_libjpeg();
	full_blocks_are_those_of_libjpeg();
	restart_markers_are_followed();
	fill_bytes_change_nothing();
	other_kinds_are_not_taken();
	reduced_images_are_smaller();
	rectangles_must_lie_inside();
	an_early_end_is_noticed();
	damaged_jpegs_fall_back_to_libjpeg();
	large_sizes_need_bytes();
	any_index_is_harmless();
	an_index_needs_a_scan_without_restarts();
	planes_of_photographs_are_those_of_libjpeg();
	baseline_close(baseline);
	baseline_close(NULL);
	return 0;
}
