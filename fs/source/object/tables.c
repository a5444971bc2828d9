/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/source/object/tables_fetch.h"

enum {
	BLOCK = BLOCK_BYTES,
	/* Requests of one large read that bypasses the blocks. */
	PIECES_AT_ONCE = 64,
	/* Tables have 3/4 of the memory. */
	TABLES_SHARE = 4,
};

/* --- reading --- */

struct tables_piece {
	struct source_request request;
	struct source_wait *wait;
	int result;
};

static void piece_done(struct source_request *request, int result)
{
	struct tables_piece *piece = request->arg;

	piece->result = result;
	source_wait_done(piece->wait);
}

/* Reads up to PIECES_AT_ONCE pieces at once. Returns their bytes, or -errno. */
static ssize_t read_pieces(struct tables *t, uint8_t *buf, size_t size,
			   uint64_t off, size_t each)
{
	struct tables_piece pieces[PIECES_AT_ONCE];
	struct source_wait wait;
	size_t at = 0;
	unsigned n = 0;
	int r = 0;

	source_wait_init(&wait);
	for (; n < PIECES_AT_ONCE && at < size; n++) {
		pieces[n] = (struct tables_piece){
			.request = {
				.buf = buf + at,
				.off = off + at,
				.size = min_u64(each, size - at),
				.must = true,
				.done = piece_done,
				.arg = &pieces[n],
			},
			.wait = &wait,
		};
		at += pieces[n].request.size;
		source_wait_add(&wait);
		source_submit(t->inner, &pieces[n].request);
	}
	source_wait_idle(&wait);
	source_wait_fini(&wait);
	for (unsigned i = 0; i < n; i++)
		r = r ? r : pieces[i].result;
	return r ? r : (ssize_t)at;
}

/* Reads without blocks. A large read is several requests at once. */
static int read_around(struct tables *t, uint8_t *buf, size_t size,
		       uint64_t off)
{
	size_t each = source_best_read(t->inner);
	ssize_t n;

	if (size <= each)
		return source_read(t->inner, buf, size, off);
	for (size_t at = 0; at < size; at += (size_t)n) {
		n = read_pieces(t, buf + at, size - at, off + at, each);
		if (n < 0)
			return (int)n;
	}
	return 0;
}

/* Reads up to TABLES_WANT bytes. Returns false if there is no room for their
   blocks. */
static bool read_blocks(struct tables *t, uint8_t *buf, size_t size,
			uint64_t off, int *result)
{
	const struct source_request q = { .buf = buf, .size = size };
	struct tables_want w = { .num = 0 };
	struct tables_fetch *list = NULL;
	bool taken;

	pthread_mutex_lock(&t->lock);
	taken = tables_want_take(t, &w, off, size, &list);
	pthread_mutex_unlock(&t->lock);
	tables_submit_fetches(t, list);
	if (!taken)
		return false;
	pthread_mutex_lock(&t->lock);
	while (!w.is_done)
		pthread_cond_wait(&t->settled, &t->lock);
	pthread_mutex_unlock(&t->lock);
	if (!w.result)
		tables_want_copy(&w, &q);
	pthread_mutex_lock(&t->lock);
	tables_want_drop(t, &w);
	pthread_mutex_unlock(&t->lock);
	*result = w.result;
	return true;
}

/*
 * Determines whether a read goes through the blocks. If so, makes fetches of
 * its missing blocks, and of those ahead of a scan. The caller holds the lock.
 */
static bool plan_read(struct tables *t, uint64_t off, uint64_t size,
		      struct tables_fetch **list, struct tables_fetch **ahead)
{
	const struct source_range *r = tables_at(t, off);
	uint64_t limit = r ? r->off + r->size : t->size;
	uint64_t most = tables_most_ahead(t, off), from, to, start = off;
	uint64_t end = off + min_u64(size, most);
	bool is_scan =
		ahead_note(&t->ahead, off, size, limit, most, &from, &to);
	bool known = tables_have(t, off, min_u64(size, most));

	if (t->noted && !r && !is_scan && !known)
		return false;
	if (!known) {
		tables_extend(t, &start, &end);
		tables_make_fetches(t, start, end, true, list);
	}
	tables_make_fetches(t, from, to, false, ahead);
	if (r && !known)
		tables_want_all(t);
	return true;
}

