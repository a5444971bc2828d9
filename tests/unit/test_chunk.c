/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/cache/chunk.h"
#include "fs/data/dataset/value.h"
#include "tests/unit/made.h"

enum { FRAME = ARENA_FRAME, SAMPLES = 40 };

static struct arena *arena_of(uint32_t frames)
{
	struct arena *a;

	CHECK(!arena_open((uint64_t)frames * FRAME, &a));
	return a;
}

static uint64_t frames_of_extents(const struct chunk *g)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < g->num_extents; i++)
		n += g->extents[i].frames;
	return n;
}

/* Whether all of a range is in one extent. */
static bool covers(const struct chunk *g, uint64_t off, uint64_t size)
{
	for (uint32_t i = 0; i < g->num_extents; i++) {
		if (off >= g->extents[i].off &&
		    off + size <=
			    g->extents[i].off +
				    (uint64_t)g->extents[i].frames * FRAME)
			return true;
	}
	return false;
}

static uint8_t *records_of(struct dataset *ds, uint64_t first, uint64_t n)
{
	uint8_t *records = malloc(n * ds->format.itemsize);

	CHECK(records && !dataset_records(ds, first, n, records));
	return records;
}

static void every_value_is_covered_in_whole_pages(void)
{
	struct dataset *ds = made_open(SAMPLES, NULL);
	uint8_t *records = records_of(ds, 0, SAMPLES);
	struct chunk g = { .num_extents = 9 };
	struct value v;

	for (uint64_t first = 0; first < SAMPLES; first += 8) {
		chunk_locate(&g, ds, records + first * ds->format.itemsize,
			     first, 8);
		CHECK(g.num_extents && g.num_extents <= CHUNK_EXTENTS);
		CHECK(g.num_frames == frames_of_extents(&g));
		CHECK(g.extents[0].off % FRAME == 0);
		for (uint64_t i = first; i < first + 8; i++) {
			for (unsigned f = MADE_JPG; f < MADE_FIELDS; f++) {
				CHECK(!dataset_value_at(ds, f, i, &v));
				CHECK(!v.size || covers(&g, v.off, v.size));
			}
		}
	}
	free(records);
	dataset_close(ds);
}

/* A record of two values that can be anywhere, and some that are nowhere. */
static void put_values(const struct dataset *ds, uint8_t *record,
		       uint64_t bytes_off, uint64_t json_off, uint64_t size)
{
	const struct field *fields = ds->format.fields;

	memset(record, 0, ds->format.itemsize);
	store64(record + fields[MADE_BYTES].meta_off, bytes_off);
	store64(record + fields[MADE_BYTES].meta_off + 8, size);
	store64(record + fields[MADE_JSON].meta_off, json_off);
	store64(record + fields[MADE_JSON].meta_off + 8, size);
}

static void damage_is_left_out(void)
{
	struct dataset *ds = made_open(SAMPLES, NULL);
	uint8_t *record = records_of(ds, 0, 1);
	struct chunk g = { .num_extents = 0 };

	put_values(ds, record, UINT64_MAX, ds->format.file_size, 1);
	chunk_locate(&g, ds, record, 0, 1);
	CHECK(!g.num_extents && !g.num_frames);
	put_values(ds, record, ds->format.first_page, 0, UINT64_MAX);
	chunk_locate(&g, ds, record, 0, 1);
	CHECK(!g.num_extents && !g.num_frames);
	free(record);
	dataset_close(ds);
}

/* Values that are scattered over a file need more pieces than a chunk has. */
static void scattered_values_are_left_out(void)
{
	struct dataset *ds = made_open(SAMPLES, NULL);
	uint64_t itemsize = ds->format.itemsize, at;
	uint8_t *records = records_of(ds, 0, 8);
	struct chunk g = { .num_extents = 0 };

	for (uint64_t i = 0; i < 8; i++) {
		at = ds->format.first_page + i * 3 * FRAME;
		put_values(ds, records + i * itemsize, at, at + 100, 10);
	}
	chunk_locate(&g, ds, records, 0, 8);
	CHECK(g.num_extents == CHUNK_EXTENTS);
	CHECK(g.num_frames == CHUNK_EXTENTS);
	free(records);
	dataset_close(ds);
}

/* The frames of a file of 16 TiB overflow 32 bits. */
static void no_file_is_so_large_that_frames_are_miscounted(void)
{
	struct dataset *ds = made_open(SAMPLES, NULL);
	struct format before = ds->format;
	struct chunk g = { .num_extents = 0 };
	uint64_t n = 2100, itemsize = ds->format.itemsize, at;
	uint8_t *records = malloc(n * itemsize);

	CHECK(records);
	ds->format.page_size = UINT32_MAX;
	ds->format.table_off = (uint64_t)1 << 60;
	ds->format.file_size = (uint64_t)1 << 61;
	for (uint64_t i = 0; i < n; i++) {
		at = (2 * i + 1) * UINT32_MAX;
		put_values(ds, records + i * itemsize, at, at + UINT32_MAX,
			   UINT32_MAX);
	}
	chunk_locate(&g, ds, records, 0, 1);
	CHECK(g.num_frames >= (uint32_t)1 << 20);
	chunk_locate(&g, ds, records, 0, n);
	CHECK(g.num_extents && g.num_frames == frames_of_extents(&g));
	for (uint32_t i = 0; i < g.num_extents; i++)
		CHECK(g.extents[i].frames);
	ds->format = before;
	free(records);
	dataset_close(ds);
}

