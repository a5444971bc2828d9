/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables as a source: CSV, TSV, or lines of JSON objects. A column is a field,
 * and may name files, relative to the directory of the table. Opening parses
 * all rows to find the types of the columns, and keeps 8 bytes per row. Rows
 * are parsed again when they are read.
 */
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/tools/formats/csv.h"
#include "loader/tools/input/column.h"
#include "loader/tools/input/convert.h"
#include "loader/tools/input/kinds.h"
#include "loader/tools/input/parts.h"

/* Rows from one whose line is known to the next. */
enum { LINES_STEP = 256 };

struct manifest {
	struct input input;
	struct parts parts;
	uint64_t *ends;		/* sizes of the parts' files */
	char **bases;		/* directories of the parts */
	char separator;		/* NUL: lines of JSON */
	struct column *columns; /* INPUT_FIELDS_MAX of them */
	uint64_t *rows;		/* offsets in their parts */
	uint64_t *lines;	/* of every LINES_STEP-th row */
	size_t room;
};

struct manifest_reader {
	struct input_reader reader;
	struct part_file file;
	struct input_memory line;
	json_t *object;		/* of the line; NULL: none */
	struct csv_cell *cells; /* one per field, as `at` */
	struct cell *at;
};

static struct manifest *of(const struct input *in)
{
	return (struct manifest *)in;
}

/* Returns the separator of a path's kind, NUL for lines of JSON. */
static char separator_of(const char *path)
{
	if (input_has_extension(path, "csv"))
		return ',';
	return input_has_extension(path, "tsv") ? '\t' : '\0';
}

static bool matches(const struct input_path *path)
{
	return S_ISREG(path->st.st_mode) &&
	       input_has_extension(path->path, "csv|tsv|jsonl|ndjson");
}

static void close_manifest(struct input *in)
{
	struct manifest *m = of(in);

	if (!m)
		return;
	for (size_t i = 0; m->columns && i < INPUT_FIELDS_MAX; i++)
		column_fini(&m->columns[i]);
	for (size_t i = 0; m->bases && i < m->parts.num; i++)
		free(m->bases[i]);
	free(m->columns);
	free(m->bases);
	free(m->ends);
	free(m->rows);
	free(m->lines);
	parts_fini(&m->parts);
	free(m->input.fields);
	free(m);
}

/* --- looking at rows ----------------------------------------------------- */

/* A part whose rows are looked at. */
struct manifest_scan {
	struct manifest *m;
	size_t part;
	struct records records;
	struct csv_cell *cells; /* INPUT_FIELDS_MAX */
};

static int refuse(const struct manifest_scan *s, int error, const char *format,
		  ...) __attribute__((format(printf, 3, 4)));

