/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/source/object/ahead.h"
#include "fs/source/object/blocks.h"

enum {
	BLOCK = BLOCK_BYTES,
	/* The most bytes of one request: new connections carry several of half
	   a MiB sooner than one of a MiB. */
	PIECE = 1 << 19,
	PIECE_BLOCKS = PIECE / BLOCK,
	/* A read of a table requests this much: on a link of 400 Mbit/s with 64
	   connections and a latency of 50 ms, more bytes would take longer. */
	GROUP = 32 << 10,
	/* The most bytes that one reader holds. */
	WANT = 1 << 20,
	WANT_BLOCKS = WANT / BLOCK + 1,
	RANGES_MAX = 4,
	/* Requests in the background: while other requests pass, and if none
	   did for IDLE_NS. */
	BACKGROUND_BUSY = 1,
	BACKGROUND_IDLE = 8,
	/* Requests of one large read that bypasses the blocks. */
	PIECES_AT_ONCE = 64,
	/* Tables have 3/4 of the memory. */
	TABLES_SHARE = 4,
};

static const int64_t idle_ns = 200 * 1000000LL;

/* A reader that waits for blocks, one fetch after the other. */
struct want {
	struct want *prev, *next;	      /* in fetch->waiting */
	struct want *prev_async, *next_async; /* in tables.async */
	struct source_request *caller;	      /* NULL: a thread waits */
	struct tables_fetch *fetch;	      /* that it waits for, or NULL */
	uint64_t off;
	uint64_t size;
	bool joined; /* a fetch that began in the background */
	unsigned num;
	unsigned ready; /* blocks from the first one on that are READY */
	int result;
	bool is_done;
	struct block *blocks[WANT_BLOCKS];
};

/* A request of adjacent blocks. */
struct tables_fetch {
	struct source_request request;
	struct tables_fetch *prev, *next; /* in a list of fetches to submit */
	struct tables *tables;
	struct want *waiting;
	bool is_background;
	unsigned num;
	struct block *blocks[PIECE_BLOCKS];
	struct iovec iov[PIECE_BLOCKS];
};

struct tables {
	struct source base;
	struct source *inner;
	uint64_t size;
	pthread_mutex_t lock; /* innermost; guards all members below */
	pthread_cond_t settled;
	struct blocks blocks;
	struct ahead ahead;
	struct want *async; /* of requests */
	bool closing;
	bool noted; /* the ranges are known */
	struct source_range ranges[RANGES_MAX];
	size_t num_ranges;
	/* Reading whole tables: the next byte, and how many requests are under
	   way. */
	bool is_wanted;
	bool is_filling; /* a thread submits requests */
	size_t range;
	uint64_t next;
	unsigned num_background;
	int64_t passed_ns; /* when a request passed through last */
	uint64_t reads, waits;
};

static struct tables *tables_of(const struct source *source)
{
	return (struct tables *)source;
}

/* --- ranges --- */

/* Returns the table that contains the byte, or NULL. */
static const struct source_range *table_at(const struct tables *t, uint64_t off)
{
	for (size_t i = 0; i < t->num_ranges; i++) {
		if (off >= t->ranges[i].off &&
		    off - t->ranges[i].off < t->ranges[i].size)
			return &t->ranges[i];
	}
	return NULL;
}

static bool is_in_table(const struct tables *t, uint64_t off, uint64_t size)
{
	const struct source_range *r = table_at(t, off);

	return r && range_ok(off - r->off, size, r->size);
}

/* A block is one of a table if any of its bytes are. */
static enum block_kind kind_of(const struct tables *t, uint64_t index)
{
	uint64_t off = index * BLOCK;

	for (size_t i = 0; i < t->num_ranges; i++) {
		if (off + BLOCK > t->ranges[i].off &&
		    off < t->ranges[i].off + t->ranges[i].size)
			return BLOCK_TABLE;
	}
	return BLOCK_OTHER;
}

/* Returns whether all blocks of a range are in memory, or being read. Those
   that are count as used now: the missing ones must not replace them. */
