/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/data/cache/fill.h"
#include "fs/source/object/open.h"
#include "tests/unit/t.h"

enum {
	FRAME = ARENA_FRAME,
	FILL_FRAMES = SOURCE_BEST_READ / FRAME,
	REQUESTS_MAX = 16,
	CHUNKS_MAX = 4
};

static uint8_t byte_at(uint64_t off)
{
	return (uint8_t)(off * 31 + off / FRAME * 7);
}

/* A source that keeps its requests until they are answered. */
struct held {
	struct source base; /* first */
	struct source_request *requests[REQUESTS_MAX];
	unsigned n;
};

static void hold(struct source *source, struct source_request *q)
{
	struct held *h = (struct held *)source;

	CHECK(h->n < REQUESTS_MAX);
	h->requests[h->n++] = q;
}

static const struct source_ops held_ops = { .name = "held", .submit = hold };

static void answer(struct held *h, unsigned i, int result)
{
	struct source_request *q = h->requests[i];
	uint64_t off = q->off, end = (uint64_t)h->base.stat.st_size;
	uint8_t *to;

	for (unsigned k = 0; k < q->iovcnt && !result; k++) {
		to = q->iov[k].iov_base;
		for (size_t b = 0; b < q->iov[k].iov_len; b++, off++) {
			if (off < end)
				to[b] = byte_at(off);
		}
	}
	q->done(q, result);
}

struct fixture {
	struct arena *arena;
	struct held held;
	struct fill_target target;
	atomic_uint begun;
	atomic_uint done;
	atomic_uint_fast64_t bytes;
	struct chunk chunks[CHUNKS_MAX];
	struct chunk *list[CHUNKS_MAX];
	unsigned ended[CHUNKS_MAX];
};

static void read_begun(void *arg, uint64_t bytes)
{
	CHECK(bytes);
	((struct fixture *)arg)->begun++;
}

static void read_done(void *arg, uint64_t owner, uint64_t bytes, int result)
{
	struct fixture *f = arg;

	CHECK(!owner);
	f->done++;
	f->bytes += result ? 0 : bytes;
}

static void chunk_done(void *arg, struct chunk *g)
{
	struct fixture *f = arg;

	CHECK(g >= f->chunks && g < f->chunks + CHUNKS_MAX);
	f->ended[g - f->chunks]++;
}

static void set_up(struct fixture *f, uint64_t file_size)
{
	memset(f, 0, sizeof(*f));
	CHECK(!arena_open(16 << 20, &f->arena));
	f->held.base.ops = &held_ops;
	f->held.base.stat.st_size = (off_t)file_size;
	f->target = (struct fill_target){
		.arena = f->arena,
		.source = &f->held.base,
		.read_begun = read_begun,
		.read_done = read_done,
		.chunk_done = chunk_done,
		.arg = f,
	};
	for (unsigned i = 0; i < CHUNKS_MAX; i++)
		f->list[i] = &f->chunks[i];
}

static void tear_down(struct fixture *f)
{
	CHECK(f->begun == f->done);
	for (unsigned i = 0; i < CHUNKS_MAX; i++)
		free(f->chunks[i].frames);
	arena_close(f->arena);
}

/* Pages [page, page + n) more for a chunk. */
static void add(struct fixture *f, unsigned i, uint64_t page, uint32_t n)
{
	struct chunk *g = &f->chunks[i];

	g->extents[g->num_extents++] = (struct chunk_extent){ page * FRAME, n };
	g->frames =
		realloc(g->frames, (g->num_frames + n) * sizeof(*g->frames));
	CHECK(g->frames &&
	      !arena_alloc(f->arena, g->frames + g->num_frames, n));
	g->num_frames += n;
}

/* Whether the chunk has the bytes of all of its pages, up to `end`. */
static bool is_right(const struct fixture *f, unsigned i, uint64_t end)
{
	const struct chunk *g = &f->chunks[i];
	static uint8_t page[FRAME];
	struct payload_read what = { .size = FRAME, .buf = page };
	uint64_t off;

	for (uint32_t e = 0; e < g->num_extents; e++) {
		for (uint32_t k = 0; k < g->extents[e].frames; k++) {
			off = g->extents[e].off + (uint64_t)k * FRAME;
			what.off = off;
			CHECK(chunk_copy(g, f->arena, &what));
			for (uint64_t b = 0; b < FRAME && off + b < end; b++) {
				if (page[b] != byte_at(off + b))
					return false;
			}
		}
	}
	return true;
}

