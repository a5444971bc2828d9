/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fs/base/order/order.h"
#include "fs/base/order/spec_text.h"
#include "fs/data/dataset/value.h"
#include "fs/data/engine/batch.h"
#include "fs/data/engine/team.h"
#include "loader/run/feed/batch_view.h"
#include "tests/unit/made.h"

enum { SAMPLES = 100 };

static const char *const texts[] = {
	"order=sequential,batch=7,drop_last=0",
	"order=random,batch=32,seed=3",
	"order=quasi_random,batch=100,block=4,window=30",
	"batch=1",
	"batch=1000,drop_last=0,subset=3-90",
};

static struct spec spec_of(struct dataset *ds, const char *text)
{
	const struct spec_facts facts = {
		.samples = ds->format.samples,
		.data_bytes = dataset_data_bytes(ds),
	};
	char why[SPEC_WHY_SIZE];
	struct spec spec;

	CHECK(!spec_parse(text, &facts, &spec, why));
	return spec;
}

static struct batch *open_batch(struct dataset *ds, const struct spec *spec,
				uint64_t epoch, uint64_t number)
{
	const struct batch_key key = { ds, spec, epoch, number };
	struct batch *b;

	CHECK(!batch_open(&key, NULL, &b));
	return b;
}

/* The caller's; aligned as a view wants it. */
static uint8_t *collate_by(struct team *team, const struct batch *b,
			   bool *failed)
{
	uint8_t *bytes = aligned_alloc(64, align_up(b->vfile.size, 64));

	CHECK(bytes);
	memset(bytes, 0xaa, b->vfile.size);
	CHECK(!batch_collate(b, team, bytes, failed));
	return bytes;
}

static uint8_t *collate(const struct batch *b, bool *failed)
{
	return collate_by(NULL, b, failed);
}

static struct batch_view view_of(const struct batch *b, const uint8_t *bytes)
{
	char why[BATCH_VIEW_WHY_SIZE];
	struct batch_view v;

	CHECK(!batch_view_init(&v, bytes, b->vfile.size, why));
	return v;
}

static void check_row(const struct batch_view *v, uint32_t row)
{
	uint8_t want[MADE_VALUE_MAX];
	struct batch_view_value value;

	for (uint32_t f = 0; f < MADE_FIELDS; f++) {
		value = batch_view_at(v, f, row);
		CHECK(!value.error);
		CHECK(value.size == made_value(f, v->ids[row], want));
		CHECK(!memcmp(value.bytes, want, value.size));
		if (v->fields[f].column == BETON_COLUMN_VARIABLE)
			CHECK((value.bytes - v->bytes) % 64 == 0);
	}
	value = batch_view_at(v, MADE_RAW, row);
	CHECK(value.mode == BETON_MODE_RAW);
	CHECK(value.width == 3 && value.height == 2);
	value = batch_view_at(v, MADE_JPG, row);
	CHECK(value.mode == BETON_MODE_JPG && value.height == 7);
	CHECK(value.width == 10 + v->ids[row] % 3);
}

static void a_batch_holds_the_values_of_its_samples(void)
{
	struct dataset *ds = made_open(SAMPLES, NULL);

	for (size_t t = 0; t < ARRAY_LEN(texts); t++) {
		const struct spec spec = spec_of(ds, texts[t]);
		const struct order order = order_init(&spec, 5);

		for (uint64_t n = 0; n < spec_batches(&spec); n++) {
			struct batch *b = open_batch(ds, &spec, 5, n);
			bool failed = true;
			uint8_t *bytes = collate(b, &failed);
			struct batch_view v = view_of(b, bytes);

			CHECK(!failed &&
			      b->samples == spec_batch_samples(&spec, n));
			CHECK(v.header->batch == n && v.header->epoch == 5);
			for (uint32_t i = 0; i < b->samples; i++) {
				CHECK(v.ids[i] ==
				      order_sample(&order, n * spec.batch + i));
				check_row(&v, i);
			}
			free(bytes);
			batch_put(&b);
		}
	}
	dataset_close(ds);
}

