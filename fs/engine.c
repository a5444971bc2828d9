/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/engine.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <utlist.h>

#include "fs/bytes.h"
#include "fs/pool.h"
#include "fs/scope.h"

enum {
	THREADS_DEFAULT = 2,
	SLOT_BYTES_DEFAULT = 256 << 20,
	/* Layouts kept for a look-up that follows another soon. */
	BATCHES_KEPT = 64,
	/* Assembled batches that nobody reads, for whoever reads the same once
	   more; the memory of others is used again. */
	SLOTS_KEPT = 4,
};

/* An assembled batch. References and the rest are guarded by engine.lock. */
struct slot {
	struct engine *engine;
	struct slot *prev, *next; /* in engine.slots, least recent first */
	struct batch *batch;	  /* whose bytes these are; one reference */
	struct piece *piece;	  /* set by the thread that fills */
	unsigned refs;
	bool filling; /* one thread does; others wait on filled */
	int result;
	bool failed;	/* some sample could not be read */
	bool abandoned; /* to somebody who may still read */
};

enum ticket_state { TICKET_QUEUED, TICKET_RUNNING, TICKET_DONE };

struct ticket {
	struct engine *engine;
	struct ticket *prev, *next; /* in engine.queue while queued */
	struct batch *batch;
	struct dest dest;
	batch_done *done;
	void *arg;
	enum ticket_state state; /* guarded by engine.lock */
};

/* A layout that is kept, and which batch of which stream it is. */
struct kept {
	uint64_t stream;
	uint64_t number;
	struct batch *batch;
};

struct engine {
	struct log *log;
	uint64_t budget;
	uint64_t batch_max;
	struct pool *pool;
	pthread_mutex_t lock; /* guards all that follows */
	pthread_cond_t queued;
	pthread_cond_t finished; /* a ticket is done, or a slot filled */
	struct ticket *queue;
	struct slot *slots;
	struct kept kept[BATCHES_KEPT];
	size_t oldest;	  /* index in kept to replace next */
	uint64_t streams; /* ever opened */
	bool stopping;
	pthread_t *threads;
	unsigned num_threads;
};

struct stream {
	struct engine *engine;
	struct dataset *ds;
	struct spec spec;
	uint64_t epoch;
	uint64_t id;
};

/* --- slots --- */

static void slot_free(struct slot *slot)
{
	struct engine *e = slot->engine;

	DL_DELETE(e->slots, slot);
	if (slot->abandoned)
		pool_drop(e->pool, &slot->piece);
	pool_give(e->pool, &slot->piece);
	batch_put(&slot->batch);
	free(slot);
}

static struct slot *least_recent_unused(struct engine *e, unsigned *unused)
{
	struct slot *slot, *found = NULL;

	*unused = 0;
	DL_FOREACH(e->slots, slot)
	{
		if (slot->refs)
			continue;
		if (!found)
			found = slot;
		++*unused;
	}
	return found;
}

/* Frees unused slots, least recent first, as long as there are too many or they
   take too much; the most recent stays. */
static void trim(struct engine *e)
{
	struct slot *slot;
	unsigned unused;

	for (;;) {
		slot = least_recent_unused(e, &unused);
		if (!slot || slot == e->slots->prev ||
		    (unused <= SLOTS_KEPT && !pool_is_over(e->pool)))
			return;
		slot_free(slot);
	}
}

static bool free_one_unused(struct engine *e)
{
	struct slot *slot;
	unsigned unused;

	scoped_lock(&e->lock);
	slot = least_recent_unused(e, &unused);
	if (slot)
		slot_free(slot);
	return slot != NULL;
}

/* Memory for a slot that this thread fills; without the lock. What is read goes
   before what is kept, and above the budget if need be. */
static int slot_memory(struct engine *e, struct slot *slot)
{
	uint64_t size = slot->batch->vfile.size;
	int r;

	do
		r = pool_take(e->pool, size, false, &slot->piece);
	while (r == -ENOSPC && free_one_unused(e));
	return r == -ENOSPC ? pool_take(e->pool, size, true, &slot->piece) : r;
}

static struct slot *slot_find(struct engine *e, const struct batch *batch)
{
	struct slot *slot;

	DL_FOREACH(e->slots, slot)
	{
		if (slot->batch == batch)
			return slot;
	}
	return NULL;
}

/* A slot for the batch, with a reference: the one that has it, or a new one
   that the caller has to fill. Called with the lock held. */
static int slot_take(struct engine *e, struct batch *batch, struct slot **out)
{
	struct slot *slot = slot_find(e, batch);

	if (slot) {
		DL_DELETE(e->slots, slot);
	} else {
		slot = calloc(1, sizeof(*slot));
		if (!slot)
			return -ENOMEM;
		batch_get(batch);
		slot->engine = e;
		slot->batch = batch;
		slot->filling = true;
		slot->result = -EINPROGRESS;
	}
	DL_APPEND(e->slots, slot);
	slot->refs++;
	trim(e);
	*out = slot;
	return 0;
}

