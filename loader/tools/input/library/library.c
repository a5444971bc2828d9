/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and datasets that a Python library writes and reads, as a source: a
 * process of betonfs's Python package (server.h) reads them with that library,
 * in the order of the source, and gives blocks of rows in shared memory. For
 * another order, the rows are copied to a file first (spool.h).
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/thread.h"
#include "fs/base/util/utf8.h"
#include "loader/tools/input/kinds.h"
#include "loader/tools/input/library/pass.h"
#include "loader/tools/input/library/schema.h"
#include "loader/tools/input/library/spool.h"
#include "loader/tools/input/library/unite.h"
#include "loader/tools/picture/picture.h"

enum { NEED_SIZE = PATH_MAX + 256 };

/* The samples that are read now, and how. */
struct library_reading {
	struct pass *pass;   /* NULL: nothing is read */
	struct spool *spool; /* NULL: blocks come from the pass */
	uint64_t *ids;	     /* ascending, each once; NULL: from `first` on */
	uint64_t first;
	uint64_t count;
	uint64_t rows;
	uint32_t *column_of; /* by field */
};

struct library {
	struct input input;
	struct server server;
	char *path; /* the first one */
	json_t *description;
	json_t *casts;	     /* descriptions of fields that were converted */
	struct unite *unite; /* NULL: all files have equal columns */
	struct library_reading now;
};

struct library_reader {
	struct input_reader reader;
	struct block *block;
	uint64_t index; /* of the block */
};

static struct library *of(const struct input *in)
{
	return (struct library *)in;
}

/* --- opening ------------------------------------------------------------- */

/* Python reads what no other kind does. */
static bool matches(const struct input_path *path)
{
	(void)path;
	return true;
}

static void end_reading(struct library_reading *r)
{
	pass_close(r->pass);
	spool_close(r->spool);
	free(r->ids);
	free(r->column_of);
	*r = (struct library_reading){ 0 };
}

static void close_library(struct input *in)
{
	struct library *l = of(in);

	if (!l)
		return;
	end_reading(&l->now);
	server_end(&l->server);
	for (size_t i = 0; i < in->num_fields; i++)
		free((void *)in->fields[i].classes);
	free(in->fields);
	unite_close(l->unite);
	json_decref(l->description);
	json_decref(l->casts);
	free(l->path);
	free(l);
}

static json_t *open_request(const struct input_setup *setup)
{
	char names[PICTURE_LIST_SIZE];

	return json_pack("{s:b, s:b, s:s, s:s?, s:s, s:i, s:i}", "open", 1,
			 "verbose", setup->log->level >= BETON_LOG_DEBUG,
			 "pictures", picture_extensions(names), "split",
			 setup->split, "mode", setup->mode, "quality",
			 setup->quality, "max_resolution",
			 setup->max_resolution);
}

/* Errors that Python has found name the path. */
static int fail(const struct library *l, int r, const char *why)
{
	if (*why && r == -EBADMSG)
		log_error(l->input.log, "%s", why);
	else if (*why)
		log_error(l->input.log, "%s: %s", l->path, why);
	return r;
}

/* Sends a request, and parses the file of its answer. */
static int ask(struct library *l, json_t *request, json_t **out)
{
	char why[SERVER_WHY_SIZE];
	cleanup_fd int fd = -1;
	int r = server_ask(&l->server, 0, request, -1, why);

	json_decref(request);
	r = r ? r : server_answer(&l->server, 0, &fd, why);
	r = r ? r : server_parse(fd, out, why);
	return r ? fail(l, r, why) : 0;
}

/* Prints what needs Python, for messages. */
static void print_need(const struct input_path *path, char out[NEED_SIZE])
{
	char names[PICTURE_LIST_SIZE];

	if (S_ISDIR(path->st.st_mode))
		snprintf(
			out, NEED_SIZE,
			"%s: no image files (%s); a dataset of a Python library",
			path->path, picture_extensions(names));
	else
		snprintf(out, NEED_SIZE, "%s", path->path);
}

static int start(struct library *l, const struct input_setup *setup)
{
	char need[NEED_SIZE];

	cleanup_free const char **paths =
		calloc(setup->num_paths + 1, sizeof(*paths));

	l->path = strdup(setup->paths[0].path);
	if (!paths || !l->path)
		return log_no_memory(l->input.log, NULL);
	for (size_t i = 0; i < setup->num_paths; i++)
		paths[i] = setup->paths[i].path;
	print_need(&setup->paths[0], need);
	return server_start(&l->server, need, paths, l->input.log);
}

