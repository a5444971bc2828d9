/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a block of rows that a process of Python has read. Values lie in
 * the block, whatever its offsets are. The head is set, because no mutation
 * would find it.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/python/block.h"
#include "tests/fuzz/fuzz.h"

enum { ROWS = 5, COLUMNS = 3, HEAD = 24 };

static void check_value(const struct block *b, const struct block_value *v)
{
	volatile uint8_t sum = 0;
	uint64_t size;
	const uint8_t *bytes = block_bytes(b, &size);

	if (!v->bytes)
		return;
	MUST(v->bytes >= bytes && v->bytes + v->size <= bytes + size);
	for (uint64_t i = 0; i < v->size; i++)
		sum += v->bytes[i];
	MUST(!v->channels ||
	     v->size == (uint64_t)v->width * v->height * v->channels);
}

static void read_all(const struct block *b)
{
	char why[40];

	for (uint64_t row = 0; row <= ROWS; row++) {
		memset(why, 1, sizeof(why));
		if (block_refuses(b, row, why, sizeof(why)))
			MUST(memchr(why, 0, sizeof(why)));
		for (uint64_t column = 0; column <= COLUMNS; column++) {
			struct block_value v = { 0 };

			if (!block_value(b, column, row, &v))
				check_value(b, &v);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t head[] = { UINT64_C(0x73776f726e6f7465), ROWS,
					 COLUMNS };
	int fd = memfd_create("block", 0);
	struct block *b;

	MUST(fd >= 0);
	MUST(write(fd, head, HEAD) == HEAD);
	MUST(write(fd, data, size) == (ssize_t)size);
	if (!block_map(fd, 0, HEAD + size, ROWS, COLUMNS, &b)) {
		read_all(b);
		block_put(&b);
	}
	close(fd);
	return 0;
}
