/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file contains, in this order: header, descriptors, one metadata record per
 * sample, pages, allocation table (beton(5)). Records and pages are written
 * through buffers as samples come. The table waits in memory and then in a
 * temporary file, because its offset is known only at the end. Memory does not
 * depend on the number of samples. The header is written last.
 */
#include "fs/data/writer/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/field.h"
#include "fs/data/dataset/format.h"
#include "fs/data/writer/output_open.h"
#include "fs/data/writer/pages.h"
#include "fs/data/writer/spill.h"
#include "fs/source/url/url.h"

enum {
	PAGE_SIZE_MIN = 2 << 20,
	STEP = 64, /* samples between two calls of poll() */
	RECORDS_SIZE = 256 << 10,
	BLOCK_SIZE = 256 << 10, /* of records and entries, at the end */
};

static const uint64_t PAGE_SIZE_LARGEST = (uint64_t)2 << 30;

struct writer {
	struct output *file;
	struct log *log;
	char *path; /* as messages show it: without the secrets of a URL */
	output_poll_fn *poll;
	void *arg;
	int error; /* the first failure, which ends the writer */
	struct schema schema;
	uint64_t *places; /* offsets of one sample's values; scratch */
	const struct pages_range *ranges; /* of the sample's values, or NULL */

	uint32_t page_size;
	uint64_t meta_off;
	uint64_t first_page;
	uint64_t samples; /* written so far */
	uint64_t capacity;
	uint8_t *records; /* the last ones, which are not written yet */
	uint64_t num_records;
	uint64_t room; /* for records */

	struct pages pages;
	struct spill table;
	uint64_t down; /* by this much the offsets in the table are too high */

	uint64_t names_at; /* of the classes */
	uint64_t size;	   /* of the complete file */
};

static int refuse_field(const struct writer *w, const char *name,
			const char *why)
{
	log_error(w->log, "%s: field '%s': %s", w->path, name, why);
	return -EINVAL;
}

static int out_of_memory(const struct writer *w)
{
	return log_no_memory(w->log, w->path ? w->path : "dataset");
}

/* --- opening ------------------------------------------------------------- */

static int check_request(struct writer *w, uint64_t num_samples)
{
	if (!is_power_of_two(w->page_size) || w->page_size < PAGE_SIZE_MIN ||
	    w->page_size > PAGE_SIZE_LARGEST) {
		log_error(w->log,
			  "%s: page size %u: expected a power of two from "
			  "2097152 to 2147483648",
			  w->path, w->page_size);
		return -EINVAL;
	}
	if (num_samples > FORMAT_SAMPLES_MAX) {
		log_error(w->log, "%s: %llu samples: expected at most %llu",
			  w->path, (unsigned long long)num_samples,
			  (unsigned long long)FORMAT_SAMPLES_MAX);
		return -EINVAL;
	}
	return 0;
}

/* Allocates the buffers. Requires the schema. */
static int allocate_buffers(struct writer *w, uint64_t num_samples)
{
	w->capacity = num_samples;
	w->meta_off = FORMAT_HEADER_SIZE + w->schema.descriptors_size;
	w->first_page = align_up(w->meta_off + num_samples * w->schema.itemsize,
				 w->page_size);
	w->pages.end = w->first_page;
	w->room = max_u64(RECORDS_SIZE / w->schema.itemsize, 1);
	w->places = calloc(w->schema.num_fields, sizeof(*w->places));
	w->records = calloc(w->room, w->schema.itemsize);
	if (!w->places || !w->records || pages_init(&w->pages))
		return out_of_memory(w);
	return 0;
}

/* Creates a writer that has no file yet. */
static int new_writer(const char *path, const struct writer_field *fields,
		      size_t num_fields, uint64_t num_samples,
		      uint32_t page_size, struct log *log, struct writer **out)
{
	struct writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return log_no_memory(log, NULL);
	w->log = log;
	w->page_size = page_size;
	w->path = url_visible(path);
	r = w->path ? check_request(w, num_samples) : out_of_memory(w);
	r = r ? r : schema_init(&w->schema, fields, num_fields, w->path, log);
	r = r ? r : allocate_buffers(w, num_samples);
	if (r)
		writer_abort(&w);
	else
		*out = w;
	return r;
}

