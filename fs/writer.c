/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file from front to back (beton(5)): header, descriptors, one metadata
 * record per sample, pages, allocation table. Pages stream out through one
 * buffer; records and table stay in memory (some 50 bytes a sample) and are
 * written at the end, the header last of all.
 */
#include "fs/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/bytes.h"
#include "fs/field.h"
#include "fs/format.h"
#include "fs/outfile.h"
#include "fs/scope.h"

enum {
	BUFFER_SIZE = 4 << 20,
	ARGS_SIZE = FORMAT_DESCRIPTOR_SIZE - FORMAT_ARGS_OFF,
	PAGE_SIZE_MIN = 2 << 20,
};

static const uint64_t PAGE_SIZE_LARGEST = (uint64_t)2 << 30;

struct column {
	const struct field_type *type;
	char name[FORMAT_NAME_SIZE + 1];
	uint32_t meta_off;
	uint64_t array_size;
};

struct writer {
	struct outfile *file;
	struct log *log;
	char *path;
	size_t num_columns;
	struct column *columns;
	uint8_t *descriptors;
	uint64_t *places; /* of one sample's values, scratch */

	uint32_t page_size;
	uint64_t meta_off;
	uint64_t itemsize;
	uint64_t first_page;
	uint64_t samples; /* written, as the next */
	uint64_t capacity;
	uint8_t *records;

	uint64_t end;  /* of the allocations; first_page: there are none */
	uint8_t *buffer; /* what stands before `end` and is not written yet */
	size_t buffered;

	struct format_entry *table;
	size_t table_size;
	size_t table_room;
};

static int refuse(const struct writer *w, const char *name, const char *why)
{
	log_error(w->log, "%s: field '%s': %s", w->path, name, why);
	return -EINVAL;
}

static int out_of_memory(const struct writer *w)
{
	log_error(w->log, "%s: out of memory", w->path);
	return -ENOMEM;
}

/* --- fields -------------------------------------------------------------- */

static bool is_name(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)name[i] >= 0x80)
			return false;
	}
	return n >= 1 && n <= FORMAT_NAME_SIZE;
}

/*
 * shape, then the type as NumPy's descr in JSON. FFCV takes trailing zeros of
 * the shape for unused dimensions, so those it cannot tell are refused.
 */
static int write_arguments(const struct writer *w,
			   const struct writer_field *field,
			   struct column *column, uint8_t *args)
{
	uint64_t size = field_dtype_size(field->dtype);
	int n;

	if (!size)
		return refuse(w, field->name, "not a type of NumPy's");
	if (!field->ndim || field->ndim > BETON_MAX_NDIM)
		return refuse(w, field->name, "needs 1 to 32 dimensions");
	for (uint32_t i = 0; i < field->ndim; i++) {
		if (!field->shape[i])
			return refuse(w, field->name, "a dimension of 0");
		if (!mul_ok(size, field->shape[i], &size))
			return refuse(w, field->name, "too large");
		store64(args + 8 * i, field->shape[i]);
	}
	column->array_size = size;
	args += 8 * BETON_MAX_NDIM;
	n = snprintf((char *)args + 8, ARGS_SIZE - 8 * BETON_MAX_NDIM - 8,
		     "[[\"\", \"%s\"]]", field->dtype);
	store64(args, (uint64_t)n);
	return 0;
}

static int add_column(struct writer *w, const struct writer_field *field,
		      size_t i)
{
	struct column *c = &w->columns[i];
	uint8_t *d = w->descriptors + i * FORMAT_DESCRIPTOR_SIZE;

	if (!is_name(field->name))
		return refuse(w, field->name, "not 1 to 16 bytes of ASCII");
	for (size_t k = 0; k < i; k++) {
		if (strcmp(w->columns[k].name, field->name) == 0)
			return refuse(w, field->name, "there are two of them");
	}
	c->type = field_type_by_id(field->type);
	if (!c->type || !c->type->meta_size)
		return refuse(w, field->name, "a type that cannot be written");
	memcpy(c->name, field->name, strlen(field->name));
	d[0] = (uint8_t)field->type;
	memcpy(d + 1, c->name, FORMAT_NAME_SIZE);
	return c->type->has_dtype
		       ? write_arguments(w, field, c, d + FORMAT_ARGS_OFF)
		       : 0;
}

/* Records are laid out as NumPy's align=True does. */
static void lay_out(struct writer *w)
{
	uint32_t widest = 1;

	for (size_t i = 0; i < w->num_columns; i++) {
		struct column *c = &w->columns[i];

		w->itemsize = align_up(w->itemsize, c->type->meta_align);
		c->meta_off = (uint32_t)w->itemsize;
		w->itemsize += c->type->meta_size;
		if (c->type->meta_align > widest)
			widest = c->type->meta_align;
	}
	w->itemsize = align_up(w->itemsize, widest);
}

/* --- opening ------------------------------------------------------------- */

