/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/slot.h"

#include <pthread.h>
#include <stdlib.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/data/engine/line.h"
#include "fs/data/engine/pool.h"
#include "fs/source/local/source.h"

enum {
	/* The most read slots that stay for other readers of the same
	   batch. The memory of further slots is recycled while it is in the
	   CPU cache. */
	READ_MAX = 2,
	/*
	 * Milliseconds that a slot waits for the request of its next piece, at
	 * least and at most: much longer than a request takes. Between both
	 * limits, it waits as long as collating the batch took, because losing
	 * the slot costs that again. On a busy machine both take longer, and
	 * readers that lose their slots after each piece would never reach the
	 * end.
	 */
	BEGUN_MS = 500,
	BEGUN_MS_MAX = 5000,
};

enum slot_state { SLOT_NEW, SLOT_FILLING, SLOT_READY, SLOT_FAILED };

/* Guarded by slots.lock, except `cost` and the contents of `batch` and `piece`,
   which belong to the thread that fills it. */
struct slot {
	struct slots *slots;
	struct slot *prev, *next; /* in slots.list, least recent first */
	struct batch *batch;	  /* the batch in `piece`; one reference */
	struct piece *piece;	  /* set by the thread that fills it */
	unsigned refs;
	enum slot_state state; /* one thread fills, others wait on filled */
	int result;
	uint64_t marks;	  /* which samples could not be read; 0: none */
	bool abandoned;	  /* another process may still read it */
	bool is_prefetch; /* no reader has requested it yet */
	unsigned begun;	  /* readers that will request more of it */
	uint64_t number;  /* from 1, never used again */
	int64_t since;	  /* milliseconds: when it was last touched */
	int64_t cost;	  /* milliseconds that collating it took */
};

struct slots {
	struct slots_options options;
	struct pool *pool;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t filled;
	struct slot *list;
	uint64_t numbers; /* of slots, used so far */
	uint64_t collated, prefetched, shared, wasted;
	struct line line; /* of readers without memory; has its own lock */
};

/* --- the list; with the lock held --- */

static void slot_free(struct slot *slot)
{
	struct slots *s = slot->slots;

	DL_DELETE(s->list, slot);
	s->wasted += slot->is_prefetch && slot->state == SLOT_READY;
	if (slot->abandoned)
		pool_abandon(s->pool, &slot->piece);
	pool_give(s->pool, &slot->piece);
	batch_put(&slot->batch);
	free(slot);
	line_freed(&s->line);
}

static bool is_between_pieces(const struct slot *slot, int64_t now)
{
	int64_t wait = slot->cost < BEGUN_MS ? BEGUN_MS : slot->cost;

	if (wait > BEGUN_MS_MAX)
		wait = BEGUN_MS_MAX;
	return slot->begun && now - slot->since <= wait;
}

/* Returns whether the slot is not held, and not between two pieces of a
   reader. */
static bool is_idle(const struct slot *slot, int64_t now)
{
	return !slot->refs && slot->state == SLOT_READY &&
	       !is_between_pieces(slot, now);
}

/* Returns whether the slot is idle, and not prefetched for a reader. */
static bool is_free(const struct slot *slot, int64_t now)
{
	return is_idle(slot, now) &&
	       (!slot->is_prefetch ||
		now - slot->since > SLOTS_PATIENCE * 1000LL);
}

static struct slot *least_recent_free(struct slots *s, unsigned *n)
{
	struct slot *slot, *found = NULL;
	int64_t now = clock_coarse_ms();

	*n = 0;
	DL_FOREACH(s->list, slot)
	{
		if (!is_free(slot, now))
			continue;
		if (!found)
			found = slot;
		++*n;
	}
	return found;
}

/* Returns whether a reader requests `a` after `b`. */
static bool is_later(const struct batch_key *a, const struct batch_key *b)
{
	if (a->ds != b->ds || !spec_equal(a->spec, b->spec))
		return false;
	return a->epoch != b->epoch ? a->epoch > b->epoch
				    : a->number > b->number;
}

/*
 * Returns the slot to evict: the last one that the reader of the least recent
 * slot needs. If its first slot were evicted, collating it again would evict
 * the second, and so on.
 */
static struct slot *last_prefetched(struct slots *s)
{
	struct slot *slot, *found = NULL;
	int64_t now = clock_coarse_ms();

