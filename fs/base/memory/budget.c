/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/memory/budget.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/log.h"

enum {
	/*
	 * A user may pin this many times the bytes that are left to pin: a
	 * single user 7/8 of them, each of two users 7/15. This is the dynamic
	 * threshold of shared packet buffers (Choudhury and Hahne, 1998), with
	 * alpha = 7.
	 */
	PIN_ALPHA = 7,
	/* Requests of ranks 1 and 2 leave these parts to lower ranks. */
	RESERVE_PART = 16,
	LARGE_RESERVE_PART = 4,
	/* A request of rank 2 counts as small up to 1/SMALL_PART of the limit.
	 */
	SMALL_PART = 64,
	/* The cache changes its size in steps of 1/STEPS of the limit, because
	   each step looks at all of its pages. */
	STEPS = 64,
};

/* A user who has pinned bytes. */
struct account {
	struct account *next;
	uid_t uid;
	uint64_t bytes;
};

/* The pinned bytes of one kind. */
struct pins {
	uint64_t bytes;
	struct account *accounts;
};

/* A thread in budget_take(). */
struct waiter {
	struct waiter *prev, *next;
	unsigned rank;
};

struct reclaimer {
	bool (*reclaim)(void *arg, uint64_t bytes);
	void *arg;
};

struct budget {
	uint64_t limit;
	struct log *log;
	uint64_t least; /* of the cache */
	void (*resize)(void *arg, uint64_t bytes);
	void *resize_arg;
	struct reclaimer reclaimers[BUDGET_RECLAIMERS_MAX];
	unsigned num_reclaimers;
	pthread_mutex_t resizing; /* held while resize() runs */
	pthread_mutex_t lock;	  /* guards the members below */
	pthread_cond_t given;
	struct waiter *waiters; /* by rank, then in the order of arrival */
	uint64_t used[BUDGET_USES];
	uint64_t fixed; /* sum of `used` without the cache */
	struct pins pins[BUDGET_PINS];
	uint64_t refused, waits;
};

static const char *const names[BUDGET_USES] = {
#define NAME(use, name, help, rank) [use] = (name),
	BUDGET_ROWS(NAME)
#undef NAME
};

static const unsigned ranks[BUDGET_USES] = {
#define RANK(use, name, help, rank) [use] = (rank),
	BUDGET_ROWS(RANK)
#undef RANK
};

int budget_open(uint64_t limit, struct log *log, struct budget **out)
{
	struct budget *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->limit = limit;
	b->log = log;
	pthread_mutex_init(&b->resizing, NULL);
	pthread_mutex_init(&b->lock, NULL);
	clock_cond_init(&b->given);
	*out = b;
	return 0;
}

static void report_leak(struct budget *b, const char *name, uint64_t bytes)
{
	if (bytes)
		log_error(b->log,
			  "%llu bytes of %s were never freed: a defect of "
			  "betonfs, please report it",
			  (unsigned long long)bytes, name);
}

/* A cache and its cold tier have their bytes for as long as the budget. */
static void report_leaks(struct budget *b)
{
	for (size_t i = 0; i < BUDGET_USES; i++) {
		if (i != BUDGET_CACHE && i != BUDGET_COLD)
			report_leak(b, names[i], b->used[i]);
	}
	for (size_t i = 0; i < BUDGET_PINS; i++)
		report_leak(b, "pinned memory", b->pins[i].bytes);
}

void budget_close(struct budget *b)
{
	struct account *account, *next;

	if (!b)
		return;
	report_leaks(b);
	for (unsigned i = 0; i < BUDGET_PINS; i++) {
		LL_FOREACH_SAFE(b->pins[i].accounts, account, next)
		{
			free(account);
		}
	}
	pthread_cond_destroy(&b->given);
	pthread_mutex_destroy(&b->lock);
	pthread_mutex_destroy(&b->resizing);
	free(b);
}

void budget_add_reclaimer(struct budget *b,
			  bool (*reclaim)(void *arg, uint64_t bytes), void *arg)
{
	if (b && b->num_reclaimers < BUDGET_RECLAIMERS_MAX)
		b->reclaimers[b->num_reclaimers++] =
			(struct reclaimer){ reclaim, arg };
}

/* --- the elastic cache --- */

void budget_set_elastic(struct budget *b, uint64_t least,
			void (*resize)(void *arg, uint64_t bytes), void *arg)
{
	b->least = min_u64(least, b->limit - b->fixed);
	b->resize = resize;
	b->resize_arg = arg;
	b->used[BUDGET_CACHE] = b->limit - b->fixed;
}

/* The size that the cache may have, in whole steps. The caller holds the lock.
 */
