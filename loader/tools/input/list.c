/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths of image files on standard input, "-": one per line, or separated by
 * NULs, as find -print0 prints them. There are no labels, because paths of
 * unknown origin have no directories of classes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/tools/input/kinds.h"
#include "loader/util/read_file.h"

/* Bytes of all paths, which stay in memory. */
static const size_t LIST_MAX = (size_t)2 << 30;

struct list {
	struct input input;
	char *text;
	uint64_t *offsets; /* of the paths */
};

static struct list *of(const struct input *in)
{
	return (struct list *)in;
}

static bool matches(const struct input_path *path)
{
	return !strcmp(path->path, "-");
}

static void close_list(struct input *in)
{
	struct list *l = of(in);

	if (!l)
		return;
	free(l->text);
	free(l->offsets);
	free(l->input.fields);
	free(l);
}

static int read_input(struct list *l, size_t *size)
{
	int r = read_file_fd(STDIN_FILENO, LIST_MAX, &l->text, size);

	if (r == -EFBIG)
		log_error(l->input.log,
			  "standard input: more than %zu bytes "
			  "of paths",
			  LIST_MAX);
	else if (r)
		log_error(l->input.log, "standard input: %s", strerror(-r));
	return r;
}

/* Ends each path by a NUL, and counts them or stores their offsets. Empty lines
   are no paths. */
static uint64_t split(char *text, size_t size, char end, uint64_t *offsets)
{
	uint64_t n = 0;
	size_t length;

	for (size_t at = 0; at < size; at += length + 1) {
		char *stop = memchr(text + at, end, size - at);

		length = stop ? (size_t)(stop - text) - at : size - at;
		if (!length)
			continue;
		if (offsets) {
			offsets[n] = at;
			text[at + length] = '\0';
		}
		n++;
	}
	return n;
}

static int find_paths(struct list *l)
{
	size_t size = 0;
	int r = read_input(l, &size);
	char end;

	if (r)
		return r;
	end = memchr(l->text, '\0', size) ? '\0' : '\n';
	l->input.num_samples = split(l->text, size, end, NULL);
	if (!l->input.num_samples) {
		log_error(l->input.log, "standard input: no paths of images");
		return -ENODATA;
	}
	l->offsets = calloc(l->input.num_samples, sizeof(*l->offsets));
	if (!l->offsets || !input_add_field(&l->input, "image", INPUT_IMAGE))
		return log_no_memory(l->input.log, NULL);
	split(l->text, size, end, l->offsets);
	return 0;
}

static int open_list(const struct input_setup *setup, struct input **out)
{
	struct list *l;
	int r;

	if (setup->num_paths > 1) {
		log_error(setup->log,
			  "standard input is given %zu times as a source",
			  setup->num_paths);
		return -EINVAL;
	}
	l = input_new(&input_list, sizeof(*l), setup->log);
	if (!l)
		return -ENOMEM;
	r = find_paths(l);
	if (r)
		close_list(&l->input);
	else
		*out = &l->input;
	return r;
}

static int reader_open(struct input *in, struct input_reader **out)
{
	return input_reader_new(in, sizeof(**out), out);
}

static const char *path_of(const struct input *in, uint64_t sample)
{
	return of(in)->text + of(in)->offsets[sample];
}

static int read_sample(struct input_reader *reader, uint64_t sample,
		       const bool *wanted, struct input_value *values,
		       struct input_error *error)
{
	int status;

	if (!wanted[0])
		return 0;
	status = input_read_file(path_of(reader->input, sample),
				 &reader->memory[0], &values[0].size);
	values[0].bytes = reader->memory[0].bytes;
	return status ? input_refuse(error, status, "%s",
				     input_file_why(status))
		      : 0;
}

static void describe(const struct input *in, uint64_t sample, char *out,
		     size_t size)
{
	snprintf(out, size, "%s", path_of(in, sample));
}

const struct input_kind input_list = {
	.name = "list",
	.words = "paths of images on standard input",
	.matches = matches,
	.open = open_list,
	.reader_open = reader_open,
	.read = read_sample,
	.reader_close = input_reader_free,
	.describe = describe,
	.close = close_list,
};