/* The second chunk begins in the page in which the first ends. */
static void neighbours_are_one_read_and_share_a_page(void)
{
	struct fixture f;

	set_up(&f, 100 * FRAME);
	add(&f, 0, 4, 3);
	add(&f, 1, 6, 2);
	add(&f, 2, 8, 1);
	fill_chunks(&f.target, f.list, 3);
	CHECK(f.held.n == 1 && f.held.requests[0]->off == 4 * FRAME);
	CHECK(f.held.requests[0]->size == 5 * FRAME);
	CHECK(f.held.requests[0]->need == 5 * FRAME);
	CHECK(f.held.requests[0]->direct && f.begun == 1);
	CHECK(!f.ended[0] && !f.ended[1] && !f.ended[2]);
	answer(&f.held, 0, 0);
	CHECK(f.ended[0] == 1 && f.ended[1] == 1 && f.ended[2] == 1);
	CHECK(is_right(&f, 0, UINT64_MAX) && is_right(&f, 1, UINT64_MAX));
	CHECK(is_right(&f, 2, UINT64_MAX) && f.bytes == 5 * FRAME);
	tear_down(&f);
}

static void gaps_are_not_read(void)
{
	struct fixture f;

	set_up(&f, 100 * FRAME);
	add(&f, 0, 4, 2);
	add(&f, 0, 10, 1);
	add(&f, 1, 20, 1);
	fill_chunks(&f.target, f.list, 2);
	CHECK(f.held.n == 3 && f.begun == 3);
	/* A chunk is there when its last read is, in any order. */
	answer(&f.held, 1, 0);
	CHECK(!f.ended[0] && !f.ended[1]);
	answer(&f.held, 2, 0);
	CHECK(!f.ended[0] && f.ended[1] == 1);
	answer(&f.held, 0, 0);
	CHECK(f.ended[0] == 1 && f.bytes == 4 * FRAME);
	CHECK(is_right(&f, 0, UINT64_MAX) && is_right(&f, 1, UINT64_MAX));
	tear_down(&f);
}

static void long_runs_are_several_reads(void)
{
	struct fixture f;

	set_up(&f, 10000 * FRAME);
	add(&f, 0, 3, 2 * FILL_FRAMES);
	add(&f, 1, 3 + 2 * FILL_FRAMES - 1, 2);
	fill_chunks(&f.target, f.list, 2);
	CHECK(f.held.n == 3);
	for (unsigned i = 0; i < f.held.n; i++) {
		CHECK(f.held.requests[i]->size <= FILL_FRAMES * FRAME);
		CHECK(f.held.requests[i]->off % FRAME == 0);
		answer(&f.held, i, 0);
	}
	CHECK(f.ended[0] == 1 && f.ended[1] == 1);
	CHECK(!f.chunks[0].error && !f.chunks[1].error);
	CHECK(is_right(&f, 0, UINT64_MAX) && is_right(&f, 1, UINT64_MAX));
	tear_down(&f);
}

/* The last page of the file need not come whole; the others must. */
static void the_end_of_the_file_may_be_within_a_page(void)
{
	struct fixture f;

	set_up(&f, 9 * FRAME + 5);
	add(&f, 0, 8, 2);
	fill_chunks(&f.target, f.list, 1);
	CHECK(f.held.n == 1 && f.held.requests[0]->size == 2 * FRAME);
	CHECK(f.held.requests[0]->need == FRAME + 5);
	answer(&f.held, 0, 0);
	CHECK(f.ended[0] == 1 && is_right(&f, 0, 9 * FRAME + 5));
	CHECK(f.bytes == FRAME + 5);
	tear_down(&f);
}