static uint64_t cache_room(const struct budget *b)
{
	uint64_t step = max_u64(1, b->limit / STEPS);
	uint64_t room = b->limit - b->fixed;

	return b->fixed ? max_u64(b->least, room / step * step) : room;
}

/* Changes the size of the cache if bytes were taken from it, or if `grow` and
   it may become larger. */
static void fit_cache(struct budget *b, bool grow)
{
	uint64_t room, now;
	bool fits;

	pthread_mutex_lock(&b->lock);
	fits = b->fixed + b->used[BUDGET_CACHE] <= b->limit;
	pthread_mutex_unlock(&b->lock);
	if (!b->resize || (fits && !grow))
		return;
	scoped_lock(&b->resizing);
	pthread_mutex_lock(&b->lock);
	room = cache_room(b);
	now = b->used[BUDGET_CACHE];
	/* Counted before the cache grows, and until it has shrunk. */
	if (room > now)
		b->used[BUDGET_CACHE] = room;
	pthread_mutex_unlock(&b->lock);
	if (room == now)
		return;
	b->resize(b->resize_arg, room);
	pthread_mutex_lock(&b->lock);
	b->used[BUDGET_CACHE] = room;
	pthread_mutex_unlock(&b->lock);
}

void budget_settle(struct budget *b)
{
	if (b)
		fit_cache(b, true);
}

/* --- taking and giving --- */

static unsigned rank_of(const struct budget *b, enum budget_use use,
			uint64_t bytes)
{
	return ranks[use] == 2 && bytes <= b->limit / SMALL_PART ? 1
								 : ranks[use];
}

/* The most that may be in use after a request of this rank. */
static uint64_t most_of(const struct budget *b, unsigned rank)
{
	static const unsigned reserves[] = { 0, RESERVE_PART,
					     LARGE_RESERVE_PART };
	uint64_t most = b->limit - b->least;

	return rank ? most - most / reserves[rank] : most;
}

/* The caller holds the lock. */
static bool has_room(const struct budget *b, unsigned rank, uint64_t bytes)
{
	uint64_t most = most_of(b, rank);

	return b->fixed <= most && bytes <= most - b->fixed;
}

/* The caller holds the lock. */
static void charge_use(struct budget *b, enum budget_use use, uint64_t bytes)
{
	b->used[use] += bytes;
	b->fixed += bytes;
}

/* The caller holds the lock, which this function drops meanwhile. */
static bool reclaim_bytes(struct budget *b, uint64_t bytes)
{
	bool freed = false;

	pthread_mutex_unlock(&b->lock);
	for (unsigned i = 0; i < b->num_reclaimers && !freed; i++)
		freed = b->reclaimers[i].reclaim(b->reclaimers[i].arg, bytes);
	pthread_mutex_lock(&b->lock);
	return freed;
}

/* Returns whether this thread's turn has come and there is room, if necessary
   after calls of the reclaimers. The caller holds the lock, which this function
   may drop meanwhile. */
static bool get_room(struct budget *b, const struct waiter *me, uint64_t bytes)
{
	while (b->waiters == me) {
		if (has_room(b, me->rank, bytes))
			return true;
		if (!reclaim_bytes(b, bytes))
			return has_room(b, me->rank, bytes);
	}
	return false;
}

/* Inserts the waiter behind all of its rank, and before those of higher
   ranks. */
static void get_in_line(struct budget *b, struct waiter *me)
{
	struct waiter *next = b->waiters;

	while (next && next->rank <= me->rank)
		next = next->next;
	if (next)
		DL_PREPEND_ELEM(b->waiters, next, me);
	else
		DL_APPEND(b->waiters, me);
}

static int wait_for_room(struct budget *b, unsigned rank, uint64_t bytes,
			 uint32_t wait_ms)
{
	struct timespec end = clock_in_ms(wait_ms);
	struct waiter me = { .rank = rank };
	bool got, is_late = false;

	b->waits++;
	get_in_line(b, &me);
	while (!(got = get_room(b, &me, bytes)) && !is_late)
		is_late = pthread_cond_timedwait(&b->given, &b->lock, &end);
	DL_DELETE(b->waiters, &me);
	pthread_cond_broadcast(&b->given);
	return got ? 0 : -ENOMEM;
}

/* Rank 0 waits for no others. The caller holds the lock. */
static bool is_line_before(const struct budget *b, unsigned rank)
{
	return rank && b->waiters && b->waiters->rank <= rank;
}