static bool is_known(struct tables *t, uint64_t off, uint64_t size)
{
	struct block *block;
	bool all = true;

	for (uint64_t i = off / BLOCK; i <= (off + size - 1) / BLOCK; i++) {
		block = blocks_find(&t->blocks, i);
		if (block) {
			blocks_use(&t->blocks, block);
			blocks_drop(&t->blocks, block);
		}
		all &= block != NULL;
	}
	return all;
}

/* --- requests; with the lock held --- */

static void fetch_done(struct source_request *request, int result);

static struct tables_fetch *fetch_new(struct tables *t, uint64_t off, bool must)
{
	struct tables_fetch *f = malloc(sizeof(*f));

	if (!f)
		return NULL;
	f->request = (struct source_request){
		.iov = f->iov,
		.off = off,
		.must = must,
		.done = fetch_done,
		.arg = f,
	};
	f->tables = t;
	f->waiting = NULL;
	f->is_background = false;
	f->num = 0;
	return f;
}

static void add_to_fetch(struct tables_fetch *f, struct block *block)
{
	const struct tables *t = f->tables;
	size_t size = (size_t)min_u64(BLOCK, t->size - block->index * BLOCK);

	block->fetch = f;
	f->blocks[f->num] = block;
	f->iov[f->num++] = (struct iovec){ block->bytes, size };
	f->request.iovcnt = f->num;
	f->request.size += size;
}

/*
 * Makes fetches of the blocks of a range that no reader has requested, and
 * appends them to the list for submit_fetches(). Their requests end at
 * multiples of PIECE. Leaves out blocks for which there is no room.
 */
static void make_fetches(struct tables *t, uint64_t off, uint64_t end,
			 bool must, struct tables_fetch **list)
{
	struct tables_fetch *f = NULL;
	struct block *block;

	for (uint64_t i = off / BLOCK; i * BLOCK < end; i++) {
		if (blocks_find(&t->blocks, i)) {
			f = NULL;
			continue;
		}
		if (!f || i % PIECE_BLOCKS == 0) {
			f = fetch_new(t, i * BLOCK, must);
			if (!f)
				return;
			DL_APPEND(*list, f);
		}
		block = blocks_add(&t->blocks, i, kind_of(t, i));
		if (!block)
			break;
		add_to_fetch(f, block);
	}
	if (f && !f->num) {
		DL_DELETE(*list, f);
		free(f);
	}
}

/* Extends a range of a table to whole groups. While the tables are unknown, the
   dataset is being opened, and single blocks arrive sooner. */
static void extend(const struct tables *t, uint64_t *off, uint64_t *end)
{
	const struct source_range *r = t->noted ? table_at(t, *off) : NULL;

	if (!r || *end > r->off + r->size)
		return;
	*off = max_u64(*off / GROUP * GROUP, r->off);
	*end = min_u64(align_up(*end, GROUP), r->off + r->size);
}

/* Returns the most bytes to request ahead of one reader. */
static uint64_t most_ahead(const struct tables *t, uint64_t off)
{
	enum block_kind kind = kind_of(t, off / BLOCK);

	return max_u64(WANT, t->blocks.most[kind] / 2 * BLOCK);
}

/* --- requests; without the lock --- */

static void submit_fetches(struct tables *t, struct tables_fetch *list)
{
	struct tables_fetch *f, *next;

	for (f = list; f; f = next) {
		next = f->next;
		source_submit(t->inner, &f->request);
	}
}

/* Copies bytes into a request, from byte `at` on. */
static void copy_out(const struct source_request *q, size_t at,
		     const uint8_t *bytes, size_t size)
{
	const struct iovec whole = { q->buf, q->size };
	const struct iovec *iov = q->buf ? &whole : q->iov;
	size_t n;

	for (; size; iov++) {
		if (at >= iov->iov_len) {
			at -= iov->iov_len;
			continue;
		}
		n = min_u64(iov->iov_len - at, size);
		memcpy((uint8_t *)iov->iov_base + at, bytes, n);
		bytes += n;
		size -= n;
		at = 0;
	}
}