static int end_of_open(struct writer *w, int r, struct writer **out)
{
	r = r ? r : output_body(w->file, w->first_page);
	if (r) {
		writer_abort(&w);
		return r;
	}
	w->pages.file = w->file;
	spill_init(&w->table, w->file, w->path, w->log);
	*out = w;
	return 0;
}

int writer_begin(const struct writer_setup *s, struct writer **out)
{
	struct writer *w = NULL;
	int r = new_writer(s->path, s->fields, s->num_fields, s->num_samples,
			   s->page_size, s->log, &w);

	if (!r)
		r = output_open(
			&(struct output_setup){
				.path = s->path,
				.options = s->options,
				.poll = s->poll,
				.arg = s->arg,
				.sums = s->sums,
				.renews_sums = s->renews_sums,
				.log = s->log,
			},
			&w->file);
	if (!r && output_is_remote(s->path)) {
		w->poll = s->poll;
		w->arg = s->arg;
	}
	return end_of_open(w, r, out);
}

int writer_open(const char *path, const struct writer_field *fields,
		size_t num_fields, uint64_t num_samples, uint32_t page_size,
		struct log *log, struct writer **out)
{
	return writer_begin(
		&(struct writer_setup){
			.path = path,
			.fields = fields,
			.num_fields = num_fields,
			.num_samples = num_samples,
			.page_size = page_size,
			.log = log,
		},
		out);
}

int writer_open_to(int fd, const char *name, const struct writer_field *fields,
		   size_t num_fields, uint64_t num_samples, uint32_t page_size,
		   struct log *log, struct writer **out)
{
	struct writer *w = NULL;
	int r = new_writer(name, fields, num_fields, num_samples, page_size,
			   log, &w);

	r = r ? r : output_open_to(fd, name, log, &w->file);
	return end_of_open(w, r, out);
}

void writer_abort(struct writer **writer)
{
	struct writer *w = *writer;

	if (!w)
		return;
	*writer = NULL;
	spill_fini(&w->table);
	output_abort(&w->file);
	free(w->path);
	schema_fini(&w->schema);
	free(w->places);
	free(w->records);
	pages_fini(&w->pages);
	free(w);
}

/* --- samples ------------------------------------------------------------- */

/* Returns the bytes of a value's allocation, with the NUL if it has one. */
static uint64_t stored_size(const struct field *f, const struct writer_value *v)
{
	return v->size + f->type->ends_in_nul;
}

/*
 * Returns the bytes of a page that a value takes: at least one. FFCV looks
 * sizes up by offset. Therefore an empty value must not share its offset with
 * another value.
 */
static uint64_t taken_size(const struct field *f, const struct writer_value *v)
{
	return max_u64(stored_size(f, v), 1);
}

/* Returns the range of another file that contains value `i`, with the NUL if it
   has one; NULL: its bytes are in memory. */
static const struct pages_range *range_of(const struct writer *w, size_t i)
{
	return w->ranges && w->ranges[i].source ? &w->ranges[i] : NULL;
}

/* The reader of a range has checked it. */
static int check_value(const struct writer *w, size_t i,
		       const struct writer_value *v)
{
	const struct field *f = &w->schema.fields[i];
	const char *wrong = NULL;

	if (f->type->check && !range_of(w, i))
		wrong = f->type->check(f, v);
	return wrong ? refuse_field(w, f->name, wrong) : 0;
}

/* Checks the values of a sample, and adds up the bytes that they take.
   -BETON_ETOOLARGE: they do not fit into one page. */
static int measure_sample(const struct writer *w,
			  const struct writer_value *values, uint64_t *out)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->schema.num_fields; i++) {
		const struct field *f = &w->schema.fields[i];
		int r = check_value(w, i, &values[i]);

		if (r)
			return r;
		if (!field_has_payload(f))
			continue;
		if (!add_ok(sum, taken_size(f, &values[i]), &sum))
			return -BETON_ETOOLARGE;
	}
	*out = sum;
	return sum > w->page_size ? -BETON_ETOOLARGE : 0;
}

static int add_entry(struct writer *w, uint64_t off, uint64_t size)
{
	const struct format_entry e = { w->samples, off, size };

	/* An entry has the same layout in memory and in the file. */
	_Static_assert(sizeof(e) == FORMAT_ENTRY_SIZE, "layout");
	return spill_append(&w->table, &e, sizeof(e));
}

