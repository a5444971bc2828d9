/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/formats/tar.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

/* A header block. */
enum {
	NAME_BYTES = 100,
	SIZE_AT = 124,
	SIZE_BYTES = 12,
	SUM_AT = 148,
	SUM_BYTES = 8,
	TYPE_AT = 156,
	MAGIC_AT = 257,
	PREFIX_AT = 345,
	PREFIX_BYTES = 155,
};

/* Extended headers, which have a name and some times. */
static const uint64_t EXTENDED_MAX = 1 << 20;

/* Values of extended headers, for the file that follows. */
struct extended {
	bool has_name;
	bool has_size;
	uint64_t size;
	char name[TAR_NAME_SIZE];
};

static int refuse(struct tar *t, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(struct tar *t, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(t->why, sizeof(t->why), format, args);
	va_end(args);
	return error;
}

static int refuse_header(struct tar *t, uint64_t at)
{
	return refuse(t, -EBADMSG, "a damaged header at byte %llu",
		      (unsigned long long)at);
}

/* --- blocks -------------------------------------------------------------- */

/* Octal digits between blanks, or base 256 if the first bit is set. */
static bool parse_number(const uint8_t *text, size_t size, uint64_t *out)
{
	uint64_t v = 0;
	size_t i = 0;

	if (text[0] & 0x80) {
		v = text[0] & 0x7f;
		for (i = 1; i < size; i++) {
			if (v >> 55)
				return false;
			v = v << 8 | text[i];
		}
		*out = v;
		return true;
	}
	while (i < size && text[i] == ' ')
		i++;
	for (; i < size && text[i] >= '0' && text[i] <= '7'; i++)
		v = v << 3 | (uint64_t)(text[i] - '0');
	*out = v;
	return i == size || !text[i] || text[i] == ' ';
}

/* The sum of all bytes, the field of the sum counted as blanks. */
static bool sum_ok(const uint8_t *block)
{
	uint64_t stored, sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= SUM_AT && i < SUM_AT + SUM_BYTES ? ' ' : block[i];
	return parse_number(block + SUM_AT, SUM_BYTES, &stored) &&
	       stored == sum;
}

static bool is_zero(const uint8_t *block)
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (block[i])
			return false;
	return true;
}

static void copy_name(const uint8_t *block, char *out, size_t size)
{
	const char *name = (const char *)block;
	const char *prefix = name + PREFIX_AT;
	/* GNU tar has other values in the place of the prefix. */
	bool has_prefix = !memcmp(block + MAGIC_AT, "ustar", 6) && *prefix;

	snprintf(out, size, "%.*s%s%.*s", has_prefix ? PREFIX_BYTES : 0, prefix,
		 has_prefix ? "/" : "", NAME_BYTES, name);
}

int tar_name_at(const struct file *file, uint64_t off, char *out, size_t size)
{
	uint8_t block[TAR_BLOCK];
	int r = file_read(file, block, sizeof(block), off);

	if (!r)
		copy_name(block, out, size);
	return r;
}

/* --- extended headers ---------------------------------------------------- */

static bool set_name(struct extended *ex, const char *name, size_t size)
{
	size = strnlen(name, size);
	if (size >= TAR_NAME_SIZE)
		return false;
	memcpy(ex->name, name, size);
	ex->name[size] = '\0';
	ex->has_name = true;
	return true;
}

static int set_value(struct tar *t, struct extended *ex, const char *key,
		     const char *value, size_t size)
{
	char *end;

	if (!strncmp(key, "GNU.sparse.", 11))
		return refuse(t, -ENOTSUP,
			      "a sparse file: make the archive without "
			      "--sparse");
	if (!strcmp(key, "path") && !set_name(ex, value, size))
		return refuse(t, -EBADMSG, "a name of more than %d bytes",
			      TAR_NAME_SIZE - 1);
	if (!strcmp(key, "size")) {
		errno = 0;
		ex->has_size = true;
		ex->size = strtoull(value, &end, 10);
		if (errno || end != value + size)
			return -EBADMSG;
	}
	return 0;
}