static int open_source(struct library *l, const struct input_setup *setup)
{
	char why[SERVER_WHY_SIZE];
	int r = start(l, setup);

	r = r ? r : ask(l, open_request(setup), &l->description);
	r = r ? r : schema_read(l->description, &l->input);
	r = r ? r : unite_open(l->description, &l->input, &l->unite);
	l->casts = json_array();
	if (r || !json_is_true(json_object_get(l->description, "lanes")))
		return r;
	r = server_add_lanes(&l->server, thread_usable_cpus(), why);
	return r ? fail(l, r, why) : 0;
}

static int open_library(const struct input_setup *setup, struct input **out)
{
	struct library *l = input_new(&input_library, sizeof(*l), setup->log);
	int r;

	if (!l)
		return -ENOMEM;
	r = open_source(l, setup);
	if (r)
		close_library(&l->input);
	else
		*out = &l->input;
	return r;
}

static int cast(struct input *in, size_t field, const char *type)
{
	struct library *l = of(in);
	json_t *description;
	int r = ask(l,
		    json_pack("{s:i, s:s}", "cast",
			      (int)in->fields[field].index, "type", type),
		    &description);

	if (r)
		return r;
	json_array_append_new(l->casts, description);
	return schema_add_field(description, in);
}

/* --- a reading ----------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Lists the samples in ascending order, each once. Returns whether that is
   their order. */
static bool sort_ids(struct library_reading *r)
{
	bool ascends = true;
	uint64_t n = 0;

	for (uint64_t i = 1; i < r->count && ascends; i++)
		ascends = r->ids[i] > r->ids[i - 1];
	if (ascends)
		return true;
	qsort(r->ids, r->count, sizeof(*r->ids), compare_ids);
	for (uint64_t i = 0; i < r->count; i++)
		if (!n || r->ids[i] != r->ids[n - 1])
			r->ids[n++] = r->ids[i];
	r->count = n;
	return false;
}

/* Sets the samples of a reading. *ascends: they are read in their order. */
static int take_order(struct library *l, const struct input_order *order,
		      bool *ascends)
{
	struct library_reading *r = &l->now;
	uint64_t i = 0;

	r->count = order->count;
	r->first = order->count ? order->at(order->arg, 0) : 0;
	*ascends = true;
	while (i < r->count && order->at(order->arg, i) == r->first + i)
		i++;
	if (i == r->count)
		return 0;
	r->ids = calloc(r->count, sizeof(*r->ids));
	if (!r->ids)
		return log_no_memory(l->input.log, NULL);
	for (i = 0; i < r->count; i++)
		r->ids[i] = order->at(order->arg, i);
	*ascends = sort_ids(r);
	return 0;
}

static int open_pass(struct library *l, const bool *wanted)
{
	const struct input *in = &l->input;
	struct library_reading *r = &l->now;
	cleanup_free uint32_t *columns =
		calloc(in->num_fields + 1, sizeof(*columns));
	struct pass_setup setup = {
		.server = &l->server,
		.path = l->path,
		.log = in->log,
		.columns = columns,
		.ids = r->ids,
		.first = r->first,
		.count = r->count,
		.rows = r->rows,
	};

	r->column_of = calloc(in->num_fields + 1, sizeof(*r->column_of));
	if (!columns || !r->column_of)
		return log_no_memory(l->input.log, NULL);
	for (size_t i = 0; i < in->num_fields; i++) {
		if (!wanted[i])
			continue;
		r->column_of[i] = (uint32_t)setup.num_columns;
		columns[setup.num_columns++] = in->fields[i].index;
	}
	return pass_open(&setup, &r->pass) ? log_no_memory(l->input.log, NULL)
					   : 0;
}

static size_t count_wanted(const struct input *in, const bool *wanted)
{
	size_t n = 0;

	for (size_t i = 0; i < in->num_fields; i++)
		n += wanted[i];
	return n;
}

static int begin(struct input *in, const bool *wanted,
		 const struct input_order *order)
{
	struct library *l = of(in);
	struct library_reading *r = &l->now;
	bool ascends;
	int e;

	end_reading(r);
	r->rows = (uint64_t)json_integer_value(
		json_object_get(l->description, "rows"));
	e = take_order(l, order, &ascends);
	e = e ? e : open_pass(l, wanted);
	if (e || ascends)
		return e;
	return spool_open(r->pass, r->rows, r->count, count_wanted(in, wanted),
			  in->log, &r->spool);
}