static void the_header_identifies_the_batch(void)
{
	struct dataset *ds = made_open(SAMPLES, NULL);
	const struct spec spec = spec_of(ds, texts[2]);
	struct batch *b = open_batch(ds, &spec, 9, 0);
	bool failed;
	uint8_t *bytes = collate(b, &failed);
	const struct batch_view v = view_of(b, bytes);
	char text[SPEC_TEXT_MAX];

	spec_canonical(&spec, text);
	CHECK(v.header->spec_size == strlen(text));
	CHECK(!memcmp(v.spec, text, strlen(text)));
	CHECK(!memcmp(v.header->fingerprint, ds->fingerprint, 16));
	CHECK(v.header->samples == SAMPLES && v.header->batches == 1);
	CHECK(v.header->block == 4 && v.header->window == 30);
	CHECK(v.header->subset_first == 0 && v.header->subset_end == SAMPLES);
	CHECK(v.header->num_fields == MADE_FIELDS);
	for (uint32_t f = 0; f < MADE_FIELDS; f++) {
		CHECK(!strcmp(v.fields[f].name, made_fields[f].name));
		CHECK(v.fields[f].error_off % 64 == 0);
		CHECK(v.fields[f].column_off % 64 == 0);
	}
	CHECK(v.fields[MADE_RAW].column == BETON_COLUMN_FIXED);
	CHECK(v.fields[MADE_RAW].shape[0] == 2 && v.fields[MADE_RAW].ndim == 3);
	CHECK(v.fields[MADE_JPG].column == BETON_COLUMN_VARIABLE);
	free(bytes);
	batch_put(&b);
	dataset_close(ds);
}

/* A reader gets the collated bytes, however it splits its reads. */
static void any_piece_of_a_batch_is_the_same_bytes(void)
{
	struct dataset *ds = made_open(SAMPLES, NULL);
	struct rng rng = { .key = 11 };

	for (size_t t = 0; t < ARRAY_LEN(texts); t++) {
		const struct spec spec = spec_of(ds, texts[t]);
		struct batch *b = open_batch(ds, &spec, 0, 0);
		uint64_t size = b->vfile.size, off, n, want;
		bool failed;
		uint8_t *bytes = collate(b, &failed);
		uint8_t *piece = malloc(size + 64);

		CHECK(piece);
		for (int i = 0; i < 500; i++) {
			off = rng_next(&rng) % (size + 10);
			n = rng_next(&rng) % (i % 2 ? 100 : size + 60);
			want = off < size ? min_u64(n, size - off) : 0;
			CHECK(vfile_read(&b->vfile, piece, n, off, NULL,
					 NULL) == (ssize_t)want);
			CHECK(!memcmp(piece, bytes + off, want));
		}
		for (off = 0; off < size; off++) {
			CHECK(vfile_read(&b->vfile, piece, 1, off, NULL,
					 NULL) == 1);
			CHECK(piece[0] == bytes[off]);
		}
		free(piece);
		free(bytes);
		batch_put(&b);
	}
	dataset_close(ds);
}

static void segments_cover_the_file_without_gaps(void)
{
	struct dataset *ds = made_open(SAMPLES, NULL);
	const struct spec spec = spec_of(ds, texts[1]);
	struct batch *b = open_batch(ds, &spec, 0, 1);
	struct segment s;

	for (uint64_t at = 0; at < b->vfile.size; at = s.start + s.size) {
		b->vfile.segment_at(&b->vfile, at, &s);
		CHECK(s.start == at && s.size > 0);
		CHECK(range_ok(s.start, s.size, b->vfile.size));
	}
	batch_put(&b);
	dataset_close(ds);
}

static void there_are_no_batches_past_the_last(void)
{
	struct dataset *ds = made_open(SAMPLES, NULL);
	const struct spec spec = spec_of(ds, "batch=30");
	struct batch_key key = { ds, &spec, 0, 3 };
	struct batch *b;

	CHECK(batch_open(&key, NULL, &b) == -ENOENT);
	key.number = UINT64_MAX;
	CHECK(batch_open(&key, NULL, &b) == -ENOENT);
	dataset_close(ds);
}

static void references_are_counted(void)
{
	struct dataset *ds = made_open(5, NULL);
	const struct spec spec = spec_of(ds, "batch=5");
	struct batch *b = open_batch(ds, &spec, 0, 0), *same = b;

	batch_get(b);
	batch_put(&b);
	CHECK(!b && same->samples == 5);
	batch_put(&same);
	batch_put(&same);
	dataset_close(ds);
}

/* --- damage --- */

static uint64_t pointer_of(const struct dataset *ds, uint64_t sample,
			   enum made_field f)
{
	return ds->format.meta_off + sample * ds->format.itemsize +
	       ds->format.fields[f].meta_off +
	       (made_fields[f].type == BETON_TYPE_IMAGE ? 5 : 0);
}

