/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fs/data/dataset/value.h"
#include "tests/unit/heard.h"
#include "tests/unit/made.h"

enum { SAMPLES = 40 };

static char path[] = "/tmp/test_dataset.XXXXXX";

static uint64_t record_of(const struct dataset *ds, uint64_t sample)
{
	return ds->format.meta_off + sample * ds->format.itemsize;
}

static void every_value_is_found(void)
{
	struct dataset *ds = made_open(SAMPLES, NULL);
	uint8_t want[MADE_VALUE_MAX], got[MADE_VALUE_MAX];
	struct value v;

	for (uint64_t i = 0; i < SAMPLES; i++) {
		for (uint32_t f = MADE_JPG; f < MADE_FIELDS; f++) {
			CHECK(!dataset_value_at(ds, f, i, &v));
			CHECK(v.size == made_value(f, i, want));
			CHECK(!source_read(ds->source, got, v.size, v.off));
			CHECK(!memcmp(got, want, v.size));
		}
		CHECK(!dataset_value_at(ds, MADE_INT, i, &v));
		CHECK(load64(v.scalar) == i * i - 5);
	}
	dataset_close(ds);
}

static void samples_past_the_end_are_refused(void)
{
	struct dataset *ds = made_open(SAMPLES, NULL);
	struct value v;

	CHECK(dataset_value_at(ds, 0, SAMPLES, &v) == -EINVAL);
	CHECK(dataset_value_at(ds, 0, UINT64_MAX, &v) == -EINVAL);
	dataset_close(ds);
}

/* --- virtual files of values --- */

/* All of a file, read in pieces of `step` bytes. */
static size_t read_pieces(const struct vfile *f, uint8_t *out, size_t step)
{
	size_t at = 0;
	ssize_t n;

	while ((n = vfile_read(f, out + at, step, at, NULL, NULL)) > 0)
		at += (size_t)n;
	CHECK(n == 0 && at == f->size);
	return at;
}

static void check_file(struct dataset *ds, uint32_t field, uint64_t sample,
		       const char *head)
{
	static const size_t steps[] = { 1, 7, 64, 100000 };
	static uint8_t got[MADE_VALUE_MAX], want[MADE_VALUE_MAX];
	struct sample_file file;
	struct value v;
	size_t n, head_size = strlen(head);

	CHECK(!dataset_value_at(ds, field, sample, &v));
	sample_file_init(&file, ds, field, &v);
	CHECK(sample_file_size(ds, field, &v) == file.vfile.size);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		n = read_pieces(&file.vfile, got, steps[i]);
		CHECK(n >= head_size && !memcmp(got, head, head_size));
		if (field >= MADE_JPG)
			CHECK(!memcmp(got + n - made_size(field, sample), want,
				      made_value(field, sample, want)));
		else
			CHECK(n == head_size);
	}
}

static void values_are_files(void)
{
	struct dataset *ds = made_open(SAMPLES, NULL);

	for (uint64_t i = 0; i < 12; i++) {
		check_file(ds, MADE_JPG, i, "");
		check_file(ds, MADE_RAW, i, "P6\n3 2\n255\n");
		check_file(ds, MADE_BYTES, i, "");
		check_file(ds, MADE_JSON, i, "");
		check_file(ds, MADE_ARRAY, i, "\x93NUMPY");
		check_file(ds, MADE_TENSOR, i, "\x93NUMPY");
	}
	check_file(ds, MADE_INT, 0, "-5\n");
	check_file(ds, MADE_INT, 3, "4\n");
	check_file(ds, MADE_FLOAT, 3, "0.75\n");
	dataset_close(ds);
}

static void columns_are_files(void)
{
	static const size_t steps[] = { 1, 3, 11, 64, 100000 };
	struct dataset *ds = made_open(SAMPLES, NULL);
	static uint8_t got[8 * SAMPLES + NPY_HEADER_MAX], want[8];
	struct column_file file;

	for (uint32_t f = MADE_INT; f <= MADE_FLOAT; f++) {
		column_file_init(&file, ds, f);
		for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
			read_pieces(&file.vfile, got, steps[i]);
			for (uint64_t s = 0; s < SAMPLES; s++) {
				made_value(f, s, want);
				CHECK(!memcmp(got + file.head_size + 8 * s,
					      want, 8));
			}
		}
	}
	dataset_close(ds);
}

/* More bytes than one chunk of records has, from any place. */
static void long_columns_are_read_from_any_place(void)
{
	enum { MANY = 5000 };
	struct dataset *ds = made_open(MANY, NULL);
	static uint8_t got[8 * MANY];
	struct column_file file;
	uint8_t want[8];
	uint64_t off;

	column_file_init(&file, ds, MADE_INT);
	for (uint64_t from = 0; from < 8 * MANY; from += 1999) {
		off = file.head_size + from;
		CHECK(vfile_read(&file.vfile, got, sizeof(got), off, NULL,
				 NULL) == (ssize_t)(8 * MANY - from));
		for (uint64_t i = from; i < 8 * MANY; i++) {
			made_value(MADE_INT, i / 8, want);
			CHECK(got[i - from] == want[i % 8]);
		}
	}
	dataset_close(ds);
}