static void a_failure_is_of_the_chunks_in_the_read_alone(void)
{
	struct fixture f;

	set_up(&f, 100 * FRAME);
	add(&f, 0, 4, 2);
	add(&f, 1, 5, 1);
	add(&f, 1, 30, 1);
	add(&f, 2, 31, 1);
	fill_chunks(&f.target, f.list, 3);
	CHECK(f.held.n == 2);
	answer(&f.held, 0, -EIO);
	CHECK(f.ended[0] == 1 && f.chunks[0].error == -EIO);
	CHECK(!f.ended[1] && !f.ended[2]);
	answer(&f.held, 1, 0);
	CHECK(f.ended[1] == 1 && f.chunks[1].error == -EIO);
	CHECK(f.ended[2] == 1 && !f.chunks[2].error);
	CHECK(is_right(&f, 2, UINT64_MAX) && f.bytes == 2 * FRAME);
	tear_down(&f);
}

/* --- from a file --- */

struct file_fixture {
	struct fixture f;
	struct source_wait wait;
	int fd;
};

static void file_read_begun(void *arg, uint64_t bytes)
{
	struct file_fixture *f = arg;

	read_begun(&f->f, bytes);
	source_wait_add(&f->wait);
}

static void file_read_done(void *arg, uint64_t owner, uint64_t bytes,
			   int result)
{
	struct file_fixture *f = arg;

	read_done(&f->f, owner, bytes, result);
	source_wait_done(&f->wait);
}

static void file_set_up(struct file_fixture *f, uint64_t size)
{
	char path[] = "/tmp/test_fill.XXXXXX";
	uint8_t *bytes = malloc(size);

	CHECK(bytes);
	for (uint64_t i = 0; i < size; i++)
		bytes[i] = byte_at(i);
	f->fd = mkstemp(path);
	CHECK(f->fd >= 0 && write(f->fd, bytes, size) == (ssize_t)size);
	free(bytes);
	set_up(&f->f, size);
	source_wait_init(&f->wait);
	f->f.target.read_begun = file_read_begun;
	f->f.target.read_done = file_read_done;
	CHECK(!source_open(path, NULL, NULL, &f->f.target.source));
	unlink(path);
}

static void file_tear_down(struct file_fixture *f)
{
	source_close(f->f.target.source);
	source_wait_fini(&f->wait);
	close(f->fd);
	tear_down(&f->f);
}

/* Past the page cache or, where that does not work, through it. */
static void bytes_of_a_file_are_right_to_its_last(void)
{
	const uint64_t size = 20 * FRAME + 777;
	struct file_fixture f;

	file_set_up(&f, size);
	add(&f.f, 0, 0, 5);
	add(&f.f, 0, 19, 2);
	add(&f.f, 1, 4, 9);
	fill_chunks(&f.f.target, f.f.list, 2);
	source_wait_idle(&f.wait);
	CHECK(f.f.ended[0] == 1 && f.f.ended[1] == 1);
	CHECK(!f.f.chunks[0].error && !f.f.chunks[1].error);
	CHECK(is_right(&f.f, 0, size) && is_right(&f.f, 1, size));
	file_tear_down(&f);
}

/* Since it was opened: what is not there any more is an error, not zeros. */
static void a_file_that_shrank_is_an_error(void)
{
	struct file_fixture f;

	file_set_up(&f, 20 * FRAME + 777);
	CHECK(!ftruncate(f.fd, 20 * FRAME + 776));
	add(&f.f, 0, 18, 3);
	add(&f.f, 1, 2, 3);
	fill_chunks(&f.f.target, f.f.list, 2);
	source_wait_idle(&f.wait);
	CHECK(f.f.ended[0] == 1 && f.f.chunks[0].error == -EIO);
	CHECK(f.f.ended[1] == 1 && !f.f.chunks[1].error);
	file_tear_down(&f);
}

int main(void)
{
	neighbours_are_one_read_and_share_a_page();
	gaps_are_not_read();
	long_runs_are_several_reads();
	the_end_of_the_file_may_be_within_a_page();
	a_failure_is_of_the_chunks_in_the_read_alone();
	bytes_of_a_file_are_right_to_its_last();
	a_file_that_shrank_is_an_error();
	return 0;
}