/* Copies the blocks of a want, which are READY, into a request. */
static void copy_blocks(const struct want *w, const struct source_request *q)
{
	size_t skip = w->off % BLOCK, n;

	for (size_t i = 0, at = 0; at < q->size; i++, at += n) {
		n = min_u64(BLOCK - skip, q->size - at);
		copy_out(q, at, w->blocks[i]->bytes + skip, n);
		skip = 0;
	}
}

/* --- readers; with the lock held --- */

static void drop_blocks(struct tables *t, struct want *w)
{
	for (unsigned i = 0; i < w->num; i++)
		blocks_drop(&t->blocks, w->blocks[i]);
	w->num = 0;
}

/* Waits for the next fetch. Sets is_done if none is left, or one has failed. */
static void advance(struct want *w)
{
	struct block *block;

	w->fetch = NULL;
	for (; w->ready < w->num; w->ready++) {
		block = w->blocks[w->ready];
		if (block->state == BLOCK_READY)
			continue;
		if (block->state == BLOCK_FAILED) {
			w->result = block->error;
			break;
		}
		w->fetch = block->fetch;
		DL_APPEND(block->fetch->waiting, w);
		return;
	}
	w->is_done = true;
}

/* Uses the blocks of a range until one is missing. */
static bool use_blocks(struct tables *t, struct want *w, uint64_t end)
{
	uint64_t first = w->off / BLOCK;
	struct block *block;

	while ((first + w->num) * BLOCK < end) {
		block = blocks_find(&t->blocks, first + w->num);
		if (!block)
			return false;
		blocks_use(&t->blocks, block);
		w->joined |= block->state == BLOCK_READING &&
			     !block->fetch->request.must;
		w->blocks[w->num++] = block;
	}
	return true;
}

/*
 * Takes the blocks of a range of at most WANT bytes, and makes fetches of the
 * missing ones. Returns false if there is no room for them.
 */
static bool take_blocks(struct tables *t, struct want *w, uint64_t off,
			uint64_t size, struct tables_fetch **list)
{
	uint64_t from = off, end = off + size;

	w->off = off;
	w->size = size;
	t->reads++;
	if (!use_blocks(t, w, end)) {
		extend(t, &from, &end);
		make_fetches(t, from, end, true, list);
		if (!use_blocks(t, w, off + size)) {
			drop_blocks(t, w);
			return false;
		}
	}
	advance(w);
	t->waits += !w->is_done;
	return true;
}

/* --- whole tables in the background --- */

/* Returns the most blocks that the tables have. */
static uint64_t blocks_of_tables(const struct tables *t)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < t->num_ranges; i++)
		sum += t->ranges[i].size / BLOCK + 2;
	return sum;
}

/* Returns whether all tables fit into their part of the memory. */
static bool tables_fit(const struct tables *t)
{
	return t->num_ranges > 0 &&
	       blocks_of_tables(t) <= t->blocks.most[BLOCK_TABLE];
}

static unsigned background_depth(const struct tables *t)
{
	return clock_ns() - t->passed_ns < idle_ns ? BACKGROUND_BUSY
						   : BACKGROUND_IDLE;
}

/* Makes the next fetches of the tables: those of one piece. */
static struct tables_fetch *next_background(struct tables *t)
{
	struct tables_fetch *list = NULL, *f;
	const struct source_range *r;
	uint64_t end;

	while (!list && t->range < t->num_ranges) {
		r = &t->ranges[t->range];
		end = min_u64((t->next / PIECE + 1) * PIECE, r->off + r->size);
		if (t->next < end)
			make_fetches(t, t->next, end, false, &list);
		t->next = end;
		if (end == r->off + r->size && ++t->range < t->num_ranges)
			t->next = t->ranges[t->range].off;
	}
	DL_FOREACH(list, f)
	{
		f->is_background = true;
		t->num_background++;
	}
	return list;
}

/* Submits requests until enough are under way. If they are done before
   source_submit() returns, the loop continues, so that the stack does not
   grow. */