static int refuse(const struct manifest_scan *s, int error, const char *format,
		  ...)
{
	char why[2 * INPUT_WHY_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	log_error(s->m->input.log, "%s:%llu: %s", s->m->parts.at[s->part].path,
		  (unsigned long long)s->records.at_line, why);
	return error;
}

static int next_record(struct manifest_scan *s, char **text, size_t *size)
{
	int r = records_next(&s->records, text, size);

	if (r >= 0)
		return r;
	s->records.at_line = s->records.line + 1;
	if (r == -EFBIG)
		return refuse(s, r, "a line of more than %d MiB",
			      RECORD_MAX >> 20);
	return refuse(s, r, "%s",
		      r == -EBADMSG ? "a quote without an end, or the file "
				      "became shorter"
				    : strerror(-r));
}

static int reserve_row(struct manifest *m)
{
	size_t room = m->room ? 2 * m->room : 4 * LINES_STEP;
	uint64_t *rows, *lines;

	if (m->input.num_samples < m->room)
		return 0;
	rows = reallocarray(m->rows, room, sizeof(*rows));
	m->rows = rows ? rows : m->rows;
	lines = reallocarray(m->lines, room / LINES_STEP, sizeof(*lines));
	m->lines = lines ? lines : m->lines;
	if (!rows || !lines)
		return log_no_memory(m->input.log, NULL);
	m->room = room;
	return 0;
}

static int add_row(struct manifest *m, const struct records *records)
{
	uint64_t row = m->input.num_samples;
	int r = reserve_row(m);

	if (r)
		return r;
	m->rows[row] = records->off;
	if (row % LINES_STEP == 0)
		m->lines[row / LINES_STEP] = records->at_line;
	m->input.num_samples++;
	return 0;
}

static int look_at(struct manifest_scan *s, size_t i, const struct cell *cell)
{
	const char *why = "";
	int r = column_look(&s->m->columns[i], cell, &why);

	if (!r)
		return 0;
	return refuse(s, r, "column '%.60s': '%.40s': %s",
		      s->m->input.fields[i].name, cell->text ? cell->text : "",
		      why);
}

/* --- CSV ----------------------------------------------------------------- */

static int split(const struct manifest_scan *s, char *text, size_t size,
		 size_t *num)
{
	*num = csv_split(text, size, s->m->separator, s->cells,
			 INPUT_FIELDS_MAX);
	if (!*num)
		return refuse(s, -EINVAL,
			      "characters behind the quote that "
			      "ends a cell");
	return 0;
}

static int add_column(struct manifest_scan *s, size_t i)
{
	struct input *in = &s->m->input;
	const char *text = s->cells[i].text;
	size_t size = s->cells[i].size;
	cleanup_free char *name = NULL;

	convert_strip(&text, &size);
	name = strndup(text, size);
	if (!name)
		return refuse(s, -ENOMEM, "out of memory");
	column_declare(&s->m->columns[i], name);
	if (!*name)
		return refuse(s, -EINVAL,
			      "column %zu has no name: name it; pandas omits "
			      "its index by to_csv(index=False)",
			      i + 1);
	for (size_t k = 0; k < in->num_fields; k++)
		if (!strcmp(in->fields[k].name, name))
			return refuse(s, -EINVAL,
				      "two columns have the name '%.60s'",
				      name);
	return input_add_field(in, name, INPUT_TEXT) ? 0 : -ENOMEM;
}

/* Later tables have the columns of the first. */
static int check_columns(struct manifest_scan *s, size_t num)
{
	const struct input *in = &s->m->input;

	if (num != in->num_fields)
		return refuse(s, -EINVAL, "%zu columns, but %s has %zu", num,
			      s->m->parts.at[0].path, in->num_fields);
	for (size_t i = 0; i < num; i++) {
		struct column column = { .form = COLUMN_FORM_FOUND };
		const char *text = s->cells[i].text;
		size_t size = s->cells[i].size;
		cleanup_free char *name = NULL;

		convert_strip(&text, &size);
		name = strndup(text, size);
		if (!name)
			return refuse(s, -ENOMEM, "out of memory");
		column_declare(&column, name);
		if (strcmp(name, in->fields[i].name) != 0)
			return refuse(s, -EINVAL,
				      "column '%.60s', but '%.60s' in %s", name,
				      in->fields[i].name,
				      s->m->parts.at[0].path);
	}
	return 0;
}

static int read_header(struct manifest_scan *s)
{
	size_t size = 0, num = 0;
	char *text = NULL;
	int r = next_record(s, &text, &size);

	if (!r) {
		s->records.at_line = 1;
		return refuse(s, -ENODATA, "no header line");
	}
	if (r < 0)
		return r;
	if (size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		text += 3;
		size -= 3;
	}
	r = split(s, text, size, &num);
	if (!r && num > INPUT_FIELDS_MAX)
		r = refuse(s, -EINVAL, "%zu columns; there may be %d", num,
			   INPUT_FIELDS_MAX);
	if (!r && s->part)
		return check_columns(s, num);
	for (size_t i = 0; i < num && !r; i++)
		r = add_column(s, i);
	return r;
}

static int look_at_cells(struct manifest_scan *s, char *text, size_t size)
{
	size_t num = 0;
	int r = split(s, text, size, &num);

	if (!r && num != s->m->input.num_fields)
		return refuse(s, -EINVAL,
			      "%zu cells, but the header has %zu "
			      "columns",
			      num, s->m->input.num_fields);
	for (size_t i = 0; i < num && !r; i++)
		r = look_at(s, i,
			    &(struct cell){ .text = s->cells[i].text,
					    .size = s->cells[i].size });
	return r;
}

/* --- JSON ---------------------------------------------------------------- */

/* Returns the field of a key, first that at `hint`; num_fields: none. */
static size_t find_field(const struct input *in, const char *key, size_t hint)
{
	size_t i = 0;

	if (hint < in->num_fields && !strcmp(in->fields[hint].name, key))
		return hint;
	while (i < in->num_fields && strcmp(in->fields[i].name, key) != 0)
		i++;
	return i;
}

static struct cell json_cell(const json_t *v)
{
	return (struct cell){ v, json_string_value(v), json_string_length(v) };
}

static int add_key(struct manifest_scan *s, const char *key)
{
	if (!*key)
		return refuse(s, -EINVAL, "an empty key");
	return input_add_field(&s->m->input, key, INPUT_TEXT) ? 0 : -ENOMEM;
}

/* The first object has the keys of all. */
static int look_at_keys(struct manifest_scan *s, json_t *object)
{
	struct input *in = &s->m->input;
	bool first = !in->num_samples;
	const char *key;
	json_t *v;
	size_t i, hint = 0;
	int r = 0;

	json_object_foreach(object, key, v)
	{
		struct cell cell = json_cell(v);

		if (first)
			r = add_key(s, key);
		if (r)
			return r;
		i = find_field(in, key, hint++);
		if (i == in->num_fields)
			return refuse(s, -EINVAL,
				      "the key '%.60s', which the "
				      "first line lacks",
				      key);
		r = look_at(s, i, &cell);
		if (r)
			return r;
	}
	return 0;
}

static int look_at_object(struct manifest_scan *s, json_t *object)
{
	const struct input *in = &s->m->input;
	size_t num = json_object_size(object);
	int r;

	if (!json_is_object(object) || !num)
		return refuse(s, -EINVAL, "no JSON object with keys");
	if (num > INPUT_FIELDS_MAX)
		return refuse(s, -EINVAL, "%zu keys; there may be %d", num,
			      INPUT_FIELDS_MAX);
	r = look_at_keys(s, object);
	for (size_t i = 0; i < in->num_fields && !r; i++)
		if (num != in->num_fields &&
		    !json_object_get(object, in->fields[i].name))
			return refuse(s, -EINVAL, "the key '%.60s' is missing",
				      in->fields[i].name);
	return r;
}

static int look_at_line(struct manifest_scan *s, const char *text, size_t size)
{
	json_error_t error;
	json_t *object = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	int r;

	if (!object)
		return refuse(s, -EINVAL, "column %d: %.100s", error.column,
			      error.text);
	r = look_at_object(s, object);
	json_decref(object);
	return r;
}

/* --- opening ------------------------------------------------------------- */

static bool is_blank(const char *text, size_t size)
{
	convert_strip(&text, &size);
	return !size;
}

static int scan_rows(struct manifest_scan *s)
{
	size_t size = 0;
	char *text = NULL;
	int r = s->m->separator ? read_header(s) : 0;

	while (!r && (r = next_record(s, &text, &size)) > 0) {
		r = 0;
		if (is_blank(text, size))
			continue;
		r = s->m->separator ? look_at_cells(s, text, size)
				    : look_at_line(s, text, size);
		r = r ? r : add_row(s->m, &s->records);
	}
	return r;
}

static int scan_part(struct manifest *m, size_t part, struct csv_cell *cells)
{
	struct manifest_scan s = { .m = m, .part = part, .cells = cells };
	struct file file;
	int r = part_open(m->parts.at[part].path, m->input.log, &file);

	if (r)
		return r;
	m->parts.at[part].first = m->input.num_samples;
	m->ends[part] = file.size;
	s.records =
		(struct records){ .file = &file, .separator = m->separator };
	r = scan_rows(&s);
	records_fini(&s.records);
	file_close(&file);
	return r;
}

static int reserve_parts(struct manifest *m, const struct input_path *paths,
			 size_t num_paths)
{
	int r = parts_init(&m->parts, paths, num_paths, m->input.log);

	if (r)
		return r;
	m->ends = calloc(num_paths, sizeof(*m->ends));
	m->bases = calloc(num_paths, sizeof(*m->bases));
	m->columns = calloc(INPUT_FIELDS_MAX, sizeof(*m->columns));
	for (size_t i = 0; m->bases && i < num_paths; i++) {
		const char *slash = strrchr(paths[i].path, '/');
		size_t n = slash ? (size_t)(slash - paths[i].path) : 0;

		m->bases[i] = n ? strndup(paths[i].path, n)
				: strdup(slash ? "" : ".");
		if (!m->bases[i])
			r = -ENOMEM;
	}
	if (r || !m->ends || !m->bases || !m->columns)
		return log_no_memory(m->input.log, NULL);
	return 0;
}

static int scan_parts(struct manifest *m)
{
	cleanup_free struct csv_cell *cells =
		calloc(INPUT_FIELDS_MAX, sizeof(*cells));
	int r = cells ? 0 : -ENOMEM;

	if (r)
		log_error(m->input.log, "out of memory");
	for (size_t i = 0; i < m->parts.num && !r; i++)
		r = scan_part(m, i, cells);
	if (!r && !m->input.num_samples) {
		log_error(m->input.log, "%s: no rows", m->parts.at[0].path);
		r = -ENODATA;
	}
	for (size_t i = 0; i < m->input.num_fields && !r; i++)
		column_finish(&m->columns[i], !m->separator,
			      &m->input.fields[i]);
	return r;
}

static int check_paths(const struct input_path *paths, size_t num_paths,
		       struct log *log)
{
	for (size_t i = 1; i < num_paths; i++) {
		if (separator_of(paths[i].path) !=
		    separator_of(paths[0].path)) {
			log_error(log,
				  "%s and %s have different formats: give "
				  "tables of one format",
				  paths[0].path, paths[i].path);
			return -EINVAL;
		}
	}
	return 0;
}

static int open_manifest(const struct input_setup *setup, struct input **out)
{
	struct manifest *m;
	int r = check_paths(setup->paths, setup->num_paths, setup->log);

	if (r)
		return r;
	m = input_new(&input_manifest, sizeof(*m), setup->log);
	if (!m)
		return -ENOMEM;
	m->separator = separator_of(setup->paths[0].path);
	r = reserve_parts(m, setup->paths, setup->num_paths);
	r = r ? r : scan_parts(m);
	if (r)
		close_manifest(&m->input);
	else
		*out = &m->input;
	return r;
}

/* --- reading ------------------------------------------------------------- */

static void reader_close(struct input_reader *reader)
{
	struct manifest_reader *r = (struct manifest_reader *)reader;

	if (!r)
		return;
	json_decref(r->object);
	free(r->cells);
	free(r->at);
	input_memory_fini(&r->line);
	part_file_fini(&r->file);
	input_reader_free(reader);
}

static int reader_open(struct input *in, struct input_reader **out)
{
	struct manifest_reader *r;

	if (input_reader_new(in, sizeof(*r), &r))
		return -ENOMEM;
	r->cells = calloc(in->num_fields, sizeof(*r->cells));
	r->at = calloc(in->num_fields, sizeof(*r->at));
	if (!r->cells || !r->at) {
		reader_close(&r->reader);
		return -ENOMEM;
	}
	*out = &r->reader;
	return 0;
}

/* Reads the row's record. Blank lines may follow it. */
static int read_record(struct manifest_reader *r, uint64_t sample, size_t *size,
		       struct input_error *error)
{
	const struct manifest *m = of(r->reader.input);
	const struct part *part = parts_find(&m->parts, sample);
	size_t i = (size_t)(part - m->parts.at);
	uint64_t next = i + 1 < m->parts.num ? m->parts.at[i + 1].first
					     : m->input.num_samples;
	uint64_t end = sample + 1 < next ? m->rows[sample + 1] : m->ends[i];
	int status = part_file_move(&r->file, part);

	if (status)
		return input_refuse(error, status, "%s", strerror(-status));
	*size = (size_t)min_u64(end - m->rows[sample], RECORD_MAX);
	status = part_file_read(&r->file, &r->line, m->rows[sample], *size,
				error);
	if (!status)
		*size = record_find((char *)r->line.bytes, *size, m->separator);
	return status;
}

static int refuse_changed(struct input_error *error)
{
	return input_refuse(error, -EBADMSG, "the table has changed meanwhile");
}

static int parse_csv(struct manifest_reader *r, size_t size,
		     struct input_error *error)
{
	const struct manifest *m = of(r->reader.input);
	size_t num = m->input.num_fields;

	if (csv_split((char *)r->line.bytes, size, m->separator, r->cells,
		      num) != num)
		return refuse_changed(error);
	for (size_t i = 0; i < num; i++)
		r->at[i] = (struct cell){ .text = r->cells[i].text,
					  .size = r->cells[i].size };
	return 0;
}

static int parse_json(struct manifest_reader *r, size_t size,
		      struct input_error *error)
{
	const struct input *in = r->reader.input;

	json_decref(r->object);
	r->object = json_loadb((const char *)r->line.bytes, size, 0, NULL);
	for (size_t i = 0; i < in->num_fields; i++) {
		json_t *v = json_object_get(r->object, in->fields[i].name);

		if (!v)
			return refuse_changed(error);
		r->at[i] = json_cell(v);
	}
	return 0;
}

static int read_sample(struct input_reader *reader, uint64_t sample,
		       const bool *wanted, struct input_value *values,
		       struct input_error *error)
{
	struct manifest_reader *r = (struct manifest_reader *)reader;
	const struct manifest *m = of(reader->input);
	size_t size = 0;
	int status = read_record(r, sample, &size, error);
	const char *base;

	if (status)
		return status;
	status = m->separator ? parse_csv(r, size, error)
			      : parse_json(r, size, error);
	base = m->bases[r->file.part - m->parts.at];
	for (size_t i = 0; i < m->input.num_fields && !status; i++)
		if (wanted[i])
			status = column_value(&m->columns[i], &r->at[i], base,
					      &r->reader.memory[i], &values[i],
					      error);
	return status;
}

/* Counts the lines in bytes of a table. */
static uint64_t count_lines(const char *path, uint64_t from, uint64_t to)
{
	cleanup_free char *bytes = malloc(1 << 16);
	uint64_t lines = 0;
	struct file file;

	if (!bytes || file_open(path, &file))
		return 0;
	for (uint64_t at = from; at < to;) {
		size_t n = (size_t)min_u64(to - at, 1 << 16);

		if (file_read(&file, bytes, n, at))
			break;
		for (size_t i = 0; i < n; i++)
			lines += bytes[i] == '\n';
		at += n;
	}
	file_close(&file);
	return lines;
}

/* Memory has the lines of few rows, so counts those behind such a row, or from
   the start of the table. */
static uint64_t find_line(const struct manifest *m, const struct part *part,
			  uint64_t sample)
{
	uint64_t known = sample - sample % LINES_STEP, off = 0, line = 1;

	if (known >= part->first) {
		off = m->rows[known];
		line = m->lines[known / LINES_STEP];
	}
	return line + count_lines(part->path, off, m->rows[sample]);
}

static void describe(const struct input *in, uint64_t sample, char *out,
		     size_t size)
{
	const struct manifest *m = of(in);
	const struct part *part = parts_find(&m->parts, sample);

	snprintf(out, size, "%s:%llu", part->path,
		 (unsigned long long)find_line(m, part, sample));
}

const struct input_kind input_manifest = {
	.name = "manifest",
	.words = "tables (.csv, .tsv, .jsonl, .ndjson)",
	.matches = matches,
	.open = open_manifest,
	.reader_open = reader_open,
	.read = read_sample,
	.reader_close = reader_close,
	.describe = describe,
	.close = close_manifest,
};
