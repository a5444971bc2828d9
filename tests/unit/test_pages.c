/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "fs/data/writer/pages.h"
#include "tests/unit/t.h"

enum { SIZE = 24 << 20, ALIGN = 4096, PAGE = 8 << 20 };

/* An output in memory. */
struct target {
	struct output output; /* must be first */
	uint8_t *bytes;
	uint64_t end;
	unsigned writes;
	unsigned odd; /* writes that begin inside a block of ALIGN */
};

static int write_bytes(struct output *o, const void *bytes, size_t size,
		       uint64_t off)
{
	struct target *t = (struct target *)o;

	CHECK(size && off >= t->end && off + size <= SIZE);
	memcpy(t->bytes + off, bytes, size);
	t->end = off + size;
	t->writes++;
	t->odd += off % ALIGN != 0;
	return 0;
}

static const struct output_ops ops = { .name = "memory", .write = write_bytes };

static void open_target(struct target *t, struct pages *p, uint64_t at)
{
	*t = (struct target){ .output = { &ops }, .bytes = calloc(1, SIZE) };
	*p = (struct pages){ .file = &t->output, .end = at };
	CHECK(t->bytes && !pages_init(p));
}

static void close_target(struct target *t, struct pages *p)
{
	pages_fini(p);
	free(t->bytes);
}

static uint8_t *random_bytes(size_t size)
{
	struct rng rng = { .key = 5 };
	uint8_t *bytes = malloc(size);

	CHECK(bytes);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)rng_next(&rng);
	return bytes;
}

/* Values of odd sizes, also larger than the buffer. */
static void writes_begin_at_whole_blocks(void)
{
	static const size_t sizes[] = {
		1, 99999, (4 << 20) - 5, (5 << 20) + 3, 333, 1 << 20, 70001
	};
	uint8_t *bytes = random_bytes(SIZE);
	struct target t;
	struct pages p;
	uint64_t at = 0;

	open_target(&t, &p, PAGE);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		CHECK(!pages_put(&p, bytes + at, sizes[i]));
		at += sizes[i];
	}
	CHECK(!pages_flush(&p) && p.end == PAGE + at && t.end == p.end);
	CHECK(!memcmp(t.bytes + PAGE, bytes, at));
	CHECK(t.writes && !t.odd);
	close_target(&t, &p);
	free(bytes);
}

static void a_skip_leaves_zeros(void)
{
	struct target t;
	struct pages p;

	open_target(&t, &p, PAGE);
	CHECK(!pages_put(&p, "abc", 3) && !pages_skip(&p, 2 * PAGE));
	CHECK(!pages_put(&p, "def", 3) && !pages_flush(&p));
	CHECK(!memcmp(t.bytes + PAGE, "abc\0", 4));
	CHECK(!memcmp(t.bytes + 2 * PAGE, "def\0", 4));
	CHECK(t.writes == 2 && !t.odd);
	close_target(&t, &p);
}

int main(void)
{
	writes_begin_at_whole_blocks();
	a_skip_leaves_zeros();
	return 0;
}