	DL_FOREACH(s->list, slot)
	{
		if (is_idle(slot, now) &&
		    (!found || is_later(&slot->batch->key, &found->batch->key)))
			found = slot;
	}
	return found;
}

/* Frees slots that were read, if there are more than READ_MAX. */
static void trim_read_slots(struct slots *s)
{
	struct slot *slot;
	unsigned n;

	for (;;) {
		slot = least_recent_free(s, &n);
		if (!slot || slot == s->list->prev ||
		    (n <= READ_MAX && !pool_is_over(s->pool)))
			return;
		slot_free(slot);
	}
}

static struct slot *find(struct slots *s, const struct batch *batch)
{
	struct slot *slot;

	DL_FOREACH(s->list, slot)
	{
		if (slot->batch == batch && slot->state != SLOT_FAILED)
			return slot;
	}
	return NULL;
}

/* --- filling; without the lock --- */

/* Makes room for one more piece. Returns true if another try may succeed. */
static bool make_room_for_piece(struct slots *s, bool is_prefetch)
{
	struct slot *slot;
	unsigned n;

	scoped_lock(&s->lock);
	slot = least_recent_free(s, &n);
	if (!slot && !is_prefetch)
		slot = last_prefetched(s);
	if (slot)
		slot_free(slot);
	return slot != NULL;
}

/* Every user of the dataset's file may read its batches. */
static struct pool_readers readers_of(const struct batch *batch)
{
	const struct dataset *ds = batch->key.ds;

	if (!ds)
		return (struct pool_readers){ .uid = 0 };
	return (struct pool_readers){
		.uid = ds->source->stat.st_uid,
		.gid = ds->source->stat.st_gid,
		.mode = ds->source->stat.st_mode & 07777,
	};
}

static int try_piece(struct slots *s, const struct batch *batch,
		     bool is_prefetch, struct piece **out)
{
	const struct pool_readers readers = readers_of(batch);
	int r;

	do
		r = pool_take(s->pool, batch->vfile.size, &readers, out);
	while (r == -ENOSPC && make_room_for_piece(s, is_prefetch));
	return r;
}

static int no_memory(struct slots *s, const struct batch *batch)
{
	const struct dataset *ds = batch->key.ds;
	struct pool_stats pool;

	pool_stats(s->pool, &pool);
	log_error(ds ? ds->log : NULL,
		  "%s: no memory for a batch of %llu bytes within %u ms: "
		  "readers and loaders hold %llu of %llu bytes; use smaller "
		  "batches, or give the mount a larger cache_size",
		  ds ? dataset_path(ds) : "",
		  (unsigned long long)batch->vfile.size, s->options.wait_ms,
		  (unsigned long long)pool.bytes,
		  (unsigned long long)s->options.limit);
	return -ENOMEM;
}

/* Waits until it is this thread's turn and it finds memory. */
static int wait_for_piece(struct slots *s, const struct batch *batch,
			  const struct line_place *me, struct piece **out)
{
	int64_t end = clock_coarse_ms() + s->options.wait_ms;
	uint64_t frees;
	int r = -ENOSPC;

	for (;;) {
		/* If memory is freed after this line, the wait below ends. */
		frees = line_frees(&s->line);
		if (line_is_turn(&s->line, me))
			r = try_piece(s, batch, false, out);
		if (r != -ENOSPC)
			return r;
		if (clock_coarse_ms() >= end)
			return no_memory(s, batch);
		line_wait(&s->line, frees);
	}
}

static int wait_in_line(struct slots *s, const struct batch *batch,
			struct piece **out)
{
	struct line_place me = { .bytes = batch->vfile.size };
	int r;

	line_enter(&s->line, &me);
	r = wait_for_piece(s, batch, &me, out);
	line_leave(&s->line, &me);
	return r;
}

static int take_memory(struct slots *s, const struct batch *batch,
		       bool is_prefetch, struct piece **out)
{
	const struct line_place me = { .bytes = batch->vfile.size };
	int r = -ENOSPC;

	if (align_up(batch->vfile.size, POOL_ALIGN) > s->options.limit)
		return -EFBIG;
	if (is_prefetch ? line_is_empty(&s->line) : line_is_turn(&s->line, &me))
		r = try_piece(s, batch, is_prefetch, out);
	if (r != -ENOSPC)
		return r;
	return is_prefetch ? -EAGAIN : wait_in_line(s, batch, out);
}

