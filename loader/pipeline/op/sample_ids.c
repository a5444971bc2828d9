/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/sample_ids.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "loader/util/read_file.h"

/* Limit of the file's size: millions of ids, one per line. */
enum { FILE_MAX = 64 << 20 };

/* The list under construction, and the memory for a message. */
struct reader {
	struct sample_ids *ids;
	size_t room;
	const char *file; /* NULL: the argument itself */
	size_t line;
	char *why;
	size_t size;
};

static int refuse_number(const struct reader *r, const char *at, size_t length)
{
	if (r->file)
		snprintf(r->why, r->size,
			 "%s:%zu: expected a sample id, or # and a "
			 "comment, not `%.*s'",
			 r->file, r->line, (int)min_u64(length, 24), at);
	else
		snprintf(r->why, r->size,
			 "expected sample ids as \"3,17\", not `%.*s'",
			 (int)min_u64(length, 24), at);
	return -EINVAL;
}

static int add_id(struct reader *r, uint64_t id)
{
	struct sample_ids *ids = r->ids;
	uint64_t *more;

	if (ids->count == r->room) {
		r->room = r->room ? 2 * r->room : 64;
		more = realloc(ids->ids, r->room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		ids->ids = more;
	}
	ids->ids[ids->count++] = id;
	return 0;
}

/* Parses a number, with blanks around it and leading zeros as in file names. */
static int take_id(struct reader *r, const char *at, const char *end)
{
	uint64_t id;

	at += strspn(at, " \t");
	while (end > at && strchr(" \t\r", end[-1]))
		end--;
	while (at + 1 < end && *at == '0')
		at++;
	if (at >= end || !name_parse_u64(at, (size_t)(end - at), &id))
		return refuse_number(r, at, at < end ? (size_t)(end - at) : 0);
	return add_id(r, id);
}

static int read_list(struct reader *r, const char *text)
{
	int e = 0;

	for (const char *at = text, *end; !e; at = end + 1) {
		end = at + strcspn(at, ",");
		e = take_id(r, at, end);
		if (!*end)
			break;
	}
	return e;
}

/* Parses the number of each line. A line may be empty but for a comment. */
static int read_lines(struct reader *r, const char *text)
{
	int e = 0;

	for (const char *at = text; *at && !e; r->line++) {
		const char *line = at + strcspn(at, "\n");
		const char *end = at + strcspn(at, "#\n");

		if (at + strspn(at, " \t\r") < end)
			e = take_id(r, at, end);
		at = line + (*line == '\n');
	}
	return e;
}

static int read_ids_of_file(struct reader *r, const char *path)
{
	cleanup_free char *text = NULL;
	size_t size;
	int e = read_file(path, FILE_MAX, &text, &size);

	r->file = path;
	r->line = 1;
	if (e == -ENOMEM)
		return e;
	if (e || strlen(text) != size) {
		snprintf(r->why, r->size, "%s: %s", path,
			 e ? strerror(-e) : "it contains a NUL");
		return -EINVAL;
	}
	return read_lines(r, text);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool is_list(const char *text)
{
	return !text[strspn(text, "0123456789, \t")];
}

int sample_ids_open(const char *text, struct sample_ids **out, char *why,
		    size_t size)
{
	struct reader r = { .why = why, .size = size };
	int e;

	r.ids = calloc(1, sizeof(*r.ids));
	if (!r.ids)
		return -ENOMEM;
	e = is_list(text) ? read_list(&r, text) : read_ids_of_file(&r, text);
	if (e) {
		sample_ids_close(r.ids);
		return e;
	}
	if (r.ids->count)
		qsort(r.ids->ids, r.ids->count, sizeof(uint64_t), compare);
	*out = r.ids;
	return 0;
}

void sample_ids_close(struct sample_ids *ids)
{
	if (!ids)
		return;
	free(ids->ids);
	free(ids);
}

bool sample_ids_has(const struct sample_ids *ids, uint64_t id)
{
	return ids->count &&
	       bsearch(&id, ids->ids, ids->count, sizeof(uint64_t), compare);
}