/* Fills a slot or waits for the thread that does. */
static int slot_fill(struct engine *e, struct slot *slot)
{
	bool mine, failed = false;
	int r;

	pthread_mutex_lock(&e->lock);
	mine = slot->filling && slot->result == -EINPROGRESS;
	if (mine)
		slot->result = -EALREADY;
	while (!mine && slot->filling)
		pthread_cond_wait(&e->finished, &e->lock);
	r = slot->result;
	pthread_mutex_unlock(&e->lock);
	if (!mine)
		return r;
	r = slot_memory(e, slot);
	if (!r)
		r = batch_assemble(slot->batch, slot->piece->bytes, &failed);
	pthread_mutex_lock(&e->lock);
	slot->filling = false;
	slot->result = r;
	slot->failed = failed;
	pthread_cond_broadcast(&e->finished);
	pthread_mutex_unlock(&e->lock);
	return r;
}

const void *slot_bytes(const struct slot *slot)
{
	return slot->piece->bytes;
}

int slot_fd(const struct slot *slot)
{
	return slot->piece->fd;
}

uint64_t slot_id(const struct slot *slot)
{
	return slot->piece->id;
}

uint64_t slot_capacity(const struct slot *slot)
{
	return slot->piece->capacity;
}

void slot_put(struct slot **slot_of_caller)
{
	struct slot *slot = steal(*slot_of_caller);
	struct engine *e;

	if (!slot)
		return;
	e = slot->engine;
	scoped_lock(&e->lock);
	if (--slot->refs)
		return;
	/* What failed is tried again by the next reader. */
	if (slot->result)
		slot_free(slot);
	trim(e);
}

void slot_abandon(struct slot **slot)
{
	if (!*slot)
		return;
	pthread_mutex_lock(&(*slot)->engine->lock);
	(*slot)->abandoned = true;
	pthread_mutex_unlock(&(*slot)->engine->lock);
	slot_put(slot);
}

static int shared_slot(struct engine *e, struct batch *batch, struct slot **out)
{
	struct slot *slot;
	int r;

	pthread_mutex_lock(&e->lock);
	r = slot_take(e, batch, &slot);
	pthread_mutex_unlock(&e->lock);
	if (r)
		return r;
	r = slot_fill(e, slot);
	if (r)
		slot_put(&slot);
	else
		*out = slot;
	return r;
}

/* --- tickets --- */

static void run_ticket(struct ticket *t)
{
	struct engine *e = t->engine;
	struct slot *slot = NULL;
	bool failed;
	int r;

	if (t->dest.bytes)
		r = batch_assemble(t->batch, t->dest.bytes, &failed);
	else
		r = shared_slot(e, t->batch, &slot);
	t->done(t->arg, r, slot);
	pthread_mutex_lock(&e->lock);
	t->state = TICKET_DONE;
	pthread_cond_broadcast(&e->finished);
	pthread_mutex_unlock(&e->lock);
}