static int put_value(struct writer *w, size_t i, const struct writer_value *v)
{
	const struct field *f = &w->schema.fields[i];
	const struct pages_range *range = range_of(w, i);
	int r = add_entry(w, w->pages.end, stored_size(f, v));

	if (r)
		return r;
	if (range)
		return pages_copy(&w->pages, range);
	r = v->size ? pages_put(&w->pages, v->bytes, v->size) : 0;
	/* The value's NUL, or the byte that an empty value takes. */
	if (!r && taken_size(f, v) > v->size)
		r = pages_put(&w->pages, "", 1);
	return r;
}

/* Writes the records of the buffer to their place. */
static int flush_records(struct writer *w)
{
	uint64_t size = w->num_records * w->schema.itemsize;
	uint64_t first = w->samples - w->num_records;

	w->num_records = 0;
	return output_write(w->file, w->records, size,
			    w->meta_off + first * w->schema.itemsize);
}

static void put_record(struct writer *w, const struct writer_value *values)
{
	uint8_t *record = w->records + w->num_records * w->schema.itemsize;

	memset(record, 0, w->schema.itemsize);
	for (size_t i = 0; i < w->schema.num_fields; i++) {
		const struct field *f = &w->schema.fields[i];

		f->type->put(record + f->meta_off, &values[i], w->places[i],
			     stored_size(f, &values[i]));
	}
	w->num_records++;
	w->samples++;
}

static int append_sample(struct writer *w, const struct writer_value *values)
{
	uint64_t size = 0, end = w->pages.end;
	uint64_t used = end & (w->page_size - 1);
	int r = measure_sample(w, values, &size);

	if (r)
		return r;
	if (w->samples == w->capacity) {
		log_error(
			w->log,
			"%s: the writer was opened for %llu samples, and this is one more",
			w->path, (unsigned long long)w->capacity);
		return -EINVAL;
	}
	if (w->poll && w->samples % STEP == 0)
		r = w->poll(w->arg);
	if (r)
		return r;
	/* The rest of a page stays a hole, which reads as zeros. */
	if (used && size > w->page_size - used)
		r = pages_skip(&w->pages, align_up(end, w->page_size));
	for (size_t i = 0; i < w->schema.num_fields && !r; i++) {
		w->places[i] = w->pages.end;
		if (field_has_payload(&w->schema.fields[i]))
			r = put_value(w, i, &values[i]);
	}
	if (!r && w->num_records == w->room)
		r = flush_records(w);
	if (!r)
		put_record(w, values);
	return r;
}

int writer_append_ranges(struct writer *w, const struct writer_value *values,
			 const struct pages_range *ranges)
{
	int r = w->error;

	if (r)
		return r;
	w->ranges = ranges;
	r = append_sample(w, values);
	if (r != -BETON_ETOOLARGE)
		w->error = r;
	return r;
}

int writer_append(struct writer *w, const struct writer_value *values)
{
	return writer_append_ranges(w, values, NULL);
}

int writer_settle(struct writer *w)
{
	if (!w->error)
		w->error = pages_settle(&w->pages);
	return w->error;
}

const struct field *writer_fields(const struct writer *w, size_t *num)
{
	*num = w->schema.num_fields;
	return w->schema.fields;
}

const char *writer_path(const struct writer *w)
{
	return w->path;
}

/* --- the end ------------------------------------------------------------- */

/* Lowers the offsets in `n` records. */
static void lower_records(const struct writer *w, uint8_t *records, uint64_t n)
{
	for (size_t k = 0; k < w->schema.num_fields; k++) {
		const struct field *f = &w->schema.fields[k];
		uint8_t *at = records + f->meta_off + f->type->pointer_at;

		if (!field_has_payload(f))
			continue;
		for (uint64_t i = 0; i < n; i++, at += w->schema.itemsize)
			store64(at, load64(at) - w->down);
	}
}

/* Lowers the offsets of all values by w->down; write_table() does the same for
   the table. */
static int lower_offsets(struct writer *w)
{
	uint64_t itemsize = w->schema.itemsize, n;
	int r = 0;

	for (uint64_t i = 0; i < w->samples && !r; i += n) {
		uint64_t at = w->meta_off + i * itemsize;

		n = min_u64(w->room, w->samples - i);
		r = output_read(w->file, w->records, n * itemsize, at);
		if (r)
			return r;
		lower_records(w, w->records, n);
		r = output_write(w->file, w->records, n * itemsize, at);
	}
	return r;
}