/* --- damage --- */

static void hurt_pointers_are_refused_with_one_line(void)
{
	static const uint64_t bad[] = {
		0, 24, MADE_PAGE - 1, 1 << 30, UINT64_MAX, (uint64_t)1 << 63
	};
	static const struct {
		enum made_field field;
		unsigned at; /* of the pointer in its metadata */
		const char *word;
	} table[] = {
		{ MADE_JPG, 5, "field jpg: the allocation table lacks it" },
		{ MADE_RAW, 5, "field raw: its bytes are not inside" },
		{ MADE_BYTES, 0, "field bytes: its bytes are not inside" },
		{ MADE_BYTES, 8, "field bytes" },
		{ MADE_JSON, 0, "field json: its bytes are not inside" },
		{ MADE_ARRAY, 0, "field array: its bytes are not inside" },
		{ MADE_TENSOR, 0, "field tensor: its bytes are not inside" },
	};
	struct heard heard = HEARD_NOTHING;
	struct dataset *ds;
	struct value v;
	struct log log;

	for (size_t t = 0; t < ARRAY_LEN(table); t++) {
		log_init(&log, hear, &heard);
		ds = made_open(SAMPLES, &log);
		for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
			if (table[t].at == 8 && bad[i] < 1 << 30)
				continue;
			heard.lines = 0;
			made_poke(ds,
				  record_of(ds, 9) + table[t].at +
					  ds->format.fields[table[t].field]
						  .meta_off,
				  &bad[i], 8);
			CHECK(dataset_value_at(ds, table[t].field, 9, &v) ==
			      -BETON_ECORRUPT);
			CHECK(heard.lines == 1);
			CHECK(strstr(heard.last, "sample 9"));
			CHECK(strstr(heard.last, table[t].word));
			CHECK(!dataset_value_at(ds, table[t].field, 8, &v));
		}
		dataset_close(ds);
		log_fini(&log);
	}
}

static void a_short_file_is_an_io_error(void)
{
	struct dataset *ds;
	struct value v;

	made_write(path, SAMPLES);
	CHECK(!dataset_open(path, NULL, NULL, &ds));
	CHECK(!truncate(path, (off_t)record_of(ds, 5)));
	CHECK(!dataset_value_at(ds, MADE_INT, 4, &v));
	CHECK(dataset_value_at(ds, MADE_INT, 5, &v) == -EIO);
	CHECK(dataset_value_at(ds, MADE_JPG, 4, &v) == -EIO);
	dataset_close(ds);
}

/* --- opening --- */

static int open_bytes(const void *bytes, size_t size, char *message)
{
	struct heard heard = HEARD_NOTHING;
	struct dataset *ds = NULL;
	struct log log;
	FILE *f = fopen(path, "w");
	int r;

	CHECK(f && fwrite(bytes, 1, size, f) == size && !fclose(f));
	log_init(&log, hear, &heard);
	r = dataset_open(path, NULL, &log, &ds);
	CHECK(r ? heard.lines >= 1 && strstr(heard.last, path) : ds != NULL);
	strcpy(message, heard.last);
	dataset_close(ds);
	log_fini(&log);
	return r;
}

static void other_files_are_distinguished_from_damage(void)
{
	char message[1024];
	uint8_t bytes[64] = { 2, 0, 1 };

	CHECK(open_bytes("", 0, message) == -BETON_ENOTBETON);
	CHECK(open_bytes(bytes, 23, message) == -BETON_ENOTBETON);
	CHECK(open_bytes("PK\3\4 is what a zip file begins with", 34,
			 message) == -BETON_ENOTBETON);
	CHECK(open_bytes(bytes, 64, message) == -BETON_ECORRUPT);
	CHECK(strstr(message, "unfinished"));
}

static void every_prefix_of_a_file_is_refused_or_open(void)
{
	struct dataset *ds;
	struct stat st;

	made_write(path, 3);
	CHECK(!stat(path, &st));
	for (off_t size = st.st_size - 1; size > 0; size -= 1 + size / 3) {
		CHECK(!truncate(path, size));
		ds = NULL;
		if (!dataset_open(path, NULL, NULL, &ds))
			CHECK(size >= (off_t)ds->format.table_off);
		dataset_close(ds);
	}
}

/* --- descriptions of a dataset --- */

static void the_schema_is_json(void)
{
	struct dataset *ds = made_open(SAMPLES, NULL);
	const char *name, *type;
	json_int_t samples, page;
	json_t *o, *fields;
	char *text;

	CHECK(!dataset_json(ds, &text));
	o = json_loads(text, 0, NULL);
	CHECK(!json_unpack(o, "{s:I, s:I, s:o}", "samples", &samples,
			   "page_size", &page, "fields", &fields));
	CHECK(samples == SAMPLES && page == MADE_PAGE);
	CHECK(json_array_size(fields) == MADE_FIELDS);
	for (size_t i = 0; i < MADE_FIELDS; i++) {
		CHECK(!json_unpack(json_array_get(fields, i), "{s:s, s:s}",
				   "name", &name, "type", &type));
		CHECK(!strcmp(name, made_fields[i].name));
		CHECK(field_type_by_name(type)->type == made_fields[i].type);
	}
	json_decref(o);
	free(text);
	dataset_close(ds);
}