static void finish(struct slots *s, struct slot *slot, int result,
		   uint64_t marks)
{
	scoped_lock(&s->lock);
	slot->state = result ? SLOT_FAILED : SLOT_READY;
	slot->result = result;
	slot->marks = marks;
	slot->since = clock_coarse_ms();
	s->collated += !result;
	s->prefetched += !result && slot->is_prefetch;
	pthread_cond_broadcast(&s->filled);
}

static int fill(struct slots *s, struct slot *slot, bool is_prefetch)
{
	struct piece *piece = NULL;
	uint64_t marks = 0;
	int r = take_memory(s, slot->batch, is_prefetch, &piece);
	int64_t begin = clock_coarse_ms();

	slot->piece = piece;
	if (!r)
		r = s->options.collate(s->options.arg, slot->batch,
				       piece->bytes, &marks);
	slot->cost = clock_coarse_ms() - begin;
	finish(s, slot, r, marks);
	return r;
}

/* Fills a slot or waits for the thread that does. */
static int need_filled(struct slots *s, struct slot *slot, bool is_prefetch)
{
	int r;

	pthread_mutex_lock(&s->lock);
	if (slot->state == SLOT_NEW) {
		slot->state = SLOT_FILLING;
		pthread_mutex_unlock(&s->lock);
		return fill(s, slot, is_prefetch);
	}
	while (slot->state == SLOT_FILLING)
		pthread_cond_wait(&s->filled, &s->lock);
	r = slot->result;
	pthread_mutex_unlock(&s->lock);
	return r;
}

/*
 * --- interface ---
 */

/* Returns a slot for the batch, with a reference: the one that has it, or a new
   one. */
static struct slot *take_slot(struct slots *s, struct batch *batch,
			      bool is_prefetch)
{
	struct slot *slot;

	scoped_lock(&s->lock);
	slot = find(s, batch);
	if (slot) {
		DL_DELETE(s->list, slot);
		s->shared += slot->state == SLOT_READY;
	} else {
		slot = calloc(1, sizeof(*slot));
		if (!slot)
			return NULL;
		batch_get(batch);
		slot->slots = s;
		slot->batch = batch;
		slot->is_prefetch = is_prefetch;
		slot->number = ++s->numbers;
	}
	DL_APPEND(s->list, slot);
	slot->refs++;
	if (!is_prefetch)
		slot->is_prefetch = false;
	trim_read_slots(s);
	return slot;
}

static int get(struct slots *s, struct batch *batch, bool is_prefetch,
	       struct slot **out)
{
	struct slot *slot;
	int r;

	/* -EAGAIN: another thread tried to prefetch it and found no room. */
	do {
		slot = take_slot(s, batch, is_prefetch);
		if (!slot)
			return -ENOMEM;
		r = need_filled(s, slot, is_prefetch);
		if (r)
			slot_put(&slot);
	} while (r == -EAGAIN && !is_prefetch);
	if (!r)
		*out = slot;
	return r;
}

int slots_get(struct slots *s, struct batch *batch, struct slot **out)
{
	return get(s, batch, false, out);
}

int slots_prepare(struct slots *s, struct batch *batch)
{
	struct slot *slot;
	bool is_there;
	int r;

	pthread_mutex_lock(&s->lock);
	is_there = find(s, batch);
	pthread_mutex_unlock(&s->lock);
	if (is_there)
		return 0;
	r = get(s, batch, true, &slot);
	if (!r)
		slot_put(&slot);
	return r;
}

bool slots_ready(struct slots *s, const struct batch *batch)
{
	const struct slot *slot;

	scoped_lock(&s->lock);
	slot = find(s, batch);
	return slot && slot->state == SLOT_READY;
}

bool slots_tidy(struct slots *s)
{
	struct slot *slot, *next;
	int64_t now = clock_coarse_ms();
	struct pool_stats pool;

	scoped_lock(&s->lock);
	DL_FOREACH_SAFE(s->list, slot, next)
	{
		if (is_free(slot, now) &&
		    now - slot->since > SLOTS_PATIENCE * 1000LL)
			slot_free(slot);
	}
	pool_tidy(s->pool);
	pool_stats(s->pool, &pool);
	return s->list || pool.abandoned;
}