static void fill_tables(struct tables *t)
{
	struct tables_fetch *list;

	pthread_mutex_lock(&t->lock);
	if (!t->is_wanted || t->is_filling) {
		pthread_mutex_unlock(&t->lock);
		return;
	}
	t->is_filling = true;
	while (t->is_wanted && !t->closing &&
	       t->num_background < background_depth(t)) {
		list = next_background(t);
		if (!list) {
			t->is_wanted = false;
			break;
		}
		pthread_mutex_unlock(&t->lock);
		submit_fetches(t, list);
		pthread_mutex_lock(&t->lock);
	}
	t->is_filling = false;
	pthread_mutex_unlock(&t->lock);
}

/* A failure ends the reading of whole tables; the next reader of a table begins
   it again there. The caller holds the lock. */
static void note_background(struct tables *t, const struct tables_fetch *f,
			    int result)
{
	if (!f->is_background)
		return;
	t->num_background--;
	if (!result)
		return;
	t->is_wanted = false;
	for (size_t i = 0; i < t->num_ranges; i++) {
		if (table_at(t, f->request.off) != &t->ranges[i])
			continue;
		t->range = i;
		t->next = f->request.off;
	}
}

/* Begins to read whole tables. The caller holds the lock. */
static void want_tables(struct tables *t)
{
	t->is_wanted = t->range < t->num_ranges && tables_fit(t);
}

/* --- the end of a fetch --- */

/* Gives the blocks of a request back, and ends it. */
static void finish_want(struct tables *t, struct want *w)
{
	struct source_request *q = w->caller;
	int result = w->result;

	if (!result) {
		copy_blocks(w, q);
		q->got = q->size;
	}
	pthread_mutex_lock(&t->lock);
	drop_blocks(t, w);
	DL_DELETE2(t->async, w, prev_async, next_async);
	pthread_mutex_unlock(&t->lock);
	free(w);
	q->done(q, result);
}

/* A reader requests its blocks itself, once, if a request failed that began
   before: the server may be back. The caller holds the lock. */
static void try_again(struct tables *t, struct want *w,
		      struct tables_fetch **list)
{
	int result = w->result;

	if (!result || !w->joined || result == -ECANCELED || t->closing)
		return;
	drop_blocks(t, w);
	w->ready = 0;
	w->result = 0;
	w->is_done = false;
	if (!take_blocks(t, w, w->off, w->size, list)) {
		w->result = result;
		w->is_done = true;
	}
	w->joined = false;
}

/* Moves the readers of a fetch on. Returns the requests that are done. The
   caller holds the lock. */
static struct want *move_on(struct tables *t, struct want *waiting,
			    struct tables_fetch **list)
{
	struct want *done = NULL, *w, *next;

	for (w = waiting; w; w = next) {
		next = w->next;
		advance(w);
		if (w->is_done)
			try_again(t, w, list);
		if (w->is_done && w->caller)
			DL_APPEND(done, w);
	}
	return done;
}

static void fetch_done(struct source_request *request, int result)
{
	struct tables_fetch *f = request->arg;
	struct tables *t = f->tables;
	struct want *done, *w, *next;
	struct tables_fetch *list = NULL;

	pthread_mutex_lock(&t->lock);
	for (unsigned i = 0; i < f->num; i++)
		blocks_settle(&t->blocks, f->blocks[i], result);
	note_background(t, f, result);
	done = move_on(t, f->waiting, &list);
	pthread_cond_broadcast(&t->settled);
	pthread_mutex_unlock(&t->lock);
	free(f);
	for (w = done; w; w = next) {
		next = w->next;
		finish_want(t, w);
	}
	submit_fetches(t, list);
	fill_tables(t);
}

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

/* Reads up to WANT bytes. Returns false if there is no room for their
   blocks. */