static int check_request(struct writer *w, size_t num_fields,
			 uint64_t num_samples)
{
	if (!is_power_of_two(w->page_size) || w->page_size < PAGE_SIZE_MIN ||
	    w->page_size > PAGE_SIZE_LARGEST) {
		log_error(w->log,
			  "%s: a page size of %u is no power of two "
			  "from 2 MiB to 2 GiB",
			  w->path, w->page_size);
		return -EINVAL;
	}
	if (!num_fields || num_fields > FORMAT_FIELDS_MAX ||
	    num_samples > FORMAT_SAMPLES_MAX) {
		log_error(w->log, "%s: %zu fields and %llu samples cannot be",
			  w->path, num_fields, (unsigned long long)num_samples);
		return -EINVAL;
	}
	return 0;
}

static int prepare(struct writer *w, const struct writer_field *fields,
		   size_t num_fields, uint64_t num_samples)
{
	int r = check_request(w, num_fields, num_samples);

	if (r)
		return r;
	w->num_columns = num_fields;
	w->capacity = num_samples;
	w->columns = calloc(num_fields, sizeof(*w->columns));
	w->places = calloc(num_fields, sizeof(*w->places));
	w->descriptors = calloc(num_fields, FORMAT_DESCRIPTOR_SIZE);
	w->buffer = malloc(BUFFER_SIZE);
	if (!w->columns || !w->places || !w->descriptors || !w->buffer)
		return out_of_memory(w);
	for (size_t i = 0; i < num_fields && !r; i++)
		r = add_column(w, &fields[i], i);
	if (r)
		return r;
	lay_out(w);
	w->meta_off = FORMAT_HEADER_SIZE + num_fields * FORMAT_DESCRIPTOR_SIZE;
	w->first_page = align_up(w->meta_off + num_samples * w->itemsize,
				 w->page_size);
	w->end = w->first_page;
	/* At least one byte, so that NULL means only one thing. */
	w->records = calloc(num_samples + 1, w->itemsize);
	return w->records ? 0 : out_of_memory(w);
}

int writer_open(const char *path, const struct writer_field *fields,
		size_t num_fields, uint64_t num_samples, uint32_t page_size,
		struct log *log, struct writer **out)
{
	struct writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->log = log;
	w->page_size = page_size;
	w->path = strdup(path);
	r = w->path ? prepare(w, fields, num_fields, num_samples) : -ENOMEM;
	r = r ? r : outfile_open(path, log, &w->file);
	if (r) {
		writer_abort(&w);
		return r;
	}
	*out = w;
	return 0;
}

void writer_abort(struct writer **writer)
{
	struct writer *w = *writer;

	if (!w)
		return;
	*writer = NULL;
	outfile_abort(&w->file);
	free(w->path);
	free(w->columns);
	free(w->descriptors);
	free(w->places);
	free(w->records);
	free(w->buffer);
	free(w->table);
	free(w);
}

/* --- samples ------------------------------------------------------------- */

/* Bytes that a value's allocation holds. Scalars have none. */
static uint64_t stored_size(const struct column *c,
			    const struct writer_value *v)
{
	return v->size + (c->type->type == BETON_TYPE_JSON);
}

/*
 * Bytes of a page that it takes. FFCV finds sizes by offset, so an empty value
 * that shared its offset with the next one would get that one's size.
 */
static uint64_t taken_size(const struct column *c, const struct writer_value *v)
{
	return max_u64(stored_size(c, v), 1);
}

static int check_value(const struct writer *w, const struct column *c,
		       const struct writer_value *v)
{
	switch (c->type->type) {
	case BETON_TYPE_IMAGE:
		if (!v->width || !v->height || !v->size)
			return refuse(w, c->name, "an image without pixels");
		if (v->mode == BETON_MODE_RAW &&
		    v->size != (uint64_t)v->width * v->height * 3)
			return refuse(w, c->name, "raw pixels of wrong size");
		return 0;
	case BETON_TYPE_NDARRAY:
	case BETON_TYPE_TENSOR:
		return v->size == c->array_size
			       ? 0
			       : refuse(w, c->name, "an array of wrong size");
	case BETON_TYPE_JSON:
		/* FFCV ends a text at its first NUL. */
		return v->size && memchr(v->bytes, 0, v->size)
			       ? refuse(w, c->name, "JSON with a NUL in it")
			       : 0;
	default:
		return 0;
	}
}

/* The bytes that a sample takes, all in one page. */
static int measure(const struct writer *w, const struct writer_value *values,
		   uint64_t *out)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->num_columns; i++) {
		const struct column *c = &w->columns[i];
		int r = check_value(w, c, &values[i]);

		if (r)
			return r;
		if (field_type_is_scalar(c->type))
			continue;
		if (!add_ok(sum, taken_size(c, &values[i]), &sum))
			return -EFBIG;
	}
	*out = sum;
	return sum > w->page_size ? -EFBIG : 0;
}

static int flush(struct writer *w)
{
	size_t size = w->buffered;

	w->buffered = 0;
	return size ? outfile_write(w->file, w->buffer, size, w->end - size)
		    : 0;
}

