/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file contains, in this order: header, descriptors, one metadata record per
 * sample, pages, allocation table (beton(5)). Pages are written through one
 * buffer as samples come. Records and table stay in memory, about 50 bytes per
 * sample, and are written at the end. The header is written last.
 */
#include "fs/writer/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/dataset/field.h"
#include "fs/dataset/format.h"
#include "fs/util/bytes.h"
#include "fs/util/outfile.h"

enum {
	BUFFER_SIZE = 4 << 20,
	PAGE_SIZE_MIN = 2 << 20,
};

static const uint64_t PAGE_SIZE_LARGEST = (uint64_t)2 << 30;

struct writer {
	struct outfile *file;
	struct log *log;
	char *path;
	int error; /* the first failure, which ends the writer */
	struct schema schema;
	uint64_t *places; /* offsets of one sample's values; scratch */

	uint32_t page_size;
	uint64_t meta_off;
	uint64_t first_page;
	uint64_t samples; /* written so far */
	uint64_t capacity;
	uint8_t *records;

	uint64_t end;	 /* of the allocations; first_page if there are none */
	uint8_t *buffer; /* the bytes before `end` that are not written yet */
	size_t buffered;

	struct format_entry *table;
	size_t table_size;
	size_t table_room;

	uint64_t names_at; /* of the classes */
};

static int refuse_field(const struct writer *w, const char *name,
			const char *why)
{
	log_error(w->log, "%s: field '%s': %s", w->path, name, why);
	return -EINVAL;
}

static int out_of_memory(const struct writer *w)
{
	log_error(w->log, "%s: out of memory", w->path ? w->path : "dataset");
	return -ENOMEM;
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
	w->end = w->first_page;
	w->buffer = malloc(BUFFER_SIZE);
	w->places = calloc(w->schema.num_fields, sizeof(*w->places));
	/* Allocate one more record, because calloc(0, n) may return NULL
	   without an error. */
	w->records = calloc(num_samples + 1, w->schema.itemsize);
	if (!w->buffer || !w->places || !w->records)
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

	if (!w) {
		log_error(log, "%s: out of memory", path);
		return -ENOMEM;
	}
	w->log = log;
	w->page_size = page_size;
	w->path = strdup(path);
	r = w->path ? check_request(w, num_samples) : out_of_memory(w);
	r = r ? r : schema_init(&w->schema, fields, num_fields, path, log);
	r = r ? r : allocate_buffers(w, num_samples);
	if (r)
		writer_abort(&w);
	else
		*out = w;
	return r;
}

int writer_open(const char *path, const struct writer_field *fields,
		size_t num_fields, uint64_t num_samples, uint32_t page_size,
		struct log *log, struct writer **out)
{
	struct writer *w = NULL;
	int r = new_writer(path, fields, num_fields, num_samples, page_size,
			   log, &w);

	r = r ? r : outfile_open(path, true, log, &w->file);
	if (r)
		writer_abort(&w);
	else
		*out = w;
	return r;
}

int writer_open_to(int fd, const char *name, const struct writer_field *fields,
		   size_t num_fields, uint64_t num_samples, uint32_t page_size,
		   struct log *log, struct writer **out)
{
	struct writer *w = NULL;
	int r = new_writer(name, fields, num_fields, num_samples, page_size,
			   log, &w);

	r = r ? r : outfile_open_to(fd, name, log, &w->file);
	if (r)
		writer_abort(&w);
	else
		*out = w;
	return r;
}