/* --- reading ------------------------------------------------------------- */

static int reader_open(struct input *in, struct input_reader **out)
{
	return input_reader_new(in, sizeof(struct library_reader), out);
}

static void reader_close(struct input_reader *reader)
{
	if (reader)
		block_put(&((struct library_reader *)reader)->block);
	input_reader_free(reader);
}

/* Returns the position of a sample among those that are read. */
static uint64_t rank_of(const struct library_reading *r, uint64_t sample)
{
	const uint64_t *found;

	if (!r->ids)
		return sample - r->first;
	found = bsearch(&sample, r->ids, r->count, sizeof(*r->ids),
			compare_ids);
	return found ? (uint64_t)(found - r->ids) : r->count;
}

static int move_to(struct library_reader *reader,
		   const struct library_reading *r, uint64_t index,
		   struct input_error *error)
{
	int e;

	if (reader->block && reader->index == index)
		return 0;
	block_put(&reader->block);
	e = r->spool ? spool_block(r->spool, index, &reader->block)
		     : pass_block(r->pass, index, &reader->block);
	reader->index = index;
	if (!e)
		return 0;
	input_refuse(error, e, "the source cannot be read");
	error->fatal = true;
	return e;
}

static int read_value(const struct library_reader *reader,
		      const struct library_reading *r, size_t field,
		      uint64_t row, struct input_value *out,
		      struct input_error *error)
{
	const struct input_field *f = &reader->reader.input->fields[field];
	struct block_value v = { 0 };
	int e = block_value(reader->block, r->column_of[field], row, &v);

	if (!e && f->type == INPUT_ARRAY && v.size != input_array_size(f))
		e = -EBADMSG;
	if (e)
		return input_refuse(error, e, "field %.60s: a damaged value",
				    f->name);
	if (f->type == INPUT_TEXT && !utf8_is_text(v.bytes, v.size))
		return input_refuse(error, -EBADMSG,
				    "field %.60s: text that is no UTF-8, or "
				    "contains a NUL",
				    f->name);
	*out = (struct input_value){
		.bytes = v.bytes,
		.size = v.size,
		.integer = v.integer,
		.real = v.real,
		.channels = v.channels,
		.width = v.width,
		.height = v.height,
	};
	return 0;
}

/* Sets the numbers of labels among the classes of all files. */
static int unite_labels(const struct input *in, uint64_t sample,
			const bool *wanted, struct input_value *values,
			struct input_error *error)
{
	const struct library *l = of(in);
	uint64_t first;
	size_t part = schema_part(l->description, sample, &first);
	int r = 0;

	for (size_t i = 0; i < in->num_fields && !r; i++)
		if (wanted[i] && in->fields[i].type == INPUT_INT)
			r = unite_label(l->unite, in, i, part, &values[i],
					error);
	return r;
}

static int read_sample(struct input_reader *input_reader, uint64_t sample,
		       const bool *wanted, struct input_value *values,
		       struct input_error *error)
{
	struct library_reader *reader = (struct library_reader *)input_reader;
	const struct input *in = input_reader->input;
	const struct library_reading *r = &of(in)->now;
	uint64_t rank = rank_of(r, sample);
	int e = rank < r->count ? move_to(reader, r, rank / r->rows, error)
				: input_refuse(error, -EINVAL,
					       "a sample that is not read");

	if (e)
		return e;
	if (block_refuses(reader->block, rank % r->rows, error->why,
			  sizeof(error->why)))
		return -EBADMSG;
	for (size_t i = 0; i < in->num_fields && !e; i++)
		if (wanted[i])
			e = read_value(reader, r, i, rank % r->rows, &values[i],
				       error);
	return e || !of(in)->unite
		       ? e
		       : unite_labels(in, sample, wanted, values, error);
}

static void describe(const struct input *in, uint64_t sample, char *out,
		     size_t size)
{
	schema_describe(of(in)->description, sample, out, size);
}

const struct input_kind input_library = {
	.name = "library",
	.words = "files of Python libraries",
	.has_splits = true,
	.matches = matches,
	.open = open_library,
	.cast = cast,
	.begin = begin,
	.reader_open = reader_open,
	.read = read_sample,
	.reader_close = reader_close,
	.describe = describe,
	.close = close_library,
};