static void *work(void *arg)
{
	struct engine *e = arg;
	struct ticket *t;

	pthread_mutex_lock(&e->lock);
	while (!e->stopping) {
		t = e->queue;
		if (!t) {
			pthread_cond_wait(&e->queued, &e->lock);
			continue;
		}
		DL_DELETE(e->queue, t);
		t->state = TICKET_RUNNING;
		pthread_mutex_unlock(&e->lock);
		run_ticket(t);
		pthread_mutex_lock(&e->lock);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

int stream_submit(struct stream *stream, struct batch *batch,
		  const struct dest *dest, batch_done *done, void *arg,
		  struct ticket **out)
{
	struct engine *e = stream->engine;
	struct ticket *t;

	if (dest->bytes && dest->size < batch->vfile.size)
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	batch_get(batch);
	t->engine = e;
	t->batch = batch;
	t->dest = *dest;
	t->done = done;
	t->arg = arg;
	/* Set before the work can be over and its callback look for it. */
	*out = t;
	scoped_lock(&e->lock);
	DL_APPEND(e->queue, t);
	pthread_cond_signal(&e->queued);
	return 0;
}

void ticket_close(struct ticket **ticket)
{
	struct ticket *t = steal(*ticket);
	struct engine *e;

	if (!t)
		return;
	e = t->engine;
	pthread_mutex_lock(&e->lock);
	if (t->state == TICKET_QUEUED)
		DL_DELETE(e->queue, t);
	while (t->state == TICKET_RUNNING)
		pthread_cond_wait(&e->finished, &e->lock);
	pthread_mutex_unlock(&e->lock);
	batch_put(&t->batch);
	free(t);
}

int stream_slot(struct stream *stream, struct batch *batch, struct slot **out)
{
	return shared_slot(stream->engine, batch, out);
}

/* --- streams --- */

int stream_open(struct engine *engine, struct dataset *ds,
		const struct spec *spec, uint64_t epoch, struct stream **out)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = (struct stream){
		.engine = engine,
		.ds = ds,
		.spec = *spec,
		.epoch = epoch,
	};
	scoped_lock(&engine->lock);
	s->id = ++engine->streams;
	*out = s;
	return 0;
}

void stream_close(struct stream *stream)
{
	free(stream);
}

/* Whether a sample of a kept batch may be readable by now. */
static bool may_improve(struct engine *e, const struct batch *batch)
{
	const struct slot *slot = slot_find(e, batch);

	return batch->has_io_errors || (slot && slot->failed);
}

static bool find_kept(struct stream *s, uint64_t number, bool afresh,
		      struct batch **out)
{
	struct engine *e = s->engine;

	scoped_lock(&e->lock);
	for (size_t i = 0; i < BATCHES_KEPT; i++) {
		struct kept *k = &e->kept[i];

		if (!k->batch || k->stream != s->id || k->number != number)
			continue;
		if (afresh && may_improve(e, k->batch)) {
			batch_put(&k->batch);
			return false;
		}
		batch_get(k->batch);
		*out = k->batch;
		return true;
	}
	return false;
}

static void keep(struct stream *s, uint64_t number, struct batch *batch)
{
	struct engine *e = s->engine;
	struct kept *k;

	scoped_lock(&e->lock);
	k = &e->kept[e->oldest];
	e->oldest = (e->oldest + 1) % BATCHES_KEPT;
	batch_put(&k->batch);
	batch_get(batch);
	*k = (struct kept){ s->id, number, batch };
}

int stream_batch(struct stream *s, uint64_t number, bool afresh,
		 struct batch **out)
{
	const struct batch_key key = { s->ds, &s->spec, s->epoch, number };
	struct batch *batch;
	int r;

	if (find_kept(s, number, afresh, out))
		return 0;
	r = batch_open(&key, &batch);
	if (r)
		return r;
	if (batch->vfile.size > s->engine->batch_max) {
		log_error(
			s->engine->log,
			"%s: a batch of %llu bytes, at most %llu fit into memory",
			dataset_path(s->ds),
			(unsigned long long)batch->vfile.size,
			(unsigned long long)s->engine->batch_max);
		batch_put(&batch);
		return -EFBIG;
	}
	keep(s, number, batch);
	*out = batch;
	return 0;
}

/* --- the engine --- */

static uint64_t quarter_of_memory(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) *
	       (uint64_t)sysconf(_SC_PAGE_SIZE) / 4;
}

/* Threads of a library take no signals: those are the program's. */
static int start_threads(struct engine *e, unsigned n)
{
	sigset_t all, before;
	int r = 0;

	e->threads = calloc(n, sizeof(*e->threads));
	if (!e->threads)
		return -ENOMEM;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (; e->num_threads < n && !r; e->num_threads += !r)
		r = -pthread_create(&e->threads[e->num_threads], NULL, work, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int engine_open(const struct engine_options *options, struct engine **out)
{
	struct engine *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->log = options->log;
	e->budget =
		options->slot_bytes ? options->slot_bytes : SLOT_BYTES_DEFAULT;
	e->batch_max = max_u64(e->budget, quarter_of_memory());
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->queued, NULL);
	pthread_cond_init(&e->finished, NULL);
	r = pool_open(e->budget, &e->pool);
	if (!r)
		r = start_threads(e, options->threads ? options->threads
						      : THREADS_DEFAULT);
	if (r)
		engine_close(e);
	else
		*out = e;
	return r;
}

uint64_t engine_budget(const struct engine *e)
{
	return e->budget;
}

void engine_close(struct engine *e)
{
	struct slot *slot, *next;

	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	e->stopping = true;
	pthread_cond_broadcast(&e->queued);
	pthread_mutex_unlock(&e->lock);
	for (unsigned i = 0; i < e->num_threads; i++)
		pthread_join(e->threads[i], NULL);
	DL_FOREACH_SAFE(e->slots, slot, next)
	{
		slot_free(slot);
	}
	pool_close(e->pool);
	for (size_t i = 0; i < BATCHES_KEPT; i++)
		batch_put(&e->kept[i].batch);
	pthread_cond_destroy(&e->finished);
	pthread_cond_destroy(&e->queued);
	pthread_mutex_destroy(&e->lock);
	free(e->threads);
	free(e);
}