static bool read_blocks(struct tables *t, uint8_t *buf, size_t size,
			uint64_t off, int *result)
{
	const struct source_request q = { .buf = buf, .size = size };
	struct want w = { .num = 0 };
	struct tables_fetch *list = NULL;
	bool taken;

	pthread_mutex_lock(&t->lock);
	taken = take_blocks(t, &w, off, size, &list);
	pthread_mutex_unlock(&t->lock);
	submit_fetches(t, list);
	if (!taken)
		return false;
	pthread_mutex_lock(&t->lock);
	while (!w.is_done)
		pthread_cond_wait(&t->settled, &t->lock);
	pthread_mutex_unlock(&t->lock);
	if (!w.result)
		copy_blocks(&w, &q);
	pthread_mutex_lock(&t->lock);
	drop_blocks(t, &w);
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
	const struct source_range *r = table_at(t, off);
	uint64_t limit = r ? r->off + r->size : t->size;
	uint64_t most = most_ahead(t, off), from, to, start = off;
	uint64_t end = off + min_u64(size, most);
	bool is_scan =
		ahead_note(&t->ahead, off, size, limit, most, &from, &to);
	bool known = is_known(t, off, min_u64(size, most));

	if (t->noted && !r && !is_scan && !known)
		return false;
	if (!known) {
		extend(t, &start, &end);
		make_fetches(t, start, end, true, list);
	}
	make_fetches(t, from, to, false, ahead);
	if (r && !known)
		want_tables(t);
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
	submit_fetches(t, list);
	submit_fetches(t, ahead);
	fill_tables(t);
	if (!through)
		return read_around(t, buf, size, off);
	for (size_t at = 0; at < size && !r; at += n) {
		n = min_u64(WANT, size - at);
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
	if (!q->size || q->size > WANT || !range_ok(q->off, q->size, t->size))
		return false;
	return (!q->direct && is_in_table(t, q->off, q->size)) ||
	       all_ready(t, q->off, q->size);
}

enum course {
	PASSES,	  /* to the inner source */
	WAITS,	  /* the end of a fetch finishes it */
	IS_READY, /* the caller finishes it */
};

/* Sets *want unless the request passes. */
static enum course take_request(struct tables *t, struct source_request *q,
				struct want **want, struct tables_fetch **list)
{
	struct want *w;

	scoped_lock(&t->lock);
	w = is_for_blocks(t, q) ? malloc(sizeof(*w)) : NULL;
	if (w) {
		memset(w, 0, offsetof(struct want, blocks));
		w->caller = q;
		if (take_blocks(t, w, q->off, q->size, list)) {
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
	struct want *w;

	q->got = 0;
	q->queued = false;
	q->fetch = NULL;
	switch (take_request(t, q, &w, &list)) {
	case PASSES:
		source_submit(t->inner, q);
		break;
	case IS_READY:
		finish_want(t, w);
		break;
	case WAITS:
		break;
	}
	submit_fetches(t, list);
}

/* Takes a waiting request off its fetch. Returns NULL if it does not wait
   here. */
static struct want *stop_waiting(struct tables *t,
				 const struct source_request *q, bool *is_ours)
{
	struct want *w;

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
	struct want *w = stop_waiting(t, q, &is_ours);

	if (w)
		finish_want(t, w);
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
	size = min_u64(min_u64(size, t->size - off), most_ahead(t, off));
	end = off + size;
	if (!is_known(t, off, size)) {
		extend(t, &off, &end);
		/* Requests of other readers should not wait for large
		   ranges. */
		make_fetches(t, off, end, size <= PIECE, &list);
		if (table_at(t, off))
			want_tables(t);
	}
	pthread_mutex_unlock(&t->lock);
	submit_fetches(t, list);
	fill_tables(t);
}

/* --- opening and closing --- */

static void note_range(struct tables *t, const struct source_range *r)
{
	if (t->num_ranges < RANGES_MAX && r->size &&
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
		min_u64(all - all / TABLES_SHARE, blocks_of_tables(t));
	HASH_ITER(hh, t->blocks.table, block, next)
	blocks_sort(&t->blocks, block, kind_of(t, block->index));
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
				   kind_of(t, off / BLOCK));
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