/* Parses "LENGTH KEY=VALUE\n" records. */
static int parse_pax(struct tar *t, struct extended *ex, char *text,
		     size_t size)
{
	char *end = text + size, *key, *value;
	unsigned long long length;
	int r = 0;

	for (; text < end && *text && !r; text += length) {
		length = strtoull(text, &key, 10);
		if (key == text || *key != ' ' ||
		    length > (size_t)(end - text) ||
		    length < (size_t)(key - text) + 3 ||
		    text[length - 1] != '\n')
			return -EBADMSG;
		text[length - 1] = '\0';
		value = strchr(++key, '=');
		if (!value)
			return -EBADMSG;
		*value++ = '\0';
		r = set_value(t, ex, key, value,
			      (size_t)(text + length - 1 - value));
	}
	return r;
}

static int read_extended(struct tar *t, char type, uint64_t off, uint64_t size,
			 struct extended *ex)
{
	cleanup_free char *text = NULL;
	int r;

	if (size > EXTENDED_MAX)
		return -EBADMSG;
	text = malloc(size + 1);
	if (!text)
		return refuse(t, -ENOMEM, "out of memory");
	r = file_read(t->window.file, text, size, off);
	text[r ? 0 : size] = '\0';
	if (r || type == 'K' || type == 'g')
		return r;
	if (type == 'L')
		return set_name(ex, text, size) ? 0 : -EBADMSG;
	return parse_pax(t, ex, text, size);
}

/* --- files --------------------------------------------------------------- */

/* Reads the header at t->at. Returns 1, 0 at the end, or -errno. */
static int read_header(struct tar *t, uint8_t block[TAR_BLOCK], uint64_t *size)
{
	const uint8_t *b;

	t->no_end = t->at == t->window.file->size;
	if (t->no_end)
		return 0;
	b = window_at(&t->window, t->at, TAR_BLOCK);
	if (!b)
		return refuse(t, t->window.error,
			      "the archive ends inside the header at byte %llu",
			      (unsigned long long)t->at);
	if (is_zero(b))
		return 0;
	memcpy(block, b, TAR_BLOCK);
	if (!sum_ok(block) || !parse_number(block + SIZE_AT, SIZE_BYTES, size))
		return refuse_header(t, t->at);
	return 1;
}

/* Moves to the next header. Links and devices have no data. */
static int skip_data(struct tar *t, char type, uint64_t size, uint64_t *off)
{
	uint64_t end = t->window.file->size;

	*off = t->at + TAR_BLOCK;
	if (type >= '1' && type <= '6')
		size = 0;
	if (!range_ok(*off, size, end))
		return refuse(t, -EBADMSG,
			      "the file whose header is at byte %llu has %llu "
			      "bytes, but the archive ends at %llu",
			      (unsigned long long)t->at,
			      (unsigned long long)size,
			      (unsigned long long)end);
	t->at = min_u64(align_up(*off + size, TAR_BLOCK), end);
	return 0;
}

static bool is_regular(char type, const char *name)
{
	/* V7 has no type for directories. */
	return (type == '0' || type == '7' || !type) && *name &&
	       name[strlen(name) - 1] != '/';
}

/* Fills in *out by a header with the values of `ex`. Returns 1 for a regular
   file, 0 for others, or -errno. */
static int take_file(struct tar *t, const uint8_t *block, uint64_t size,
		     const struct extended *ex, struct tar_file *out)
{
	char type = (char)block[TYPE_AT];
	int r;

	if (type == 'S')
		return refuse(t, -ENOTSUP,
			      "a sparse file: make the archive without "
			      "--sparse");
	out->header = t->at;
	out->size = ex->has_size ? ex->size : size;
	r = skip_data(t, type, out->size, &out->off);
	if (r)
		return r;
	if (ex->has_name)
		memcpy(out->name, ex->name, sizeof(out->name));
	else
		copy_name(block, out->name, sizeof(out->name));
	return is_regular(type, out->name);
}

int tar_next(struct tar *t, struct tar_file *out)
{
	struct extended ex = { 0 };
	uint8_t block[TAR_BLOCK];
	uint64_t size = 0, off, header;
	int r;

	while ((r = read_header(t, block, &size)) > 0) {
		header = t->at;
		if (!memchr("xgLKX", block[TYPE_AT] ? block[TYPE_AT] : ' ',
			    5)) {
			r = take_file(t, block, size, &ex, out);
			if (r)
				break;
			t->skipped++;
			ex = (struct extended){ 0 };
			continue;
		}
		r = skip_data(t, 'x', size, &off);
		r = r ? r
		      : read_extended(t, (char)block[TYPE_AT], off, size, &ex);
		if (r)
			return t->why[0] ? r : refuse_header(t, header);
	}
	return r;
}