static int tables_read(struct source *source, void *buf, size_t size,
		       uint64_t off)
{
	struct tables *t = tables_of(source);
	struct tables_fetch *list = NULL, *ahead = NULL;
	bool through;
	size_t n;
	int r = 0;

	if (!size || !range_ok(off, size, t->size))
		return source_read(t->inner, buf, size, off);
	pthread_mutex_lock(&t->lock);
	through = plan_read(t, off, size, &list, &ahead);
	pthread_mutex_unlock(&t->lock);
	tables_submit_fetches(t, list);
	tables_submit_fetches(t, ahead);
	tables_fill(t);
	if (!through)
		return read_around(t, buf, size, off);
	for (size_t at = 0; at < size && !r; at += n) {
		n = min_u64(TABLES_WANT, size - at);
		if (!read_blocks(t, (uint8_t *)buf + at, n, off + at, &r))
			r = read_around(t, (uint8_t *)buf + at, n, off + at);
	}
	return r;
}

/* --- requests of callers --- */

static bool all_ready(struct tables *t, uint64_t off, uint64_t size)
{
	const struct block *block;

	for (uint64_t i = off / BLOCK; i <= (off + size - 1) / BLOCK; i++) {
		block = blocks_find(&t->blocks, i);
		if (!block || block->state != BLOCK_READY)
			return false;
	}
	return true;
}

/* Returns whether a request should be answered out of blocks: those of tables,
   and those whose bytes are in memory. The caller holds the lock. */
static bool is_for_blocks(struct tables *t, const struct source_request *q)
{
	if (!q->size || q->size > TABLES_WANT ||
	    !range_ok(q->off, q->size, t->size))
		return false;
	return (!q->direct && tables_contain(t, q->off, q->size)) ||
	       all_ready(t, q->off, q->size);
}

enum course {
	PASSES,	  /* to the inner source */
	WAITS,	  /* the end of a fetch finishes it */
	IS_READY, /* the caller finishes it */
};

/* Sets *want unless the request passes. */
static enum course take_request(struct tables *t, struct source_request *q,
				struct tables_want **want,
				struct tables_fetch **list)
{
	struct tables_want *w;

	scoped_lock(&t->lock);
	w = is_for_blocks(t, q) ? malloc(sizeof(*w)) : NULL;
	if (w) {
		memset(w, 0, offsetof(struct tables_want, blocks));
		w->caller = q;
		if (tables_want_take(t, w, q->off, q->size, list)) {
			DL_APPEND2(t->async, w, prev_async, next_async);
			*want = w;
			return w->is_done ? IS_READY : WAITS;
		}
		free(w);
	}
	t->passed_ns = clock_ns();
	return PASSES;
}

static void tables_submit(struct source *source, struct source_request *q)
{
	struct tables *t = tables_of(source);
	struct tables_fetch *list = NULL;
	struct tables_want *w;

	q->got = 0;
	q->queued = false;
	q->fetch = NULL;
	switch (take_request(t, q, &w, &list)) {
	case PASSES:
		source_submit(t->inner, q);
		break;
	case IS_READY:
		tables_want_finish(t, w);
		break;
	case WAITS:
		break;
	}
	tables_submit_fetches(t, list);
}

/* Takes a waiting request off its fetch. Returns NULL if it does not wait
   here. */
static struct tables_want *
stop_waiting(struct tables *t, const struct source_request *q, bool *is_ours)
{
	struct tables_want *w;

	scoped_lock(&t->lock);
	for (w = t->async; w && w->caller != q; w = w->next_async)
		;
	*is_ours = w != NULL;
	if (!w || !w->fetch)
		return NULL;
	DL_DELETE(w->fetch->waiting, w);
	w->fetch = NULL;
	w->result = -ECANCELED;
	return w;
}

static void tables_cancel(struct source *source, struct source_request *q)
{
	struct tables *t = tables_of(source);
	bool is_ours;
	struct tables_want *w = stop_waiting(t, q, &is_ours);

	if (w)
		tables_want_finish(t, w);
	else if (!is_ours)
		source_cancel(t->inner, q);
}

static void tables_prefetch(struct source *source, uint64_t off, uint64_t size)
{
	struct tables *t = tables_of(source);
	struct tables_fetch *list = NULL;
	uint64_t end;

	if (off >= t->size || !size)
		return;
	pthread_mutex_lock(&t->lock);
	size = min_u64(min_u64(size, t->size - off), tables_most_ahead(t, off));
	end = off + size;
	if (!tables_have(t, off, size)) {
		tables_extend(t, &off, &end);
		/* Requests of other readers should not wait for large
		   ranges. */
		tables_make_fetches(t, off, end, size <= TABLES_PIECE, &list);
		if (tables_at(t, off))
			tables_want_all(t);
	}
	pthread_mutex_unlock(&t->lock);
	tables_submit_fetches(t, list);
	tables_fill(t);
}

