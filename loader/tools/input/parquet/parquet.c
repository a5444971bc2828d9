/* SPDX-License-Identifier: Apache-2.0 */
/* Apache Parquet files as an input. Each row is a sample. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "loader/tools/input/foreign/values.h"
#include "loader/tools/input/input.h"
#include "loader/tools/input/parquet/columns.h"

/* Values of the first row group that decide if a column has images. */
enum { LOOK_AT = 100 };

/* A column within a row group. */
struct piece {
	struct pq_chunk chunk;
	/* Found by the first reader that needs them. */
	_Atomic(struct pq_pages *) pages;
};

/* A row group with rows. */
struct part {
	size_t file;
	uint64_t first; /* row of the input */
	uint64_t rows;
	struct piece *pieces; /* one per field */
};

struct parquet {
	struct input in;
	char **paths;
	size_t num_paths;
	struct pq_column *columns; /* one per field */
	struct part *parts;
	size_t num_parts;
	size_t room; /* for parts */
};

/* The pages of a column that a thread holds. */
struct cursor {
	size_t part;
	const struct pq_pages *pages; /* NULL: of no part */
	size_t number;		      /* of the page that was used last */
	struct pq_page page;
	struct pq_page dictionary;
	struct scratch array;
};

struct parquet_reader {
	struct input_reader reader;
	struct input_file file;
	struct scratch packed;
	size_t part;
	struct cursor *cursors;
};

/* --- closing ------------------------------------------------------------- */

static void free_classes(struct input_field *f)
{
	for (size_t i = 0; i < f->num_classes; i++)
		free((char *)(uintptr_t)f->classes[i]);
	free((void *)(uintptr_t)f->classes);
}

static void parquet_close(struct input *in)
{
	struct parquet *q = (struct parquet *)in;

	if (!q)
		return;
	for (size_t i = 0; i < q->num_parts; i++) {
		for (size_t f = 0; f < in->num_fields; f++)
			free(q->parts[i].pieces[f].pages);
		free(q->parts[i].pieces);
	}
	for (size_t i = 0; i < q->num_paths; i++)
		free(q->paths[i]);
	for (size_t f = 0; f < in->num_fields; f++)
		free_classes(&in->fields[f]);
	free(q->paths);
	free(q->parts);
	free(q->columns);
	free(in->fields);
	free(q);
}

/* --- reading ------------------------------------------------------------- */

static int parquet_reader_open(struct input *in, struct input_reader **out)
{
	struct parquet_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->reader.input = in;
	r->file.fd = -1;
	r->cursors = calloc(in->num_fields + 1, sizeof(*r->cursors));
	if (!r->cursors) {
		free(r);
		return -ENOMEM;
	}
	*out = &r->reader;
	return 0;
}

static void parquet_reader_close(struct input_reader *reader)
{
	struct parquet_reader *r = (struct parquet_reader *)reader;

	if (!r)
		return;
	for (size_t f = 0; f < reader->input->num_fields; f++) {
		pq_page_fini(&r->cursors[f].page);
		pq_page_fini(&r->cursors[f].dictionary);
		scratch_fini(&r->cursors[f].array);
	}
	input_file_close(&r->file);
	scratch_fini(&r->packed);
	free(r->cursors);
	free(r);
}