int budget_take(struct budget *b, enum budget_use use, uint64_t bytes,
		uint32_t wait_ms)
{
	uint64_t fixed;
	unsigned rank;
	int r = 0;

	if (!b)
		return 0;
	rank = rank_of(b, use, bytes);
	pthread_mutex_lock(&b->lock);
	if (bytes > most_of(b, rank))
		r = -ENOMEM;
	else if (is_line_before(b, rank) || !has_room(b, rank, bytes))
		r = wait_for_room(b, rank, bytes, wait_ms);
	if (r)
		b->refused++;
	else
		charge_use(b, use, bytes);
	fixed = b->fixed;
	pthread_mutex_unlock(&b->lock);
	if (!r)
		fit_cache(b, false);
	else if (wait_ms)
		log_error(b->log,
			  "no memory for %llu bytes of %s: %llu of %llu bytes "
			  "are in use; close files, use smaller batches, or "
			  "give the mount a larger cache_size",
			  (unsigned long long)bytes, names[use],
			  (unsigned long long)fixed,
			  (unsigned long long)most_of(b, 0));
	return r;
}

int budget_take_unused(struct budget *b, enum budget_use use, uint64_t bytes)
{
	unsigned rank;

	if (!b)
		return 0;
	rank = rank_of(b, use, bytes);
	scoped_lock(&b->lock);
	if (b->waiters || !has_room(b, rank, bytes) ||
	    b->fixed + bytes + b->used[BUDGET_CACHE] > b->limit)
		return -ENOMEM;
	charge_use(b, use, bytes);
	return 0;
}

void budget_give(struct budget *b, enum budget_use use, uint64_t bytes)
{
	if (!b || !bytes)
		return;
	scoped_lock(&b->lock);
	b->used[use] -= bytes;
	b->fixed -= bytes;
	if (b->waiters)
		pthread_cond_broadcast(&b->given);
}

void budget_move(struct budget *b, enum budget_use from, enum budget_use to,
		 uint64_t bytes)
{
	if (!b)
		return;
	scoped_lock(&b->lock);
	b->used[from] -= bytes;
	b->used[to] += bytes;
}

/* --- pinning --- */

static const unsigned pin_parts[BUDGET_PINS] = {
#define PART(pin, part) [pin] = (part),
	BUDGET_PIN_ROWS(PART)
#undef PART
};

/* The caller holds the lock, here and below. */
static struct account *find_account(const struct pins *pins, uid_t uid)
{
	struct account *account;

	LL_SEARCH_SCALAR(pins->accounts, account, uid, uid);
	return account;
}

static struct account *get_account(struct pins *pins, uid_t uid)
{
	struct account *account = find_account(pins, uid);

	if (account)
		return account;
	account = calloc(1, sizeof(*account));
	if (!account)
		return NULL;
	account->uid = uid;
	LL_PREPEND(pins->accounts, account);
	return account;
}

static bool may_pin(const struct pins *pins, uint64_t most, uid_t uid,
		    uint64_t bytes)
{
	const struct account *account = find_account(pins, uid);
	uint64_t all, left;

	if (!add_ok(pins->bytes, bytes, &all) || all > most)
		return false;
	left = most - all;
	return (account ? account->bytes : 0) + bytes <= PIN_ALPHA * left;
}

int budget_pin(struct budget *b, enum budget_pin pin, uid_t uid, uint64_t bytes,
	       bool force)
{
	struct account *account;

	if (!b || !bytes)
		return 0;
	scoped_lock(&b->lock);
	if (!force &&
	    !may_pin(&b->pins[pin], b->limit / pin_parts[pin], uid, bytes)) {
		b->refused++;
		return -ENOSPC;
	}
	account = get_account(&b->pins[pin], uid);
	if (!account)
		return -ENOSPC;
	account->bytes += bytes;
	b->pins[pin].bytes += bytes;
	return 0;
}

void budget_unpin(struct budget *b, enum budget_pin pin, uid_t uid,
		  uint64_t bytes)
{
	struct account *account;

	if (!b || !bytes)
		return;
	scoped_lock(&b->lock);
	account = find_account(&b->pins[pin], uid);
	if (!account)
		return;
	account->bytes -= bytes;
	b->pins[pin].bytes -= bytes;
	if (account->bytes)
		return;
	LL_DELETE(b->pins[pin].accounts, account);
	free(account);
}

void budget_stats(struct budget *b, struct budget_stats *out)
{
	*out = (struct budget_stats){ .limit = 0 };
	if (!b)
		return;
	scoped_lock(&b->lock);
	out->limit = b->limit;
	for (size_t i = 0; i < BUDGET_USES; i++)
		out->used[i] = b->used[i];
	for (unsigned i = 0; i < BUDGET_PINS; i++)
		out->pinned += b->pins[i].bytes;
	out->refused = b->refused;
	out->waits = b->waits;
}
