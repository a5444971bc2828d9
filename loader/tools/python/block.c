/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/python/block.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fs/base/util/bytes.h"

#define MAGIC UINT64_C(0x73776f726e6f7465) /* "etonrows" */

/* Words of 8 bytes: the head of a block, and a column. */
enum { HEAD = 3, COLUMN = 4, COLUMNS_MAX = 1 << 16 };

struct block_column {
	uint64_t kind, index, data, size;
};

struct block {
	const uint8_t *bytes;
	uint64_t size;
	uint64_t rows;
	uint64_t columns;
	atomic_uint references;
};

static bool is_block(const struct block *b)
{
	uint64_t words = HEAD + COLUMN * (b->columns + 1);

	return b->columns <= COLUMNS_MAX && b->rows <= UINT32_MAX &&
	       words * 8 <= b->size && load64(b->bytes) == MAGIC &&
	       load64(b->bytes + 8) == b->rows &&
	       load64(b->bytes + 16) == b->columns;
}

int block_map(int fd, uint64_t off, uint64_t size, uint64_t rows,
	      uint64_t columns, struct block **out)
{
	struct block *b = calloc(1, sizeof(*b));
	void *bytes;

	if (!b)
		return -ENOMEM;
	bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, (off_t)off);
	if (bytes == MAP_FAILED) {
		free(b);
		return errno == EINVAL ? -EBADMSG : -errno;
	}
	b->bytes = bytes;
	b->size = size;
	b->rows = rows;
	b->columns = columns;
	atomic_init(&b->references, 1);
	if (!is_block(b)) {
		block_put(&b);
		return -EBADMSG;
	}
	*out = b;
	return 0;
}

struct block *block_get(struct block *b)
{
	atomic_fetch_add(&b->references, 1);
	return b;
}

void block_put(struct block **block)
{
	struct block *b = *block;

	*block = NULL;
	if (!b || atomic_fetch_sub(&b->references, 1) > 1)
		return;
	munmap((void *)b->bytes, b->size);
	free(b);
}

const void *block_bytes(const struct block *b, uint64_t *size)
{
	*size = b->size;
	return b->bytes;
}

/* Column 0 has the errors. */
static struct block_column column_at(const struct block *b, uint64_t i)
{
	const uint8_t *at = b->bytes + 8 * (HEAD + COLUMN * i);

	return (struct block_column){ load64(at), load64(at + 8),
				      load64(at + 16), load64(at + 24) };
}

static bool are_offsets(const struct block *b, const struct block_column *c)
{
	uint64_t words = b->rows + 1;

	if (c->kind == BLOCK_PIXELS)
		words += 3 * b->rows;
	return range_ok(c->index, 8 * words, b->size) &&
	       range_ok(c->data, c->size, b->size);
}

static int bytes_of(const struct block *b, const struct block_column *c,
		    uint64_t row, struct block_value *out)
{
	const uint8_t *at = b->bytes + c->index + 8 * row;
	uint64_t begin, end;

	if (!are_offsets(b, c))
		return -EBADMSG;
	begin = load64(at);
	end = load64(at + 8);
	if (begin > end || end > c->size)
		return -EBADMSG;
	out->bytes = b->bytes + c->data + begin;
	out->size = end - begin;
	return 0;
}

static int pixels_of(const struct block *b, const struct block_column *c,
		     uint64_t row, struct block_value *out)
{
	const uint8_t *at;
	uint64_t width, height, channels, size;
	int r = bytes_of(b, c, row, out);

	if (r)
		return r;
	at = b->bytes + c->index + 8 * (b->rows + 1 + 3 * row);
	width = load64(at);
	height = load64(at + 8);
	channels = load64(at + 16);
	if (!channels)
		return 0;
	if (channels > 4 || width > UINT32_MAX || height > UINT32_MAX ||
	    !mul_ok(width * channels, height, &size) || size != out->size)
		return -EBADMSG;
	out->width = (uint32_t)width;
	out->height = (uint32_t)height;
	out->channels = (uint32_t)channels;
	return 0;
}

static int number_of(const struct block *b, const struct block_column *c,
		     uint64_t row, struct block_value *out)
{
	const uint8_t *at = b->bytes + c->data + 8 * row;

	if (!range_ok(c->data, 8 * b->rows, b->size))
		return -EBADMSG;
	if (c->kind == BLOCK_INT)
		out->integer = (int64_t)load64(at);
	else
		memcpy(&out->real, at, 8);
	return 0;
}

int block_value(const struct block *b, uint64_t column, uint64_t row,
		struct block_value *out)
{
	struct block_column c;

	if (column >= b->columns || row >= b->rows)
		return -EBADMSG;
	c = column_at(b, column + 1);
	switch (c.kind) {
	case BLOCK_INT:
	case BLOCK_REAL:
		return number_of(b, &c, row, out);
	case BLOCK_BYTES:
		return bytes_of(b, &c, row, out);
	case BLOCK_PIXELS:
		return pixels_of(b, &c, row, out);
	default:
		return -EBADMSG;
	}
}

bool block_refuses(const struct block *b, uint64_t row, char *why, size_t size)
{
	const struct block_column errors = column_at(b, 0);
	struct block_value text = { 0 };

	if (row >= b->rows || errors.kind != BLOCK_BYTES ||
	    bytes_of(b, &errors, row, &text)) {
		snprintf(why, size, "a damaged row");
		return true;
	}
	if (text.size)
		snprintf(why, size, "%.*s", (int)min_u64(text.size, size),
			 (const char *)text.bytes);
	return text.size > 0;
}
