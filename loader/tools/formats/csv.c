/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/formats/csv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"

enum { PIECE = 1 << 16 };

/* Returns the size of the record with its line end; 0: it does not end here.
 *open: a quotation has begun. */
static size_t find_end(const char *text, size_t size, char separator,
		       bool *open)
{
	bool quoted = false, begins = true;
	const char *end;

	*open = false;
	if (!separator) {
		end = memchr(text, '\n', size);
		return end ? (size_t)(end - text) + 1 : 0;
	}
	for (size_t i = 0; i < size; i++) {
		char c = text[i];

		/* A doubled quote ends a quotation and begins another. */
		if (c == '"' && (begins || quoted)) {
			quoted = !quoted;
			begins = !quoted && i + 1 < size && text[i + 1] == '"';
			continue;
		}
		if (c == '\n' && !quoted)
			return i + 1;
		begins = c == separator && !quoted;
	}
	*open = quoted;
	return 0;
}

/* Reads more bytes behind those in memory, and moves these to the front. */
static int read_more(struct records *r)
{
	uint64_t at = r->next + (r->have - r->start);
	size_t left = r->have - r->start, n;
	int failed;

	if (left)
		memmove(r->bytes, r->bytes + r->start, left);
	r->start = 0;
	r->have = left;
	if (r->room < left + PIECE) {
		size_t room = max_u64(2 * r->room, 2 * PIECE);
		char *more = realloc(r->bytes, room + 1);

		if (!more)
			return -ENOMEM;
		r->bytes = more;
		r->room = room;
	}
	n = (size_t)min_u64(r->room - left, r->file->size - at);
	failed = file_read(r->file, r->bytes + left, n, at);
	r->have += failed ? 0 : n;
	return failed;
}

static uint64_t count_lines(const char *text, size_t size)
{
	uint64_t n = 0;
	const char *at = text, *end = text + size;

	while ((at = memchr(at, '\n', (size_t)(end - at)))) {
		at++;
		n++;
	}
	return n;
}

/* Removes the line end of a record, and writes a NUL there. */
static size_t trim(char *text, size_t size)
{
	if (size && text[size - 1] == '\n')
		size--;
	if (size && text[size - 1] == '\r')
		size--;
	text[size] = '\0';
	return size;
}

/* The record is in memory; the last one may lack its line end. */
static int take_record(struct records *r, size_t size, char **text, size_t *out)
{
	r->off = r->next;
	r->at_line = r->line + 1;
	r->line += count_lines(r->bytes + r->start, size);
	*text = r->bytes + r->start;
	*out = trim(*text, size);
	r->next += size;
	r->start += size;
	return 1;
}

int records_next(struct records *r, char **text, size_t *size)
{
	int failed = 0;
	bool open;

	while (!failed) {
		size_t have = r->have - r->start;
		bool end = r->next + have == r->file->size;
		size_t n = have ? find_end(r->bytes + r->start, have,
					   r->separator, &open)
				: 0;

		if ((n ? n : have) > RECORD_MAX)
			return -EFBIG;
		if (n || (end && have && !open))
			return take_record(r, n ? n : have, text, size);
		if (end)
			return have ? -EBADMSG : 0;
		failed = read_more(r);
	}
	return failed;
}

size_t record_find(char *text, size_t size, char separator)
{
	bool open;
	size_t n = find_end(text, size, separator, &open);

	return trim(text, n ? n : size);
}

void records_fini(struct records *r)
{
	free(r->bytes);
	r->bytes = NULL;
}

/* --- cells --------------------------------------------------------------- */

/* Moves the content of a quoted cell, without its quotes, to `to`. Returns the
   end of the quotation. */
static char *take_quoted(char *at, char *end, char **to)
{
	for (at++; at < end; at++) {
		if (*at == '"' && *++at != '"')
			return at;
		*(*to)++ = *at;
	}
	return at;
}

size_t csv_split(char *text, size_t size, char separator,
		 struct csv_cell *cells, size_t max)
{
	char *at = text, *end = text + size, *stop, *to;
	size_t n = 0;

	for (;; at++) {
		char *cell = to = at;

		if (at < end && *at == '"') {
			stop = take_quoted(at, end, &to);
			if (stop < end && *stop != separator)
				return 0;
		} else {
			stop = memchr(at, separator, (size_t)(end - at));
			stop = stop ? stop : end;
			to = stop;
		}
		at = stop;
		*to = '\0';
		if (n < max)
			cells[n] =
				(struct csv_cell){ cell, (size_t)(to - cell) };
		n++;
		if (at >= end)
			return n;
	}
}