void writer_abort(struct writer **writer)
{
	struct writer *w = *writer;

	if (!w)
		return;
	*writer = NULL;
	outfile_abort(&w->file);
	free(w->path);
	schema_fini(&w->schema);
	free(w->places);
	free(w->records);
	free(w->buffer);
	free(w->table);
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

static int check_value(const struct writer *w, const struct field *f,
		       const struct writer_value *v)
{
	const char *wrong = f->type->check ? f->type->check(f, v) : NULL;

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
		int r = check_value(w, f, &values[i]);

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

static int flush_buffer(struct writer *w)
{
	size_t size = w->buffered;

	w->buffered = 0;
	return size ? outfile_write(w->file, w->buffer, size, w->end - size)
		    : 0;
}

/* Appends bytes to the current page. */
static int put_bytes(struct writer *w, const void *bytes, uint64_t size)
{
	int r = w->buffered + size > BUFFER_SIZE ? flush_buffer(w) : 0;

	if (r)
		return r;
	if (size > BUFFER_SIZE) {
		r = outfile_write(w->file, bytes, size, w->end);
	} else {
		memcpy(w->buffer + w->buffered, bytes, size);
		w->buffered += size;
	}
	w->end += size;
	return r;
}

static int add_entry(struct writer *w, uint64_t off, uint64_t size)
{
	if (w->table_size == w->table_room) {
		size_t room = w->table_room ? 2 * w->table_room : 1024;
		void *more = realloc(w->table, room * sizeof(*w->table));

		if (!more)
			return out_of_memory(w);
		w->table = more;
		w->table_room = room;
	}
	w->table[w->table_size++] =
		(struct format_entry){ w->samples, off, size };
	return 0;
}

static int put_value(struct writer *w, const struct field *f,
		     const struct writer_value *v)
{
	uint64_t size = stored_size(f, v);
	int r = add_entry(w, w->end, size);

	if (!r && v->size)
		r = put_bytes(w, v->bytes, v->size);
	/* The value's NUL, or the byte that an empty value takes. */
	if (!r && taken_size(f, v) > v->size)
		r = put_bytes(w, "", 1);
	return r;
}

static void put_record(struct writer *w, const struct writer_value *values)
{
	uint8_t *record = w->records + w->samples * w->schema.itemsize;

	for (size_t i = 0; i < w->schema.num_fields; i++) {
		const struct field *f = &w->schema.fields[i];

		f->type->put(record + f->meta_off, &values[i], w->places[i],
			     stored_size(f, &values[i]));
	}
}

static int append_sample(struct writer *w, const struct writer_value *values)
{
	uint64_t size = 0, used = w->end & (w->page_size - 1);
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
	/* The rest of a page stays a hole, which reads as zeros. */
	if (used && size > w->page_size - used) {
		r = flush_buffer(w);
		w->end = align_up(w->end, w->page_size);
	}
	for (size_t i = 0; i < w->schema.num_fields && !r; i++) {
		const struct field *f = &w->schema.fields[i];

		w->places[i] = w->end;
		if (field_has_payload(f))
			r = put_value(w, f, &values[i]);
	}
	if (r)
		return r;
	put_record(w, values);
	w->samples++;
	return 0;
}

int writer_append(struct writer *w, const struct writer_value *values)
{
	int r = w->error ? w->error : append_sample(w, values);

	if (r != -BETON_ETOOLARGE)
		w->error = r;
	return r;
}

/* --- the end ------------------------------------------------------------- */

/* Lowers the offsets of all values by `down`. */
static void lower_offsets(struct writer *w, uint64_t down)
{
	for (size_t i = 0; i < w->table_size; i++)
		w->table[i].off -= down;
	for (size_t k = 0; k < w->schema.num_fields; k++) {
		const struct field *f = &w->schema.fields[k];
		uint8_t *at = w->records + f->meta_off + f->type->pointer_at;

		if (!field_has_payload(f))
			continue;
		for (uint64_t i = 0; i < w->samples;
		     i++, at += w->schema.itemsize)
			store64(at, load64(at) - down);
	}
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
	uint64_t down = w->first_page - first;
	int r;

	if (!down || w->end == w->first_page)
		return 0;
	r = outfile_move_down(w->file, w->first_page, first, w->end);
	if (r)
		return r;
	lower_offsets(w, down);
	w->first_page = first;
	w->end -= down;
	return 0;
}

static int write_table(struct writer *w, uint64_t at)
{
	size_t size = w->table_size * sizeof(*w->table);

	/* An entry has the same layout in memory and in the file. */
	_Static_assert(sizeof(*w->table) == FORMAT_ENTRY_SIZE, "layout");
	return outfile_write(w->file, w->table, size, at);
}

static int write_header(struct writer *w, uint64_t table_at)
{
	uint8_t header[FORMAT_HEADER_SIZE];

	store16(header, FORMAT_VERSION);
	store16(header + 2, (uint16_t)w->schema.num_fields);
	store32(header + 4, w->page_size);
	store64(header + 8, w->samples);
	store64(header + 16, table_at);
	return outfile_write(w->file, header, sizeof(header), 0);
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
	w->names_at = w->end;
	if (!w->table_size || w->schema.names_size > end - w->end) {
		w->names_at = align_up(end, w->page_size);
		end = w->names_at + w->page_size;
	}
	schema_place_names(&w->schema, w->names_at);
	return end;
}

static int write_names(struct writer *w)
{
	return outfile_write(w->file, w->schema.names, w->schema.names_size,
			     w->names_at);
}

static int write_rest(struct writer *w)
{
	uint64_t meta_size = w->samples * w->schema.itemsize, table_at;
	int r = flush_buffer(w);

	r = r ? r : close_gap(w);
	if (r)
		return r;
	/* If there are no allocations, there are no pages and no entries. */
	table_at = w->table_size ? align_up(w->end, w->page_size)
				 : w->meta_off + meta_size;
	table_at = place_names(w, table_at);
	r = outfile_resize(w->file, table_at);
	if (!r && w->schema.names)
		r = write_names(w);
	r = r ? r : write_table(w, table_at);
	r = r ? r
	      : outfile_write(w->file, w->schema.descriptors,
			      w->schema.descriptors_size, FORMAT_HEADER_SIZE);
	r = r ? r : outfile_write(w->file, w->records, meta_size, w->meta_off);
	return r ? r : write_header(w, table_at);
}

int writer_finish(struct writer **writer)
{
	struct writer *w = *writer;
	int r = w->error ? w->error : write_rest(w);

	if (!r)
		r = outfile_publish(&w->file);
	writer_abort(writer);
	return r;
}