static bool is_zero(const uint8_t *bytes, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

static void hurt_pointers_mark_their_rows_alone(void)
{
	const uint64_t bad = 3;

	for (uint32_t f = MADE_JPG; f < MADE_FIELDS; f++) {
		struct dataset *ds = made_open(20, NULL);
		const struct spec spec =
			spec_of(ds, "order=sequential,batch=20");
		struct batch_view_value value;
		struct batch *b;
		struct batch_view v;
		uint8_t *bytes;
		bool failed;

		/* Sample 11 has a value of one byte in `bytes`. */
		made_poke(ds, pointer_of(ds, 11, f), &bad, 8);
		b = open_batch(ds, &spec, 0, 0);
		bytes = collate(b, &failed);
		v = view_of(b, bytes);
		value = batch_view_at(&v, f, 11);
		CHECK(value.error == EUCLEAN && !failed);
		CHECK(is_zero(value.bytes, value.size));
		for (uint32_t row = 0; row < 20; row++) {
			if (row != 11)
				check_row(&v, row);
		}
		free(bytes);
		batch_put(&b);
		dataset_close(ds);
	}
}

/* A file that ends in the middle of its pages. */
static void values_that_cannot_be_read_are_marked_when_collated(void)
{
	char path[] = "/tmp/test_batch.XXXXXX";
	struct dataset *ds;
	struct value tenth;
	struct spec spec;
	struct batch *b;
	struct batch_view v;
	uint8_t *bytes;
	bool failed = false;
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	made_write(path, 20);
	CHECK(!dataset_open(path, NULL, NULL, &ds));
	spec = spec_of(ds, "order=sequential,batch=20");
	b = open_batch(ds, &spec, 0, 0);
	CHECK(!dataset_value_at(ds, MADE_JPG, 10, &tenth));
	CHECK(!truncate(path, (off_t)tenth.off));
	bytes = collate(b, &failed);
	v = view_of(b, bytes);
	CHECK(failed);
	for (uint32_t row = 0; row < 10; row++)
		check_row(&v, row);
	for (uint32_t row = 10; row < 20; row++) {
		CHECK(batch_view_at(&v, MADE_JPG, row).error == EIO);
		CHECK(batch_view_at(&v, MADE_RAW, row).error == EIO);
		CHECK(batch_view_at(&v, MADE_ARRAY, row).error == EIO);
		CHECK(batch_view_at(&v, MADE_INT, row).error == 0);
		CHECK(is_zero(batch_view_at(&v, MADE_RAW, row).bytes, 18));
	}
	/* Without a list of failures, reading them is an error. */
	CHECK(vfile_read(&b->vfile, bytes, b->vfile.size, 0, NULL, NULL) ==
	      -EIO);
	free(bytes);
	batch_put(&b);
	dataset_close(ds);
	unlink(path);
}

static void check_team(struct team *team, const struct batch *b, bool fails)
{
	bool alone, together;
	uint8_t *a = collate(b, &alone), *t = collate_by(team, b, &together);

	CHECK(alone == fails && together == fails);
	CHECK(!memcmp(a, t, b->vfile.size));
	free(a);
	free(t);
}

/* Also the marks of samples that cannot be read. */
static void a_team_makes_the_same_file(void)
{
	enum { MANY = 60000 };
	char path[] = "/tmp/test_batch.XXXXXX";
	struct team *team;
	struct dataset *ds;
	struct value middle;
	struct spec spec;
	struct batch *b;
	int fd = mkstemp(path);

	CHECK(fd >= 0 && !team_open(3, &team));
	close(fd);
	made_write(path, MANY);
	CHECK(!dataset_open(path, NULL, NULL, &ds));
	spec = spec_of(ds, "order=random,batch=60000");
	b = open_batch(ds, &spec, 0, 0);
	CHECK(b->vfile.size > 16 << 20);
	check_team(team, b, false);
	CHECK(!dataset_value_at(ds, MADE_JPG, MANY - 100, &middle));
	CHECK(!truncate(path, (off_t)middle.off));
	check_team(team, b, true);
	batch_put(&b);
	dataset_close(ds);
	team_close(team);
	unlink(path);
}

static void samples_whose_records_cannot_be_read_are_marked(void)
{
	char path[] = "/tmp/test_batch.XXXXXX";
	struct dataset *ds;
	struct spec spec;
	struct batch *b;
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	made_write(path, 20);
	CHECK(!dataset_open(path, NULL, NULL, &ds));
	spec = spec_of(ds, "order=random,batch=20");
	CHECK(!truncate(
		path, (off_t)(ds->format.meta_off + 10 * ds->format.itemsize)));
	b = open_batch(ds, &spec, 0, 0);
	CHECK(b->has_io_errors);
	for (uint32_t row = 0; row < 20; row++)
		CHECK(b->columns[MADE_INT].errors[row] ==
		      (b->ids[row] < 10 ? 0 : EIO));
	batch_put(&b);
	dataset_close(ds);
	unlink(path);
}

int main(void)
{
	a_batch_holds_the_values_of_its_samples();
	the_header_identifies_the_batch();
	any_piece_of_a_batch_is_the_same_bytes();
	segments_cover_the_file_without_gaps();
	there_are_no_batches_past_the_last();
	references_are_counted();
	hurt_pointers_mark_their_rows_alone();
	values_that_cannot_be_read_are_marked_when_collated();
	a_team_makes_the_same_file();
	samples_whose_records_cannot_be_read_are_marked();
	return 0;
}
