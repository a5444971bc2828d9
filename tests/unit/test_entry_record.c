/* SPDX-License-Identifier: Apache-2.0 */
/* Crops with a record of entries: the same planes, or the same failure, as
   without it. */
#include "loader/image/jpeg/entry_record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/jpeg/baseline.h"
#include "tests/unit/encoded.h"
#include "tests/unit/t.h"

static struct baseline *plain;	   /* decodes without a record, */
static struct baseline *recording; /* with one */

static struct entry_record *new_record(const struct baseline_image *image)
{
	struct entry_scan scan = baseline_scan(image);
	struct entry_record *record = malloc(entry_record_size(&scan));

	CHECK(record);
	entry_record_init(record, &scan);
	CHECK(entry_record_is_of(record, &scan));
	return record;
}

static struct rect random_rect(struct rng *rng,
			       const struct baseline_image *image)
{
	uint32_t x = below(rng, image->width);
	uint32_t y = below(rng, image->height);

	return (struct rect){ x, y, 1 + below(rng, image->width - x),
			      1 + below(rng, image->height - y) };
}

static void check_plane(const struct baseline_plane *a,
			const struct baseline_plane *b)
{
	CHECK(a->x == b->x && a->y == b->y && a->width == b->width &&
	      a->height == b->height);
	for (uint32_t y = 0; y < a->height; y++)
		CHECK(!memcmp(a->samples + y * a->stride,
			      b->samples + y * b->stride, a->width));
}

/* Returns whether the crop is decodable. */
static bool check_crop(const struct baseline_image *image,
		       const struct rect *rect, struct entry_record *record)
{
	struct baseline_plane want[BASELINE_COMPONENTS];
	struct baseline_plane got[BASELINE_COMPONENTS];
	int a = baseline_decode(plain, image, rect, 1, NULL, want);
	int b = baseline_decode_recorded(recording, image, rect, 1, record,
					 got);

	CHECK(a == b);
	CHECK(!strcmp(baseline_message(plain), baseline_message(recording)));
	for (unsigned i = 0; !a && i < image->components; i++)
		check_plane(&want[i], &got[i]);
	return !a;
}

/* Returns how many of n random crops of a JPEG are decodable. */
static int check_crops(struct jpeg jpeg, struct rng *rng, int n)
{
	struct baseline_image whole, image;
	struct entry_record *record;
	int good = 0;

	if (baseline_header(plain, jpeg.bytes, jpeg.size, &whole) ||
	    whole.restart_interval)
		return 0;
	record = new_record(&whole);
	for (int i = 0; i < n; i++) {
		struct rect rect;

		baseline_reduce(&whole, 1u << below(rng, 4), &image);
		rect = random_rect(rng, &image);
		good += check_crop(&image, &rect, record);
	}
	free(record);
	return good;
}

static void crops_are_those_without_a_record(void)
{
	static const uint32_t sizes[][2] = {
		{ 1, 1 },   { 17, 33 },	  { 31, 15 },  { 64, 3 },
		{ 65, 90 }, { 210, 131 }, { 500, 40 }, { 130, 300 },
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
			struct jpeg jpeg = encode(&kind);

			CHECK(check_crops(jpeg, &rng, 40) == 40);
			free(jpeg.bytes);
		}
}

/* The skipped rows are intact, so a crop below damage fails each time. */
static void damage_is_found_as_without_a_record(void)
{
	struct kind kind = KIND_PHOTO;
	struct rng rng = { .key = 2 };
	int good = 0;

	for (int i = 0; i < 400; i++) {
		struct jpeg jpeg;

		kind.optimized = i % 2;
		jpeg = encode(&kind);
		for (uint32_t k = 1 + below(&rng, 2); k; k--)
			jpeg.bytes[below(&rng, (uint32_t)jpeg.size)] =
				(uint8_t)rng_next(&rng);
		if (i % 3 == 0)
			jpeg.size -= below(&rng, (uint32_t)jpeg.size / 2);
		good += check_crops(jpeg, &rng, 20);
		free(jpeg.bytes);
	}
	CHECK(good > 400 && good < 400 * 16);
}