/* Appends to the page; NULL bytes are zeros. */
static int put_bytes(struct writer *w, const void *bytes, uint64_t size)
{
	int r = w->buffered + size > BUFFER_SIZE ? flush(w) : 0;

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

static int put_value(struct writer *w, const struct column *c,
		     const struct writer_value *v)
{
	uint64_t size = stored_size(c, v);
	int r = add_entry(w, w->end, size);

	if (!r && v->size)
		r = put_bytes(w, v->bytes, v->size);
	/* JSON's NUL, or the byte that sets an empty value apart. */
	if (!r && taken_size(c, v) > v->size)
		r = put_bytes(w, "", 1);
	return r;
}

static void put_record(struct writer *w, const struct writer_value *values)
{
	uint8_t *record = w->records + w->samples * w->itemsize;

	for (size_t i = 0; i < w->num_columns; i++) {
		const struct column *c = &w->columns[i];
		const struct writer_value *v = &values[i];
		uint8_t *at = record + c->meta_off;

		switch (c->type->type) {
		case BETON_TYPE_FLOAT:
			memcpy(at, &v->real, 8);
			break;
		case BETON_TYPE_INT:
			store64(at, (uint64_t)v->integer);
			break;
		case BETON_TYPE_IMAGE:
			at[0] = (uint8_t)v->mode;
			store16(at + 1, v->width);
			store16(at + 3, v->height);
			store64(at + 5, w->places[i]);
			break;
		case BETON_TYPE_BYTES:
		case BETON_TYPE_JSON:
			store64(at + 8, stored_size(c, v));
			/* fallthrough */
		default:
			store64(at, w->places[i]);
		}
	}
}

int writer_append(struct writer *w, const struct writer_value *values)
{
	uint64_t size = 0, used = w->end & (w->page_size - 1);
	int r = measure(w, values, &size);

	if (r)
		return r;
	if (w->samples == w->capacity) {
		log_error(w->log, "%s: more samples than announced", w->path);
		return -EINVAL;
	}
	/* The rest of a page stays a hole, which reads as zeros. */
	if (used && size > w->page_size - used) {
		r = flush(w);
		w->end = align_up(w->end, w->page_size);
	}
	for (size_t i = 0; i < w->num_columns && !r; i++) {
		const struct column *c = &w->columns[i];

		w->places[i] = w->end;
		if (!field_type_is_scalar(c->type))
			r = put_value(w, c, &values[i]);
	}
	if (r)
		return r;
	put_record(w, values);
	w->samples++;
	return 0;
}

/* --- the end ------------------------------------------------------------- */

/* Offsets of all values by `down` lower. */
static void lower_offsets(struct writer *w, uint64_t down)
{
	for (size_t i = 0; i < w->table_size; i++)
		w->table[i].off -= down;
	for (size_t k = 0; k < w->num_columns; k++) {
		const struct column *c = &w->columns[k];
		uint8_t *at = w->records + c->meta_off +
			      (c->type->type == BETON_TYPE_IMAGE ? 5 : 0);

		if (field_type_is_scalar(c->type))
			continue;
		for (uint64_t i = 0; i < w->samples; i++, at += w->itemsize)
			store64(at, load64(at) - down);
	}
}

/*
 * FFCV has the first page where the records of the samples that there are end.
 * With fewer samples than announced that can be some pages before `first_page`.
 */
static int close_gap(struct writer *w)
{
	uint64_t first = align_up(w->meta_off + w->samples * w->itemsize,
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

	/* The entry in memory is the one in the file. */
	_Static_assert(sizeof(*w->table) == FORMAT_ENTRY_SIZE, "layout");
	return outfile_write(w->file, w->table, size, at);
}

static int write_header(struct writer *w, uint64_t table_at)
{
	uint8_t header[FORMAT_HEADER_SIZE];

	store16(header, FORMAT_VERSION);
	store16(header + 2, (uint16_t)w->num_columns);
	store32(header + 4, w->page_size);
	store64(header + 8, w->samples);
	store64(header + 16, table_at);
	return outfile_write(w->file, header, sizeof(header), 0);
}

static int write_rest(struct writer *w)
{
	uint64_t meta_size = w->samples * w->itemsize, table_at;
	int r = flush(w);

	r = r ? r : close_gap(w);
	if (r)
		return r;
	/* Without allocations there are no pages, and nothing follows. */
	table_at = w->table_size ? align_up(w->end, w->page_size)
				 : w->meta_off + meta_size;
	r = outfile_resize(w->file, table_at);
	r = r ? r : write_table(w, table_at);
	r = r ? r
	      : outfile_write(w->file, w->descriptors,
			      w->meta_off - FORMAT_HEADER_SIZE,
			      FORMAT_HEADER_SIZE);
	r = r ? r : outfile_write(w->file, w->records, meta_size, w->meta_off);
	return r ? r : write_header(w, table_at);
}

int writer_finish(struct writer **writer)
{
	struct writer *w = *writer;
	int r = write_rest(w);

	if (!r)
		r = outfile_publish(&w->file);
	writer_abort(writer);
	return r;
}