/* --- opening and closing --- */

static void note_range(struct tables *t, const struct source_range *r)
{
	if (t->num_ranges < TABLES_RANGES_MAX && r->size &&
	    range_ok(r->off, r->size, t->size))
		t->ranges[t->num_ranges++] = *r;
}

static void tables_note(struct source *source, const struct source_range *r,
			size_t n)
{
	struct tables *t = tables_of(source);
	uint64_t all = t->blocks.most[BLOCK_OTHER];
	struct block *block, *next;

	scoped_lock(&t->lock);
	if (t->noted)
		return;
	for (size_t i = 0; i < n; i++)
		note_range(t, &r[i]);
	t->noted = true;
	if (!t->num_ranges)
		return;
	t->next = t->ranges[0].off;
	/* Engines count these, so small objects shall not count as large ones:
	   a dataset can have many. */
	t->blocks.most[BLOCK_OTHER] =
		min_u64(all / TABLES_SHARE, t->size / BLOCK + 1);
	t->blocks.most[BLOCK_TABLE] =
		min_u64(all - all / TABLES_SHARE, tables_num_blocks(t));
	HASH_ITER(hh, t->blocks.table, block, next)
	blocks_sort(&t->blocks, block, tables_kind_of(t, block->index));
}

static bool tables_is_direct(const struct source *source)
{
	return source_is_direct(source->inner);
}

static unsigned tables_depth(const struct source *source)
{
	return source_depth(source->inner);
}

static size_t tables_best_read(const struct source *source)
{
	return source_best_read(source->inner);
}

/* The inner source ends all requests. */
static void tables_close(struct source *source)
{
	struct tables *t = tables_of(source);

	pthread_mutex_lock(&t->lock);
	t->closing = true;
	pthread_mutex_unlock(&t->lock);
	source_close(t->inner);
	blocks_fini(&t->blocks);
	pthread_cond_destroy(&t->settled);
	pthread_mutex_destroy(&t->lock);
}

static const struct source_ops tables_ops = {
	.name = "tables",
	.submit = tables_submit,
	.cancel = tables_cancel,
	.read = tables_read,
	.is_direct = tables_is_direct,
	.depth = tables_depth,
	.best_read = tables_best_read,
	.prefetch = tables_prefetch,
	.note_tables = tables_note,
	.close = tables_close,
};

int tables_open(struct source *inner, uint64_t memory, struct log *log,
		struct source **out)
{
	struct tables *t = calloc(1, sizeof(*t));
	char *path = strdup(inner->path);

	if (!t || !path) {
		free(t);
		free(path);
		source_close(inner);
		return -ENOMEM;
	}
	t->base.ops = &tables_ops;
	t->base.path = path;
	t->base.log = log;
	t->base.stat = inner->stat;
	t->base.inner = inner;
	t->inner = inner;
	t->size = (uint64_t)inner->stat.st_size;
	t->blocks.most[BLOCK_OTHER] =
		max_u64(memory, TABLES_MEMORY_LEAST) / sizeof(struct block);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->settled, NULL);
	*out = &t->base;
	return 0;
}

void tables_store(struct source *source, const void *bytes, size_t size,
		  uint64_t off)
{
	struct tables *t = tables_of(source);
	const uint8_t *from = bytes;
	struct block *block;
	size_t n;

	scoped_lock(&t->lock);
	for (; size && off < t->size; off += BLOCK, from += n, size -= n) {
		n = min_u64(BLOCK, t->size - off);
		if (n > size || blocks_find(&t->blocks, off / BLOCK))
			return;
		block = blocks_add(&t->blocks, off / BLOCK,
				   tables_kind_of(t, off / BLOCK));
		if (!block)
			return;
		memcpy(block->bytes, from, n);
		blocks_settle(&t->blocks, block, 0);
	}
}

bool tables_stats(const struct source *source, struct tables_stats *out)
{
	struct tables *t;

	*out = (struct tables_stats){ 0 };
	while (source && source->ops != &tables_ops)
		source = source->inner;
	if (!source)
		return false;
	t = tables_of(source);
	scoped_lock(&t->lock);
	out->reads = t->reads;
	out->waits = t->waits;
	for (unsigned i = 0; i < BLOCK_KINDS; i++) {
		out->bytes += t->blocks.num[i] * sizeof(struct block);
		out->limit += t->blocks.most[i] * sizeof(struct block);
	}
	return true;
}