static const struct source_ops *file_ops;
static unsigned num_submitted;

static void submit_urgent(struct source *source, struct source_request *q)
{
	CHECK(q->must);
	num_submitted++;
	file_ops->submit(source, q);
}

/* A remote source would read everything else before it. */
static void a_reader_of_a_value_file_waits_for_its_requests(void)
{
	struct dataset *ds = made_open(SAMPLES, NULL);
	uint8_t got[MADE_VALUE_MAX];
	struct source_ops ops;
	struct sample_file file;
	struct value v;

	file_ops = ds->source->ops;
	ops = *file_ops;
	ops.submit = submit_urgent;
	ds->source->ops = &ops;
	CHECK(!dataset_value_at(ds, MADE_JPG, 0, &v));
	sample_file_init(&file, ds, MADE_JPG, &v);
	CHECK(vfile_read(&file.vfile, got, sizeof(got), 0, NULL, NULL) > 0);
	CHECK(num_submitted > 0);
	ds->source->ops = file_ops;
	dataset_close(ds);
}

static int refuse_cached(struct source *source, void *buf, size_t size,
			 uint64_t off)
{
	(void)source;
	(void)buf;
	(void)size;
	(void)off;
	return -EAGAIN;
}

static void use_ops(struct dataset *ds, const struct source_ops *ops)
{
	ds->source->ops = ops;
}

/* A caller that must not wait gets the same bytes, or none. */
static void values_at_hand_are_those_that_need_no_wait(void)
{
	struct dataset *ds = made_open(SAMPLES, NULL);
	const struct source_ops *ops = ds->source->ops;
	struct source_ops cold = *ops, other = *ops;
	uint8_t want[MADE_VALUE_MAX], got[MADE_VALUE_MAX];
	struct sample_file file;
	struct value v;

	/* The allocation table has not been read yet. */
	CHECK(!dataset_is_at_hand(ds, 3));
	CHECK(!dataset_value_at(ds, MADE_JPG, 3, &v));
	CHECK(dataset_is_at_hand(ds, 3));
	CHECK(!dataset_is_at_hand(ds, SAMPLES));
	CHECK(!dataset_is_at_hand(ds, UINT64_MAX));
	pthread_mutex_lock(&ds->lock);
	CHECK(!dataset_is_at_hand(ds, 3));
	pthread_mutex_unlock(&ds->lock);
	sample_file_init(&file, ds, MADE_JPG, &v);
	CHECK(vfile_read(&file.vfile, want, sizeof(want), 1, NULL, NULL) ==
	      (ssize_t)v.size - 1);
	CHECK(vfile_read_cached(&file.vfile, got, sizeof(got), 1) ==
	      (ssize_t)v.size - 1);
	CHECK(!memcmp(got, want, v.size - 1));
	CHECK(!vfile_read_cached(&file.vfile, got, sizeof(got), v.size));
	cold.read_cached = refuse_cached;
	other.read_cached = NULL;
	use_ops(ds, &cold);
	CHECK(!dataset_is_at_hand(ds, 3));
	CHECK(vfile_read_cached(&file.vfile, got, 1, 0) == -EAGAIN);
	use_ops(ds, &other);
	CHECK(!dataset_is_at_hand(ds, 3));
	CHECK(vfile_read_cached(&file.vfile, got, 1, 0) == -EAGAIN);
	use_ops(ds, ops);
	dataset_close(ds);
}

static void fingerprints_distinguish_datasets(void)
{
	struct dataset *a = made_open(SAMPLES, NULL);
	struct dataset *same = made_open(SAMPLES, NULL);
	struct dataset *other = made_open(SAMPLES + 1, NULL);

	CHECK(!memcmp(a->fingerprint, same->fingerprint, 16));
	CHECK(memcmp(a->fingerprint, other->fingerprint, 16));
	dataset_close(a);
	dataset_close(same);
	dataset_close(other);
}

static void a_dataset_of_no_samples_opens(void)
{
	struct dataset *ds = made_open(0, NULL);
	struct column_file file;
	char *text;

	CHECK(ds->format.samples == 0 && dataset_data_bytes(ds) == 0);
	CHECK(!dataset_json(ds, &text));
	column_file_init(&file, ds, MADE_INT);
	CHECK(file.vfile.size == file.head_size);
	free(text);
	dataset_close(ds);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	every_value_is_found();
	samples_past_the_end_are_refused();
	values_are_files();
	columns_are_files();
	long_columns_are_read_from_any_place();
	hurt_pointers_are_refused_with_one_line();
	a_short_file_is_an_io_error();
	other_files_are_distinguished_from_damage();
	every_prefix_of_a_file_is_refused_or_open();
	the_schema_is_json();
	a_reader_of_a_value_file_waits_for_its_requests();
	values_at_hand_are_those_that_need_no_wait();
	fingerprints_distinguish_datasets();
	a_dataset_of_no_samples_opens();
	unlink(path);
	return 0;
}