static size_t find_part(const struct parquet *q, size_t hint, uint64_t row)
{
	size_t low = 0, high = q->num_parts;

	if (row >= q->parts[hint].first &&
	    row - q->parts[hint].first < q->parts[hint].rows)
		return hint;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (q->parts[middle].first <= row)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static int move_to_part(const struct pq_source *s, struct piece *piece,
			size_t part, struct cursor *c)
{
	struct pq_pages *pages = atomic_load(&piece->pages), *none = NULL;
	int r;

	if (c->pages && c->part == part)
		return 0;
	c->pages = NULL;
	c->page.at = 0;
	c->dictionary.at = 0;
	if (!pages) {
		r = pq_pages_find(s, &pages);
		if (r)
			return r;
		/* Another thread can have been faster. */
		if (!atomic_compare_exchange_strong(&piece->pages, &none,
						    pages)) {
			free(pages);
			pages = none;
		}
	}
	c->pages = pages;
	c->part = part;
	c->number = 0;
	return 0;
}

static size_t find_page(const struct pq_pages *pages, size_t hint,
			uint64_t value)
{
	size_t low = 0, high = pages->n;

	if (value >= pages->place[hint].first &&
	    value < pages->place[hint + 1].first)
		return hint;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (pages->place[middle].first <= value)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Loads the page of a value of the part. */
static int move_to_value(const struct pq_source *s, uint64_t value,
			 struct cursor *c)
{
	const struct pq_place *place;
	size_t number;
	int r = 0;

	if (!c->pages->n || value >= c->pages->place[c->pages->n].first)
		return input_refuse(s->error, -EBADMSG, "no such value");
	number = find_page(c->pages, c->number, value);
	place = &c->pages->place[number];
	if (c->page.at && number == c->number)
		return 0;
	c->number = number;
	if (c->pages->dictionary_at && !c->dictionary.at)
		r = pq_dictionary_load(s, c->pages->dictionary_at,
				       &c->dictionary);
	r = r ? r : pq_page_load(s, place, &c->dictionary, &c->page);
	if (!r && c->page.num_values != place[1].first - place->first) {
		c->page.at = 0;
		r = input_refuse(s->error, -EBADMSG,
				 "a page changed while it was read");
	}
	return r;
}

static double real_of(const struct pq_column *c, const struct pq_datum *d)
{
	double wide;
	float narrow;

	if (d->size == 2)
		return input_half_float(load16(d->bytes));
	if (c->leaf.type == PQ_FLOAT) {
		memcpy(&narrow, d->bytes, sizeof(narrow));
		return (double)narrow;
	}
	memcpy(&wide, d->bytes, sizeof(wide));
	return wide;
}

static int integer_of(const struct pq_column *c, const struct pq_datum *d,
		      int64_t *out, struct input_error *error)
{
	uint64_t v;

	if (d->size == 1)
		v = d->bytes[0];
	else if (d->size == 4)
		v = c->is_unsigned ? load32(d->bytes)
				   : (uint64_t)(int32_t)load32(d->bytes);
	else
		v = load64(d->bytes);
	if (c->is_unsigned && v > INT64_MAX)
		return input_refuse(error, -EFBIG,
				    "%" PRIu64 ", but a dataset holds integers "
				    "up to %" PRId64,
				    v, INT64_MAX);
	*out = (int64_t)v;
	return 0;
}

/* The value's bytes move into the cursor if they are the datum's own. */
static int bytes_of(struct cursor *cursor, const struct pq_datum *d,
		    struct input_value *out, struct input_error *error)
{
	out->bytes = d->bytes;
	out->size = d->size;
	if (d->bytes != d->small)
		return 0;
	if (scratch_grow(&cursor->array, sizeof(d->small), 1))
		return input_refuse(error, -ENOMEM, "out of memory");
	memcpy(cursor->array.p, d->small, sizeof(d->small));
	out->bytes = cursor->array.p;
	return 0;
}

static int read_scalar(const struct pq_source *s, const struct input_field *f,
		       const struct pq_column *column, uint64_t row,
		       struct cursor *c, struct input_value *out)
{
	struct pq_datum d;
	int r = move_to_value(s, row, c);

	if (r)
		return r;
	pq_page_get(&c->page, &c->dictionary,
		    row - c->pages->place[c->number].first, &d);
	if (!d.bytes)
		return input_refuse(s->error, -EBADMSG,
				    f->type == INPUT_IMAGE
					    ? "a null: the file has no image "
					      "here, perhaps only its path"
					    : "a null");
	if (f->type == INPUT_INT)
		return integer_of(column, &d, &out->integer, s->error);
	if (f->type == INPUT_FLOAT) {
		out->real = real_of(column, &d);
		return 0;
	}
	r = bytes_of(c, &d, out, s->error);
	return r ? r : input_check_value(f, out, s->error);
}

static void copy_elements(const struct cursor *c, uint64_t first, uint64_t n,
			  unsigned element, uint8_t *to)
{
	const struct pq_page *p = &c->page;
	struct pq_datum d;

	if (p->form == PQ_FIXED && p->width == element) {
		memcpy(to, p->values + first * element, n * element);
		return;
	}
	for (uint64_t i = 0; i < n; i++) {
		pq_page_get(p, &c->dictionary, first + i, &d);
		memcpy(to + i * element, d.bytes, element);
	}
}

/* The elements of a row can be in several pages. */
static int read_array(const struct pq_source *s, const struct pq_column *column,
		      uint64_t row, struct cursor *c, struct input_value *out)
{
	uint64_t left = column->leaf.stride[0], value = row * left, some;
	uint8_t *to;
	int r;

	if (scratch_grow(&c->array, left, column->element))
		return input_refuse(s->error, -ENOMEM, "out of memory");
	to = c->array.p;
	out->bytes = to;
	out->size = left * column->element;
	for (; left; left -= some, value += some) {
		uint64_t first;

		r = move_to_value(s, value, c);
		if (r)
			return r;
		first = value - c->pages->place[c->number].first;
		some = min_u64(left, c->page.num_values - first);
		copy_elements(c, first, some, column->element, to);
		to += some * column->element;
	}
	return 0;
}

static int read_field(struct parquet_reader *reader, size_t f, uint64_t row,
		      struct input_value *out, struct input_error *error)
{
	struct parquet *q = (struct parquet *)reader->reader.input;
	const struct pq_column *column = &q->columns[f];
	const struct input_field *field = &q->in.fields[f];
	struct part *part = &q->parts[reader->part];
	struct cursor *c = &reader->cursors[f];
	struct pq_source s = {
		.file = &reader->file,
		.chunk = &part->pieces[f].chunk,
		.leaf = &column->leaf,
		.packed = &reader->packed,
		.error = error,
	};
	int r;

	if (field->refused[0])
		return input_refuse(error, -ENOTSUP, "%s", field->refused);
	r = move_to_part(&s, &part->pieces[f], reader->part, c);
	if (r)
		return r;
	if (column->leaf.repetitions)
		return read_array(&s, column, row, c, out);
	return read_scalar(&s, field, column, row, c, out);
}

static int parquet_read(struct input_reader *r, uint64_t sample,
			const bool *wanted, struct input_value *values,
			struct input_error *error)
{
	struct parquet_reader *reader = (struct parquet_reader *)r;
	struct parquet *q = (struct parquet *)r->input;
	struct input_error why;
	const struct part *part;
	int code;

	reader->part = find_part(q, reader->part, sample);
	part = &q->parts[reader->part];
	code = input_file_switch(&reader->file, q->paths[part->file],
				 part->file, error);
	for (size_t f = 0; f < q->in.num_fields && !code; f++) {
		if (!wanted[f])
			continue;
		values[f] = (struct input_value){ 0 };
		code = read_field(reader, f, sample - part->first, &values[f],
				  &why);
		if (code)
			input_refuse(error, code, "column '%.40s': %.100s",
				     q->in.fields[f].name, why.why);
	}
	return code;
}

static void parquet_describe(const struct input *in, uint64_t sample, char *out,
			     size_t size)
{
	const struct parquet *q = (const struct parquet *)in;
	size_t part = find_part(q, 0, sample), file = q->parts[part].file;
	size_t first = part;

	while (first && q->parts[first - 1].file == file)
		first--;
	snprintf(out, size, "%s, row %" PRIu64, q->paths[file],
		 sample - q->parts[first].first);
}

/* --- row groups ---------------------------------------------------------- */

static int no_memory(struct parquet *q)
{
	log_error(q->in.log, "out of memory");
	return -ENOMEM;
}

/* Returns why a chunk cannot be read, or NULL. */
static const char *check_chunk(const struct pq_column *c,
			       const struct pq_chunk *chunk, uint64_t rows)
{
	if (chunk->is_encrypted)
		return "encrypted";
	if (chunk->type != c->leaf.type)
		return "a row group of another type than the schema";
	if (!c->leaf.repetitions && chunk->num_values != rows)
		return "another number of values than of rows";
	return NULL;
}

static int add_part(struct parquet *q, size_t file, const struct pq_group *g)
{
	struct part *part;
	void *more;

	if (q->num_parts == q->room) {
		q->room = q->room ? 2 * q->room : 16;
		more = reallocarray(q->parts, q->room, sizeof(*q->parts));
		if (!more)
			return no_memory(q);
		q->parts = more;
	}
	part = &q->parts[q->num_parts];
	*part = (struct part){ .file = file,
			       .first = q->in.num_samples,
			       .rows = g->rows };
	if (!add_ok(q->in.num_samples, g->rows, &q->in.num_samples) ||
	    q->in.num_samples > INT64_MAX) {
		log_error(q->in.log, "%s: too many rows", q->paths[file]);
		return -EFBIG;
	}
	part->pieces = calloc(q->in.num_fields + 1, sizeof(*part->pieces));
	if (!part->pieces)
		return no_memory(q);
	q->num_parts++;
	for (size_t f = 0; f < q->in.num_fields; f++) {
		const struct pq_column *c = &q->columns[f];
		const char *why = NULL;

		part->pieces[f].chunk = g->chunks[c->chunk];
		if (!q->in.fields[f].refused[0])
			why = check_chunk(c, &g->chunks[c->chunk], g->rows);
		if (why) {
			log_error(q->in.log, "%s: column '%s': %s",
				  q->paths[file], q->in.fields[f].name, why);
			return -EBADMSG;
		}
	}
	return 0;
}

/* --- Hugging Face -------------------------------------------------------- */

static int add_classes(struct parquet *q, struct input_field *f,
		       const json_t *names)
{
	size_t n = json_array_size(names);
	char **classes;

	if (!n || f->type != INPUT_INT || f->classes)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (!json_is_string(json_array_get(names, i)))
			return 0;
	classes = calloc(n, sizeof(*classes));
	if (!classes)
		return no_memory(q);
	f->classes = (const char *const *)classes;
	f->num_classes = n;
	for (size_t i = 0; i < n; i++) {
		classes[i] =
			strdup(json_string_value(json_array_get(names, i)));
		if (!classes[i])
			return no_memory(q);
	}
	return 0;
}

static int use_feature(struct parquet *q, size_t f, const json_t *feature)
{
	const char *type = json_string_value(json_object_get(feature, "_type"));
	struct input_field *field = &q->in.fields[f];

	if (type && !strcmp(type, "ClassLabel"))
		return add_classes(q, field, json_object_get(feature, "names"));
	if (type && !strcmp(type, "Image") && q->columns[f].may_be_image) {
		field->type = INPUT_IMAGE;
		q->columns[f].may_be_image = false;
	}
	return 0;
}

/* A description that is damaged describes nothing. */
static int use_features(struct parquet *q, const struct pq_footer *footer)
{
	json_t *root, *features;
	int r = 0;

	if (!footer->features)
		return 0;
	root = json_loadb(footer->features, footer->features_size, 0, NULL);
	features = json_object_get(json_object_get(root, "info"), "features");
	for (size_t f = 0; f < q->in.num_fields && !r; f++)
		r = use_feature(
			q, f, json_object_get(features, q->in.fields[f].name));
	json_decref(root);
	return r;
}

/* --- opening ------------------------------------------------------------- */

static bool same_leaf(const struct pq_column *a, const struct pq_column *b)
{
	return a->leaf.type == b->leaf.type &&
	       a->leaf.length == b->leaf.length &&
	       a->leaf.definitions == b->leaf.definitions &&
	       a->leaf.repetitions == b->leaf.repetitions &&
	       a->chunk == b->chunk && a->is_unsigned == b->is_unsigned;
}

static int refuse_schema(struct parquet *q, const char *path, const char *name,
			 const char *what)
{
	log_error(q->in.log,
		  "%s: column '%s': %s than in %s: convert the files apart",
		  path, name, what, q->paths[0]);
	return -EINVAL;
}

/* Compares the schema of another file with that of the first. */
static int check_schema(struct parquet *q, const struct pq_footer *footer,
			const char *path)
{
	struct input other = { .log = q->in.log };
	struct pq_column *columns = NULL;
	int r = pq_columns_find(footer, &other, &columns);

	if (!r && other.num_fields != q->in.num_fields)
		r = refuse_schema(q, path, "*", "another number of columns");
	for (size_t f = 0; f < other.num_fields && !r; f++) {
		const struct input_field *a = &q->in.fields[f];

		if (strcmp(a->name, other.fields[f].name) != 0)
			r = refuse_schema(q, path, other.fields[f].name,
					  "another name");
		else if (strcmp(a->dtype, other.fields[f].dtype) != 0 ||
			 !same_leaf(&q->columns[f], &columns[f]))
			r = refuse_schema(q, path, a->name, "another type");
	}
	free(columns);
	free(other.fields);
	return r;
}

static int add_file(struct parquet *q, size_t file)
{
	const char *path = q->paths[file];
	struct pq_footer footer;
	int r = pq_footer_open(path, q->in.log, &footer);

	if (r)
		return r;
	if (file)
		r = check_schema(q, &footer, path);
	else
		r = pq_columns_find(&footer, &q->in, &q->columns);
	if (!r && !file)
		r = use_features(q, &footer);
	for (size_t i = 0; i < footer.num_groups && !r; i++)
		if (footer.groups[i].rows)
			r = add_part(q, file, &footer.groups[i]);
	pq_footer_close(&footer);
	return r;
}

/* Finds the shape of a column of lists. All of its row groups must have it. */
static void measure_field(struct parquet *q, struct parquet_reader *reader,
			  size_t f)
{
	struct input_field *field = &q->in.fields[f];
	struct pq_column *c = &q->columns[f];
	struct piece *piece = &q->parts[0].pieces[f];
	struct input_error error = { .why = "" };
	struct pq_source s = { &reader->file, &piece->chunk, &c->leaf,
			       &reader->packed, &error };
	int r = move_to_part(&s, piece, 0, &reader->cursors[f]);

	if (!r && !reader->cursors[f].pages->n)
		r = input_refuse(&error, -ENOTSUP, "lists of several lengths");
	r = r ? r
	      : pq_measure_lists(&s, &reader->cursors[f].pages->place[0],
				 q->parts[0].rows, &c->leaf, field->shape);
	for (size_t i = 0; i < q->num_parts && !r; i++) {
		uint64_t n = q->parts[i].pieces[f].chunk.num_values;

		if (n % q->parts[i].rows ||
		    n / q->parts[i].rows != c->leaf.stride[0])
			r = input_refuse(&error, -ENOTSUP,
					 "lists of several lengths");
	}
	if (r)
		snprintf(field->refused, sizeof(field->refused),
			 "%.100s: leave the column out with --fields",
			 error.why);
}

/* Bytes become images if the first ones begin so. */
static void look_for_images(struct parquet *q, struct parquet_reader *reader,
			    size_t f)
{
	uint64_t n = min_u64(q->parts[0].rows, LOOK_AT), images = 0, others = 0;
	struct input_error error;
	struct input_value value;

	reader->part = 0;
	for (uint64_t row = 0; row < n && !others; row++) {
		if (read_field(reader, f, row, &value, &error))
			continue;
		if (input_is_image(value.bytes, value.size))
			images++;
		else
			others++;
	}
	if (images && !others)
		q->in.fields[f].type = INPUT_IMAGE;
}

static int look_at_values(struct parquet *q)
{
	struct input_reader *r = NULL;
	struct parquet_reader *reader;
	struct input_error error;
	int code;

	if (!q->num_parts)
		return 0;
	if (parquet_reader_open(&q->in, &r))
		return no_memory(q);
	reader = (struct parquet_reader *)r;
	code = input_file_switch(&reader->file, q->paths[q->parts[0].file],
				 q->parts[0].file, &error);
	if (code)
		log_error(q->in.log, "%s: %s", q->paths[q->parts[0].file],
			  error.why);
	for (size_t f = 0; f < q->in.num_fields && !code; f++) {
		if (q->in.fields[f].refused[0])
			continue;
		if (q->columns[f].leaf.repetitions)
			measure_field(q, reader, f);
		else if (q->columns[f].may_be_image)
			look_for_images(q, reader, f);
	}
	parquet_reader_close(r);
	return code;
}

static int copy_paths(struct parquet *q, const struct input_path *paths,
		      size_t n)
{
	q->paths = calloc(n + 1, sizeof(*q->paths));
	if (!q->paths)
		return no_memory(q);
	for (; q->num_paths < n; q->num_paths++) {
		q->paths[q->num_paths] = strdup(paths[q->num_paths].path);
		if (!q->paths[q->num_paths])
			return no_memory(q);
	}
	return 0;
}

static int parquet_open(const struct input_path *paths, size_t num_paths,
			struct log *log, struct input **out)
{
	struct parquet *q = calloc(1, sizeof(*q));
	int r;

	if (!q) {
		log_error(log, "out of memory");
		return -ENOMEM;
	}
	q->in.kind = &input_parquet;
	q->in.log = log;
	r = copy_paths(q, paths, num_paths);
	for (size_t i = 0; i < num_paths && !r; i++)
		r = add_file(q, i);
	r = r ? r : look_at_values(q);
	if (r) {
		parquet_close(&q->in);
		return r;
	}
	*out = &q->in;
	return 0;
}

static bool parquet_matches(const struct input_path *path)
{
	return path->head_size >= 4 && (!memcmp(path->head, "PAR1", 4) ||
					!memcmp(path->head, "PARE", 4));
}

const struct input_kind input_parquet = {
	.name = "parquet",
	.words = "Parquet files (.parquet)",
	.matches = parquet_matches,
	.open = parquet_open,
	.reader_open = parquet_reader_open,
	.read = parquet_read,
	.reader_close = parquet_reader_close,
	.describe = parquet_describe,
	.close = parquet_close,
};
