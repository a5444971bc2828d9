/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/memory/memo.h"

#include <errno.h>
#include <stdbool.h>

/* If memory runs out, uthash leaves the element out instead of exiting. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "fs/base/memory/budget.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

/* Milliseconds that making an object waits for memory. */
enum { WAIT_MS = 2000 };

struct memo_item {
	UT_hash_handle hh;
	struct memo_item *prev, *next; /* in memo.recent while in memo.items */
	uint64_t key;
	unsigned users; /* callers that use it, wait for it, or make it */
	bool is_made;
	int error; /* of make(); such an item has left the table */
	void *thing;
	uint64_t bytes;
};

struct memo {
	struct memo_options options;
	pthread_mutex_t lock;
	pthread_cond_t made;
	/* These and the items are guarded by lock. */
	struct memo_item *items;
	struct memo_item *recent; /* the least recently used first */
	uint64_t bytes;
};

int memo_open(const struct memo_options *options, struct memo **out)
{
	struct memo *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->options = *options;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->made, NULL);
	*out = m;
	return 0;
}

static void unlink_item(struct memo *m, struct memo_item *item)
{
	HASH_DEL(m->items, item);
	DL_DELETE(m->recent, item);
}

static void item_free(const struct memo *m, struct memo_item *item)
{
	if (item->thing)
		m->options.free(item->thing);
	budget_give(m->options.budget, BUDGET_INDEXES, item->bytes);
	free(item);
}

void memo_close(struct memo *m)
{
	struct memo_item *item, *next;

	if (!m)
		return;
	DL_FOREACH_SAFE(m->recent, item, next)
	{
		unlink_item(m, item);
		item_free(m, item);
	}
	pthread_cond_destroy(&m->made);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

/* If the objects have more than `most` bytes, takes the least recently used one
   that is unused out of the table. */
static struct memo_item *take_surplus(struct memo *m, uint64_t most)
{
	struct memo_item *item;

	scoped_lock(&m->lock);
	if (m->bytes <= most)
		return NULL;
	DL_FOREACH(m->recent, item)
	{
		if (item->users)
			continue;
		unlink_item(m, item);
		m->bytes -= item->bytes;
		return item;
	}
	return NULL;
}

static void trim(struct memo *m)
{
	struct memo_item *item;

	while ((item = take_surplus(m, m->options.bytes_max)))
		item_free(m, item);
}

bool memo_reclaim(struct memo *m, uint64_t bytes)
{
	struct memo_item *item;
	uint64_t freed = 0;

	while (freed < bytes && (item = take_surplus(m, 0))) {
		freed += item->bytes;
		item_free(m, item);
	}
	return freed > 0;
}

/* Marks the item of a key as the latest used, and returns it or NULL. The
   caller holds the lock. */
static struct memo_item *use_item(struct memo *m, uint64_t key)
{
	struct memo_item *item;

	HASH_FIND(hh, m->items, &key, sizeof(key), item);
	if (!item)
		return NULL;
	DL_DELETE(m->recent, item);
	DL_APPEND(m->recent, item);
	item->users++;
	return item;
}

/* Adds an item that is still to be made; NULL without memory. The caller holds
   the lock. */
static struct memo_item *add_item(struct memo *m, uint64_t key)
{
	struct memo_item *item = calloc(1, sizeof(*item));

	if (!item)
		return NULL;
	item->key = key;
	item->users = 1;
	HASH_ADD(hh, m->items, key, sizeof(item->key), item);
	if (!item->hh.tbl) {
		free(item);
		return NULL;
	}
	DL_APPEND(m->recent, item);
	return item;
}

/* Makes a thing within the budget, which stays charged for its bytes. */
static int make_charged(const struct memo *m, const void *arg, void **thing,
			uint64_t *bytes)
{
	struct budget *budget = m->options.budget;
	uint64_t need = m->options.need ? m->options.need(arg) : 0;
	int r = budget_take(budget, BUDGET_INDEXES, need, WAIT_MS);

	if (r)
		return r;
	r = m->options.make(arg, thing, bytes);
	*bytes = r ? 0 : budget ? min_u64(*bytes, need) : *bytes;
	budget_give(budget, BUDGET_INDEXES, need - min_u64(need, *bytes));
	return r;
}

static void make_item(struct memo *m, struct memo_item *item, const void *arg)
{
	void *thing = NULL;
	uint64_t bytes = 0;
	int r = make_charged(m, arg, &thing, &bytes);

	scoped_lock(&m->lock);
	item->is_made = true;
	item->error = r;
	item->thing = r ? NULL : thing;
	item->bytes = r ? 0 : bytes;
	m->bytes += item->bytes;
	/* The next caller that asks for this key tries again. */
	if (r)
		unlink_item(m, item);
	pthread_cond_broadcast(&m->made);
}

/* Waits until the item is made. If that failed, the last waiting caller frees
   it. */
static int wait_item(struct memo *m, struct memo_item *item)
{
	int r;

	scoped_lock(&m->lock);
	while (!item->is_made)
		pthread_cond_wait(&m->made, &m->lock);
	r = item->error;
	if (r && !--item->users)
		free(item);
	return r;
}

int memo_get(struct memo *m, uint64_t key, const void *arg, void **thing)
{
	struct memo_item *item;
	bool is_new;
	int r;

	pthread_mutex_lock(&m->lock);
	item = use_item(m, key);
	is_new = !item;
	if (is_new)
		item = add_item(m, key);
	pthread_mutex_unlock(&m->lock);
	if (!item)
		return -ENOMEM;
	if (is_new)
		make_item(m, item, arg);
	r = wait_item(m, item);
	if (r)
		return r;
	*thing = item->thing;
	if (is_new)
		trim(m);
	return 0;
}

void memo_put(struct memo *m, uint64_t key)
{
	struct memo_item *item;

	pthread_mutex_lock(&m->lock);
	HASH_FIND(hh, m->items, &key, sizeof(key), item);
	item->users--;
	pthread_mutex_unlock(&m->lock);
	trim(m);
}