static struct jpeg photo(struct baseline_image *image)
{
	struct jpeg jpeg = encode(&KIND_PHOTO);

	CHECK(!baseline_header(plain, jpeg.bytes, jpeg.size, image));
	return jpeg;
}

static void a_record_grows_downwards(void)
{
	struct baseline_image image;
	struct jpeg jpeg = photo(&image);
	struct entry_record *record = new_record(&image);
	struct rect rect = { 20, 0, 30, 40 };

	CHECK(!entry_record_rows(record));
	check_crop(&image, &rect, record);
	CHECK(entry_record_rows(record) == 3);
	rect.y = 120;
	check_crop(&image, &rect, record);
	CHECK(entry_record_rows(record) == 11);
	rect.y = 50;
	check_crop(&image, &rect, record);
	CHECK(entry_record_rows(record) == 11);
	rect.y = 160;
	check_crop(&image, &rect, record);
	CHECK(entry_record_rows(record) == image.mcus_down);
	free(record);
	free(jpeg.bytes);
}

/* Otherwise the caller decodes without adding entries. */
static void one_thread_at_a_time_adds_entries(void)
{
	struct baseline_image image;
	struct jpeg jpeg = photo(&image);
	struct entry_record *record = new_record(&image);
	struct rect rect = { 20, 30, 30, 40 };

	CHECK(!entry_record_begin(record, 1));
	CHECK(entry_record_begin(record, 0));
	CHECK(!entry_record_begin(record, 0));
	check_crop(&image, &rect, record);
	CHECK(!entry_record_rows(record));
	entry_record_end(record, 0);
	check_crop(&image, &rect, record);
	CHECK(entry_record_rows(record));
	free(record);
	free(jpeg.bytes);
}

static void entries_of_all_sizes_are_kept(void)
{
	static const struct entry entries[] = {
		{ 0, 0, { 0, 0, 0 } },
		{ (1 << 25) - 1, 7, { ENTRY_DC_MIN, ENTRY_DC_MAX, -1 } },
		{ 12345, 3, { 1, ENTRY_DC_MIN, ENTRY_DC_MAX } },
		{ 1, 1, { ENTRY_DC_MAX, 0, ENTRY_DC_MIN } },
	};
	struct baseline_image image;
	struct jpeg jpeg = photo(&image);
	struct entry_record *record = new_record(&image);

	for (size_t i = 0; i < ARRAY_LEN(entries); i++)
		entry_record_put(record, i, &entries[i]);
	for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
		struct entry e = entry_record_at(record, i);

		CHECK(e.byte == entries[i].byte && e.bit == entries[i].bit);
		CHECK(!memcmp(e.dc, entries[i].dc, sizeof(e.dc)));
	}
	free(record);
	free(jpeg.bytes);
}

/* A record for an index of this step, or NULL, and its entries; both to be
   freed. */
static struct entry_record *record_of_index(struct baseline_image *image,
					    uint32_t step,
					    struct entry_index *index)
{
	struct entry_scan scan = baseline_scan(image);
	struct entry_record *record;
	struct entry *copy;

	CHECK(!baseline_index(plain, image, step, index));
	copy = malloc(index->n * sizeof(*copy));
	CHECK(copy);
	index->entries = memcpy(copy, index->entries, index->n * sizeof(*copy));
	scan.index_step = step;
	if (!entry_record_size(&scan))
		return NULL;
	record = malloc(entry_record_size(&scan));
	CHECK(record);
	entry_record_init(record, &scan);
	return record;
}