/* --- bytes --- */

/* Two pieces of a file, in frames of which not all are neighbors. */
static void make_chunk(struct chunk *g, struct arena *a, uint32_t frames[6])
{
	uint8_t *at;

	*g = (struct chunk){
		.num_extents = 2,
		.extents = { { 10 * FRAME, 4 }, { 20 * FRAME, 2 } },
		.num_frames = 6,
		.frames = frames,
	};
	for (uint32_t i = 0; i < 6; i++) {
		at = arena_at(a, frames[i]);
		for (uint32_t k = 0; k < FRAME; k++)
			at[k] = (uint8_t)(i * 41 + k % 251);
	}
}

static bool is_right(const uint8_t *bytes, uint64_t size, uint64_t off)
{
	uint64_t frame;

	for (uint64_t i = 0; i < size; i++, off++) {
		frame = off / FRAME < 20 ? off / FRAME - 10
					 : off / FRAME - 20 + 4;
		if (bytes[i] != (uint8_t)(frame * 41 + off % FRAME % 251))
			return false;
	}
	return true;
}

static bool copies(const struct chunk *g, const struct arena *a, void *buf,
		   size_t size, uint64_t off, bool is_streamed)
{
	const struct payload_read what = {
		.off = off,
		.size = size,
		.buf = buf,
		.is_streamed = is_streamed,
	};

	return chunk_copy(g, a, &what);
}

static void copies_are_right_wherever_they_begin(bool is_streamed)
{
	static const struct {
		uint64_t off;
		uint64_t size;
	} ranges[] = {
		{ 10 * FRAME, 4 * FRAME }, { 10 * FRAME + 1, FRAME },
		{ 11 * FRAME - 1, 2 },	   { 12 * FRAME + 7, FRAME + 100 },
		{ 14 * FRAME - 1, 1 },	   { 20 * FRAME, 2 * FRAME },
		{ 21 * FRAME + 4095, 1 },  { 10 * FRAME + 5, 3 * FRAME + 90 },
	};
	uint32_t frames[6] = { 0, 1, 5, 6, 2, 9 };
	struct arena *a = arena_of(16);
	uint32_t all[16];
	uint8_t *bytes;
	struct chunk g;

	CHECK(!arena_alloc(a, all, 16));
	make_chunk(&g, a, frames);
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
		/* A block of exactly its size, so that ASan finds a byte
		   more. */
		bytes = malloc(ranges[i].size);
		CHECK(bytes && copies(&g, a, bytes, ranges[i].size,
				      ranges[i].off, is_streamed));
		CHECK(is_right(bytes, ranges[i].size, ranges[i].off));
		free(bytes);
	}
	arena_close(a);
}

static void missing_chunks_are_not_copied(void)
{
	uint32_t frames[6] = { 0, 1, 5, 6, 2, 9 }, all[16];
	struct arena *a = arena_of(16);
	uint8_t byte = 77;
	struct chunk g;

	CHECK(!arena_alloc(a, all, 16));
	make_chunk(&g, a, frames);
	CHECK(!copies(&g, a, &byte, 1, 0, false));
	CHECK(!copies(&g, a, &byte, 1, 10 * FRAME - 1, false));
	CHECK(!copies(&g, a, &byte, 1, 14 * FRAME, false));
	CHECK(!copies(&g, a, &byte, 2, 14 * FRAME - 1, false));
	CHECK(!copies(&g, a, &byte, 2 * FRAME, 13 * FRAME, false));
	CHECK(!copies(&g, a, &byte, SIZE_MAX, 10 * FRAME + 1, false));
	CHECK(!copies(&g, a, &byte, 1, UINT64_MAX, false));
	CHECK(byte == 77);
	arena_close(a);
}

static void neighbours_are_one_piece_of_memory(void)
{
	uint32_t frames[6] = { 0, 1, 5, 6, 2, 9 }, all[16];
	struct arena *a = arena_of(16);
	struct iovec iov[6];
	struct chunk g;

	CHECK(!arena_alloc(a, all, 16));
	make_chunk(&g, a, frames);
	CHECK(chunk_iov(&g, a, iov) == 4);
	CHECK(iov[0].iov_len == 2 * FRAME && iov[1].iov_len == 2 * FRAME);
	CHECK(iov[2].iov_len == FRAME && iov[3].iov_len == FRAME);
	CHECK(iov[1].iov_base == arena_at(a, 5));
	CHECK(iov[3].iov_base == arena_at(a, 9));
	g.num_frames = 0;
	CHECK(!chunk_iov(&g, a, iov));
	arena_close(a);
}

int main(void)
{
	every_value_is_covered_in_whole_pages();
	damage_is_left_out();
	scattered_values_are_left_out();
	no_file_is_so_large_that_frames_are_miscounted();
	copies_are_right_wherever_they_begin(false);
	copies_are_right_wherever_they_begin(true);
	missing_chunks_are_not_copied();
	neighbours_are_one_piece_of_memory();
	return 0;
}