/*
 * FFCV expects the first page after the records of the samples that the file
 * has. If there are fewer samples than announced, the pages may have to move
 * down.
 */
static int close_gap(struct writer *w)
{
	uint64_t first = align_up(w->meta_off + w->samples * w->schema.itemsize,
				  w->page_size);
	uint64_t *end = &w->pages.end;
	int r;

	if (first == w->first_page || *end == w->first_page)
		return 0;
	r = output_move_down(w->file, w->first_page, first, *end);
	if (r)
		return r;
	w->down = w->first_page - first;
	w->first_page = first;
	*end -= w->down;
	return lower_offsets(w);
}

static void lower_entries(struct format_entry *entries, size_t n, uint64_t down)
{
	for (size_t i = 0; i < n; i++)
		entries[i].off -= down;
}

static int write_table(struct writer *w, uint64_t at)
{
	enum { ENTRIES = BLOCK_SIZE / FORMAT_ENTRY_SIZE };
	uint64_t size = spill_size(&w->table), n;
	cleanup_free struct format_entry *block =
		calloc(ENTRIES, sizeof(*block));
	int r = block ? 0 : out_of_memory(w);

	for (uint64_t done = 0; done < size && !r; done += n) {
		n = min_u64(ENTRIES * sizeof(*block), size - done);
		r = spill_read(&w->table, block, n, done);
		if (r)
			return r;
		lower_entries(block, n / sizeof(*block), w->down);
		r = output_write(w->file, block, n, at + done);
	}
	return r;
}

static int write_header(struct writer *w, uint64_t table_at)
{
	uint8_t header[FORMAT_HEADER_SIZE];

	store16(header, FORMAT_VERSION);
	store16(header + 2, (uint16_t)w->schema.num_fields);
	store32(header + 4, w->page_size);
	store64(header + 8, w->samples);
	store64(header + 16, table_at);
	return output_write(w->file, header, sizeof(header), 0);
}

/*
 * Names lie behind the last value in its page or, if that leaves no room, in a
 * page of their own, which no sample uses. `end` is the offset of the table
 * without names; returns its final offset.
 */
static uint64_t place_names(struct writer *w, uint64_t end)
{
	if (!w->schema.names)
		return end;
	w->names_at = w->pages.end;
	if (!spill_size(&w->table) ||
	    w->schema.names_size > end - w->pages.end) {
		w->names_at = align_up(end, w->page_size);
		end = w->names_at + w->page_size;
	}
	schema_place_names(&w->schema, w->names_at);
	return end;
}

static int write_names(struct writer *w)
{
	return output_write(w->file, w->schema.names, w->schema.names_size,
			    w->names_at);
}

static int write_rest(struct writer *w)
{
	uint64_t meta_size = w->samples * w->schema.itemsize, table_at;
	int r = pages_flush(&w->pages);

	r = r ? r : flush_records(w);
	r = r ? r : close_gap(w);
	if (r)
		return r;
	/* If there are no allocations, there are no pages and no entries. */
	table_at = spill_size(&w->table) ? align_up(w->pages.end, w->page_size)
					 : w->meta_off + meta_size;
	table_at = place_names(w, table_at);
	/* By ascending offset, as an output demands. */
	if (w->schema.names)
		r = write_names(w);
	r = r ? r : output_resize(w->file, table_at);
	w->size = table_at + spill_size(&w->table);
	r = r ? r : write_table(w, table_at);
	r = r ? r
	      : output_write(w->file, w->schema.descriptors,
			     w->schema.descriptors_size, FORMAT_HEADER_SIZE);
	return r ? r : write_header(w, table_at);
}

void writer_expect(struct writer *w, const struct stat *old)
{
	output_expect(w->file, old);
}

int writer_finish_size(struct writer **writer, uint64_t *size)
{
	struct writer *w = *writer;
	int r = w->error ? w->error : write_rest(w);

	if (!r)
		r = output_publish(&w->file);
	if (!r)
		*size = w->size;
	writer_abort(writer);
	return r;
}

int writer_finish(struct writer **writer)
{
	uint64_t size;

	return writer_finish_size(writer, &size);
}