bool slots_reclaim(struct slots *s)
{
	struct slot *slot;
	unsigned n;

	pthread_mutex_lock(&s->lock);
	slot = least_recent_free(s, &n);
	if (slot)
		slot_free(slot);
	pthread_mutex_unlock(&s->lock);
	return pool_tidy(s->pool) || slot;
}

bool slots_failed(struct slots *s, const struct batch *batch)
{
	const struct slot *slot;

	scoped_lock(&s->lock);
	slot = find(s, batch);
	return slot && slot->marks;
}

const void *slot_bytes(const struct slot *slot)
{
	return slot->piece->bytes;
}

uint64_t slot_marks(const struct slot *slot)
{
	return slot->marks;
}

int slot_share(const struct slot *slot, uid_t uid, int *fd)
{
	return pool_share(slot->slots->pool, slot->piece, uid, fd);
}

uint64_t slot_id(const struct slot *slot)
{
	return slot->piece->id;
}

uint64_t slot_capacity(const struct slot *slot)
{
	return slot->piece->capacity;
}

/* Counts bytes, because pieces end in any order: the kernel requests some at
   once. */
void slot_note_read(struct slot *slot, struct slot_reader *reader,
		    uint64_t bytes)
{
	scoped_lock(&slot->slots->lock);
	if (reader->slot != slot->number)
		slot->begun++;
	reader->slot = slot->number;
	reader->bytes += bytes;
	if (reader->bytes < slot->batch->vfile.size)
		return;
	*reader = (struct slot_reader){ 0 };
	slot->begun--;
}

static void put(struct slot *slot)
{
	struct slots *s = slot->slots;

	scoped_lock(&s->lock);
	if (--slot->refs)
		return;
	slot->since = clock_coarse_ms();
	/* If a batch has failed, the next reader tries it again. */
	if (slot->result)
		slot_free(slot);
	else
		line_freed(&s->line);
	trim_read_slots(s);
}

void slot_put(struct slot **slot)
{
	if (*slot)
		put(steal(*slot));
}

void slots_leave(struct slots *s, const struct batch *batch,
		 struct slot_reader *reader)
{
	struct slot *slot;

	scoped_lock(&s->lock);
	slot = find(s, batch);
	if (!slot || reader->slot != slot->number)
		return;
	*reader = (struct slot_reader){ 0 };
	if (--slot->begun)
		return;
	line_freed(&s->line);
	trim_read_slots(s);
}

void slot_abandon(struct slot **slot)
{
	if (!*slot)
		return;
	pthread_mutex_lock(&(*slot)->slots->lock);
	(*slot)->abandoned = true;
	pthread_mutex_unlock(&(*slot)->slots->lock);
	slot_put(slot);
}

void slots_stats(struct slots *s, struct slots_stats *out)
{
	struct line_stats line;
	struct pool_stats pool;

	pool_stats(s->pool, &pool);
	line_stats(&s->line, &line);
	scoped_lock(&s->lock);
	*out = (struct slots_stats){
		.collated = s->collated,
		.prefetched = s->prefetched,
		.shared = s->shared,
		.wasted = s->wasted,
		.wait_ns = line.wait_ns,
		.waiting = line.waiting,
		.slots = pool.pieces,
		.bytes = pool.bytes,
		.abandoned = pool.abandoned,
		.huge = pool.collapsed,
	};
}

int slots_open(const struct slots_options *options, struct slots **out)
{
	struct slots *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->options = *options;
	if (!s->options.wait_ms)
		s->options.wait_ms = SLOTS_WAIT_MS;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->filled, NULL);
	line_init(&s->line);
	r = pool_open(&(struct pool_options){ .limit = options->limit,
					      .keep = options->keep,
					      .budget = options->budget },
		      &s->pool);
	if (r)
		slots_close(s);
	else
		*out = s;
	return r;
}

void slots_close(struct slots *s)
{
	struct slot *slot, *next;

	if (!s)
		return;
	DL_FOREACH_SAFE(s->list, slot, next)
	{
		slot_free(slot);
	}
	pool_close(s->pool);
	line_destroy(&s->line);
	pthread_cond_destroy(&s->filled);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
