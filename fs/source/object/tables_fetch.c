/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/tables_fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"

enum {
	BLOCK = BLOCK_BYTES,
	/* A read of a table requests this much: on a link of 400 Mbit/s with 64
	   connections and a latency of 50 ms, more bytes would take longer. */
	GROUP = 32 << 10,
	/* Requests in the background: while other requests pass, and if none
	   did for IDLE_NS. */
	BACKGROUND_BUSY = 1,
	BACKGROUND_IDLE = 8,
};

static const int64_t idle_ns = 200 * 1000000LL;

struct tables *tables_of(const struct source *source)
{
	return (struct tables *)source;
}

/* --- ranges --- */

const struct source_range *tables_at(const struct tables *t, uint64_t off)
{
	for (size_t i = 0; i < t->num_ranges; i++) {
		if (off >= t->ranges[i].off &&
		    off - t->ranges[i].off < t->ranges[i].size)
			return &t->ranges[i];
	}
	return NULL;
}

bool tables_contain(const struct tables *t, uint64_t off, uint64_t size)
{
	const struct source_range *r = tables_at(t, off);

	return r && range_ok(off - r->off, size, r->size);
}

enum block_kind tables_kind_of(const struct tables *t, uint64_t index)
{
	uint64_t off = index * BLOCK;

	for (size_t i = 0; i < t->num_ranges; i++) {
		if (off + BLOCK > t->ranges[i].off &&
		    off < t->ranges[i].off + t->ranges[i].size)
			return BLOCK_TABLE;
	}
	return BLOCK_OTHER;
}

bool tables_have(struct tables *t, uint64_t off, uint64_t size)
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

void tables_make_fetches(struct tables *t, uint64_t off, uint64_t end,
			 bool must, struct tables_fetch **list)
{
	struct tables_fetch *f = NULL;
	struct block *block;

	for (uint64_t i = off / BLOCK; i * BLOCK < end; i++) {
		if (blocks_find(&t->blocks, i)) {
			f = NULL;
			continue;
		}
		if (!f || i % TABLES_PIECE_BLOCKS == 0) {
			f = fetch_new(t, i * BLOCK, must);
			if (!f)
				return;
			DL_APPEND(*list, f);
		}
		block = blocks_add(&t->blocks, i, tables_kind_of(t, i));
		if (!block)
			break;
		add_to_fetch(f, block);
	}
	if (f && !f->num) {
		DL_DELETE(*list, f);
		free(f);
	}
}

void tables_extend(const struct tables *t, uint64_t *off, uint64_t *end)
{
	const struct source_range *r = t->noted ? tables_at(t, *off) : NULL;

	if (!r || *end > r->off + r->size)
		return;
	*off = max_u64(*off / GROUP * GROUP, r->off);
	*end = min_u64(align_up(*end, GROUP), r->off + r->size);
}

uint64_t tables_most_ahead(const struct tables *t, uint64_t off)
{
	enum block_kind kind = tables_kind_of(t, off / BLOCK);

	return max_u64(TABLES_WANT, t->blocks.most[kind] / 2 * BLOCK);
}

/* --- requests; without the lock --- */

void tables_submit_fetches(struct tables *t, struct tables_fetch *list)
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

void tables_want_copy(const struct tables_want *w,
		      const struct source_request *q)
{
	size_t skip = w->off % BLOCK, n;

	for (size_t i = 0, at = 0; at < q->size; i++, at += n) {
		n = min_u64(BLOCK - skip, q->size - at);
		copy_out(q, at, w->blocks[i]->bytes + skip, n);
		skip = 0;
	}
}

/* --- readers; with the lock held --- */

void tables_want_drop(struct tables *t, struct tables_want *w)
{
	for (unsigned i = 0; i < w->num; i++)
		blocks_drop(&t->blocks, w->blocks[i]);
	w->num = 0;
}

/* Waits for the next fetch. Sets is_done if none is left, or one has failed. */
static void advance(struct tables_want *w)
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
static bool use_blocks(struct tables *t, struct tables_want *w, uint64_t end)
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

bool tables_want_take(struct tables *t, struct tables_want *w, uint64_t off,
		      uint64_t size, struct tables_fetch **list)
{
	uint64_t from = off, end = off + size;

	w->off = off;
	w->size = size;
	t->reads++;
	if (!use_blocks(t, w, end)) {
		tables_extend(t, &from, &end);
		tables_make_fetches(t, from, end, true, list);
		if (!use_blocks(t, w, off + size)) {
			tables_want_drop(t, w);
			return false;
		}
	}
	advance(w);
	t->waits += !w->is_done;
	return true;
}

/* --- whole tables in the background --- */

uint64_t tables_num_blocks(const struct tables *t)
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
	       tables_num_blocks(t) <= t->blocks.most[BLOCK_TABLE];
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
		end = min_u64((t->next / TABLES_PIECE + 1) * TABLES_PIECE,
			      r->off + r->size);
		if (t->next < end)
			tables_make_fetches(t, t->next, end, false, &list);
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

void tables_fill(struct tables *t)
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
		tables_submit_fetches(t, list);
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
		if (tables_at(t, f->request.off) != &t->ranges[i])
			continue;
		t->range = i;
		t->next = f->request.off;
	}
}

void tables_want_all(struct tables *t)
{
	t->is_wanted = t->range < t->num_ranges && tables_fit(t);
}

/* --- the end of a fetch --- */

void tables_want_finish(struct tables *t, struct tables_want *w)
{
	struct source_request *q = w->caller;
	int result = w->result;

	if (!result) {
		tables_want_copy(w, q);
		q->got = q->size;
	}
	pthread_mutex_lock(&t->lock);
	tables_want_drop(t, w);
	DL_DELETE2(t->async, w, prev_async, next_async);
	pthread_mutex_unlock(&t->lock);
	free(w);
	q->done(q, result);
}

/* A reader requests its blocks itself, once, if a request failed that began
   before: the server may be back. The caller holds the lock. */
static void try_again(struct tables *t, struct tables_want *w,
		      struct tables_fetch **list)
{
	int result = w->result;

	if (!result || !w->joined || result == -ECANCELED || t->closing)
		return;
	tables_want_drop(t, w);
	w->ready = 0;
	w->result = 0;
	w->is_done = false;
	if (!tables_want_take(t, w, w->off, w->size, list)) {
		w->result = result;
		w->is_done = true;
	}
	w->joined = false;
}

/* Moves the readers of a fetch on. Returns the requests that are done. The
   caller holds the lock. */
static struct tables_want *move_on(struct tables *t,
				   struct tables_want *waiting,
				   struct tables_fetch **list)
{
	struct tables_want *done = NULL, *w, *next;

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
	struct tables_want *done, *w, *next;
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
		tables_want_finish(t, w);
	}
	tables_submit_fetches(t, list);
	tables_fill(t);
}