/* The image is 32 MCUs wide; indices of very short or long steps are not kept. */
static void an_index_is_kept(void)
{
	static const struct {
		uint32_t step;
		uint32_t kept; /* step of the record; 0: there is none */
	} cases[] = { { 1, 0 }, { 3, 0 },   { 4, 4 },
		      { 5, 5 }, { 16, 16 }, { 17, 0 } };
	struct kind kind = { .width = 512,
			     .height = 300,
			     .components = 3,
			     .across = 2,
			     .down = 2,
			     .quality = 90,
			     .noise = 60 };
	struct rng rng = { .key = 7 };
	struct jpeg jpeg = encode(&kind);
	struct baseline_image image;

	CHECK(!baseline_header(plain, jpeg.bytes, jpeg.size, &image));
	CHECK(image.mcus_across == 32);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct entry_index index;
		struct entry_record *record =
			record_of_index(&image, cases[i].step, &index);

		CHECK((record ? record->step : 0) == cases[i].kept);
		if (record)
			entry_record_fill(record, &index);
		CHECK(!record || entry_record_is_whole(record));
		for (int k = 0; record && k < 40; k++) {
			struct rect rect = random_rect(&rng, &image);

			CHECK(check_crop(&image, &rect, record));
		}
		free((void *)(uintptr_t)index.entries);
		free(record);
	}
	free(jpeg.bytes);
}

/* An entry that the record has no bits for. */
static void a_hostile_index_is_not_kept(void)
{
	struct baseline_image image;
	struct jpeg jpeg = photo(&image);
	struct entry_index index;
	struct entry_record *record = record_of_index(&image, 4, &index);
	struct entry *entries = (struct entry *)(uintptr_t)index.entries;

	entries[index.n - 1].byte = 1 << 25;
	entry_record_fill(record, &index);
	CHECK(!entry_record_rows(record));
	entries[index.n - 1].byte--;
	entry_record_fill(record, &index);
	CHECK(entry_record_is_whole(record));
	free(entries);
	free(record);
	free(jpeg.bytes);
}

/* A record whose entries lie past the end, as if it were of another scan. */
static void no_entry_leads_past_the_end(void)
{
	struct baseline_plane planes[BASELINE_COMPONENTS];
	struct baseline_image image;
	struct jpeg jpeg = photo(&image);
	struct entry_record *record = new_record(&image);
	struct rect top = { 0, 0, image.width, 20 };
	struct rect rest = { 0, image.height - 9, image.width, 9 };

	CHECK(check_crop(&image, &top, record));
	CHECK(entry_record_rows(record) > 0);
	image.scan_size = 10;
	CHECK(baseline_decode_recorded(recording, &image, &rest, 1, record,
				       planes) == -ENOTSUP);
	CHECK(!strcmp(baseline_message(recording), "an index of another file"));
	free(record);
	free(jpeg.bytes);
}

static void another_scan_is_noticed(void)
{
	struct baseline_image image, other;
	struct jpeg jpeg = photo(&image);
	struct entry_record *record = new_record(&image);
	struct entry_scan scan = baseline_scan(&image);
	struct kind kind = KIND_PHOTO;
	struct jpeg another;

	scan.size--;
	CHECK(!entry_record_is_of(record, &scan));
	/* Even if the hash is the same by intent. */
	CHECK(record->size == image.scan_size);
	record->size--;
	scan.size++;
	CHECK(!entry_record_is_of(record, &scan));
	record->size++;
	CHECK(entry_record_is_of(record, &scan));
	kind.quality = 89;
	another = encode(&kind);
	CHECK(!baseline_header(plain, another.bytes, another.size, &other));
	scan = baseline_scan(&other);
	scan.size = image.scan_size;
	CHECK(!entry_record_is_of(record, &scan));
	scan = baseline_scan(&image);
	scan.mcus_across--;
	CHECK(!entry_record_is_of(record, &scan));
	scan.size = 1 << 25;
	CHECK(!entry_record_size(&scan));
	free(record);
	free(another.bytes);
	free(jpeg.bytes);
}

int main(void)
{
	CHECK(!baseline_open(&plain) && !baseline_open(&recording));
	crops_are_those_without_a_record();
	damage_is_found_as_without_a_record();
	a_record_grows_downwards();
	one_thread_at_a_time_adds_entries();
	entries_of_all_sizes_are_kept();
	an_index_is_kept();
	a_hostile_index_is_not_kept();
	no_entry_leads_past_the_end();
	another_scan_is_noticed();
	baseline_close(plain);
	baseline_close(recording);
	return 0;
}
