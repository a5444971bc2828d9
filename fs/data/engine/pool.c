/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <utlist.h>

#include "fs/base/memory/budget.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

/* Constants that the C library may not have yet. */
#ifndef MADV_COLLAPSE
#	define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif
#ifndef MFD_NOEXEC_SEAL
#	define MFD_NOEXEC_SEAL 8 /* Linux 6.3, which warns without it */
#endif
#ifndef F_SEAL_FUTURE_WRITE
#	define F_SEAL_FUTURE_WRITE 16 /* Linux 5.1 */
#endif

enum {
	PAGE = 4096,
	/* From this size on, an unnecessary huge page is a small overhead. */
	ROOM_FROM = 16 << 20,
};

struct pool {
	struct pool_options options;
	pthread_mutex_t lock;	 /* guards the members below */
	struct piece *unused;	 /* the most recently used first */
	struct piece *abandoned; /* still charged to the budget */
	uint64_t ids;		 /* last id that was given */
	struct pool_stats stats;
};

/* --- one piece --- */

/*
 * Creates the file without rights for other users. Otherwise they could hold an
 * O_PATH descriptor, which the kernel does not count, and open the memory later
 * by /proc.
 */
static int open_memory(uint64_t capacity)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("beton-batch", flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("beton-batch", flags);
	if (fd >= 0 && (fchmod(fd, 0600) || ftruncate(fd, (off_t)capacity))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Opens the memory again. For leases the kernel counts open file descriptions,
   and a duplicated descriptor adds none. Returns -1 if there is no /proc. */
static int open_again(int fd)
{
	char path[sizeof("/proc/self/fd/") + 11];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* Replaces the description of memfd_create(), which the kernel does not count,
   by one that it counts. */
static int open_counted(uint64_t capacity)
{
	int first = open_memory(capacity), fd;

	if (first < 0)
		return -1;
	fd = open_again(first);
	if (fd < 0)
		return first;
	close(first);
	return fd;
}

/* Returns whether no other process has the memory open or mapped. If the kernel
   cannot determine it, returns false. */
static bool is_alone(const struct piece *p)
{
	if (p->fd < 0 || !p->num_holders)
		return true;
	return !fcntl(p->fd, F_SETLEASE, F_WRLCK) &&
	       !fcntl(p->fd, F_SETLEASE, F_UNLCK);
}

/* Maps memory at a multiple of POOL_ALIGN: maps more, and unmaps the ends. */
static uint8_t *map_aligned(uint64_t capacity, int fd)
{
	uint64_t head;
	uint8_t *all, *at;

	all = mmap(NULL, capacity + POOL_ALIGN, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all == MAP_FAILED)
		return NULL;
	head = align_up((uintptr_t)all, POOL_ALIGN) - (uintptr_t)all;
	at = mmap(all + head, capacity, PROT_READ | PROT_WRITE,
		  MAP_FIXED |
			  (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED),
		  fd, 0);
	if (at == MAP_FAILED) {
		munmap(all, capacity + POOL_ALIGN);
		return NULL;
	}
	if (head)
		munmap(all, head);
	if (head < POOL_ALIGN)
		munmap(at + capacity, POOL_ALIGN - head);
	/* A child of fork() would copy what this process writes. */
	if (fd < 0)
		madvise(at, capacity, MADV_DONTFORK);
	return at;
}

/*
 * Fills a piece with huge pages. The kernel makes one from a range in which at
 * least one small page is present; clearing it as a whole is ten times faster
 * than clearing 512 small ones. If the kernel refuses, small pages are
 * allocated now, because a page that is missing later causes a SIGBUS.
 */
static int fill_piece(struct piece *p)
{
	int r = 0;

	for (uint64_t at = 0; at < p->capacity && !r; at += POOL_ALIGN)
		r = fallocate(p->fd, 0, (off_t)at, PAGE);
	p->collapsed = !r && !madvise(p->bytes, p->capacity, MADV_COLLAPSE);
	if (!r)
		r = fallocate(p->fd, 0, 0, (off_t)p->capacity);
	return r ? -ENOMEM : 0;
}

/* From here on only the existing mapping can write. */
static bool seal_memfd(int fd)
{
	return !fcntl(fd, F_ADD_SEALS,
		      F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE |
			      F_SEAL_SEAL);
}

static void piece_free(struct piece *p)
{
	if (p->bytes)
		munmap(p->bytes, p->capacity);
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

static int make_memory(struct piece *p)
{
	int r = 0;

	p->fd = open_counted(p->capacity);
	p->bytes = map_aligned(p->capacity, p->fd);
	if (!p->bytes)
		return -ENOMEM;
	if (p->fd < 0) {
		madvise(p->bytes, p->capacity, MADV_HUGEPAGE);
		return 0;
	}
	r = fill_piece(p);
	if (!r && !seal_memfd(p->fd)) {
		/* If the kernel refuses the seals, the memory stays private to
		   this process. */
		close(p->fd);
		p->fd = -1;
	}
	return r;
}

static int piece_new(uint64_t id, uint64_t capacity, struct piece **out)
{
	struct piece *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->id = id;
	p->capacity = capacity;
	r = make_memory(p);
	if (r)
		piece_free(p);
	else
		*out = p;
	return r;
}

/* --- the pool --- */

int pool_open(const struct pool_options *options, struct pool **out)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	pthread_mutex_init(&pool->lock, NULL);
	pool->options = *options;
	*out = pool;
	return 0;
}

static void free_all(struct piece *list)
{
	struct piece *p, *next;

	DL_FOREACH_SAFE(list, p, next)
	{
		DL_DELETE(list, p);
		piece_free(p);
	}
}

/* Users are no longer charged for memory that was abandoned. */
static void unpin_piece(const struct pool *pool, const struct piece *p)
{
	for (unsigned i = 0; i < p->num_holders; i++)
		budget_unpin(pool->options.budget, BUDGET_PIN_BATCHES,
			     p->holders[i], p->capacity);
}

/* Returns the part of each holder in unused memory, which several may share. */
static uint64_t part_of(const struct piece *p)
{
	return p->capacity / p->num_holders;
}

/*
 * Charges unused memory to the users whose processes still map it, because it
 * cannot hold batches of other sizes or for other readers. Only unused memory
 * is charged here; fs/mount/zerocopy charges memory in use to its holder.
 */
static void pin_unused(const struct pool *pool, struct piece *p)
{
	if (is_alone(p)) {
		p->num_holders = 0;
		return;
	}
	for (unsigned i = 0; i < p->num_holders; i++)
		budget_pin(pool->options.budget, BUDGET_PIN_BATCHES,
			   p->holders[i], part_of(p), true);
	p->is_pinned = true;
}

static void unpin_unused(const struct pool *pool, struct piece *p)
{
	for (unsigned i = 0; p->is_pinned && i < p->num_holders; i++)
		budget_unpin(pool->options.budget, BUDGET_PIN_BATCHES,
			     p->holders[i], part_of(p));
	p->is_pinned = false;
}

void pool_close(struct pool *pool)
{
	struct piece *p;

	if (!pool)
		return;
	pool_tidy(pool);
	/* Other processes still have these pieces; this process does not count
	   them any more. */
	budget_give(pool->options.budget, BUDGET_ABANDONED,
		    pool->stats.abandoned);
	budget_give(pool->options.budget, BUDGET_SLOTS, pool->stats.bytes);
	DL_FOREACH(pool->abandoned, p)
	{
		unpin_piece(pool, p);
	}
	DL_FOREACH(pool->unused, p)
	{
		unpin_unused(pool, p);
	}
	free_all(pool->abandoned);
	free_all(pool->unused);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* --- pieces; with the lock held --- */

/* Adds a piece to the counts, or removes it. */
static void count_piece(struct pool *pool, const struct piece *p, int sign)
{
	pool->stats.pieces += (uint64_t)sign;
	pool->stats.collapsed += p->collapsed ? (uint64_t)sign : 0;
}

static bool same_readers(const struct pool_readers *a,
			 const struct pool_readers *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->mode == b->mode;
}

/* Returns whether the piece may hold a batch for these readers. */
static bool may_hold(const struct piece *p, const struct pool_readers *readers)
{
	return same_readers(&p->readers, readers) || is_alone(p);
}

/* Takes a piece out of the list of unused ones. */
static void take_out(struct pool *pool, struct piece *p)
{
	unpin_unused(pool, p);
	DL_DELETE(pool->unused, p);
	pool->stats.unused--;
}

static struct piece *take_unused(struct pool *pool, uint64_t needed,
				 const struct pool_readers *readers)
{
	struct piece *p;

	DL_FOREACH(pool->unused, p)
	{
		if (p->capacity < needed || p->capacity > 2 * needed ||
		    !may_hold(p, readers))
			continue;
		take_out(pool, p);
		if (is_alone(p))
			p->num_holders = 0;
		return p;
	}
	return NULL;
}

/* Leaves the memory to the processes that hold it, and charges it to their
   users. */
static void abandon_piece(struct pool *pool, struct piece *p)
{
	pool->stats.abandoned += p->capacity;
	budget_move(pool->options.budget, BUDGET_SLOTS, BUDGET_ABANDONED,
		    p->capacity);
	for (unsigned i = 0; i < p->num_holders; i++)
		budget_pin(pool->options.budget, BUDGET_PIN_BATCHES,
			   p->holders[i], p->capacity, true);
	DL_APPEND(pool->abandoned, p);
}

static void take_unused_out(struct pool *pool, struct piece *p)
{
	take_out(pool, p);
	pool->stats.bytes -= p->capacity;
	count_piece(pool, p, -1);
}

/*
 * Takes unused pieces out, the oldest first, until all pieces together are at
 * most `bytes`, and returns them: the caller frees them without the lock.
 * Pieces that other processes have stay: freeing them here would free no
 * memory, and the next batch for the same readers can have them.
 */
static struct piece *shrink_unused(struct pool *pool, uint64_t bytes)
{
	struct piece *out = NULL, *p = pool->unused ? pool->unused->prev : NULL;
	struct piece *newer;

	for (; p && pool->stats.bytes > bytes; p = newer) {
		newer = p == pool->unused ? NULL : p->prev;
		if (!is_alone(p))
			continue;
		take_unused_out(pool, p);
		DL_APPEND(out, p);
	}
	return out;
}

/* Makes room within the limit for a batch of other readers. If necessary,
   abandons unused pieces that other processes have. */
static struct piece *make_room(struct pool *pool, uint64_t more)
{
	const uint64_t limit = pool->options.limit;
	const uint64_t bytes = limit - min_u64(limit, more);
	struct piece *out = shrink_unused(pool, bytes), *p;

	while (pool->unused && pool->stats.bytes > bytes) {
		p = pool->unused->prev;
		take_unused_out(pool, p);
		if (is_alone(p))
			DL_APPEND(out, p);
		else
			abandon_piece(pool, p);
	}
	return out;
}

/* Removes and returns abandoned pieces that no other process has any more.
   Unused pieces in this state are no longer charged to users. */
static struct piece *find_returned(struct pool *pool)
{
	struct piece *out = NULL, *p, *next;

	DL_FOREACH(pool->unused, p)
	{
		if (p->is_pinned && is_alone(p))
			unpin_unused(pool, p);
	}
	DL_FOREACH_SAFE(pool->abandoned, p, next)
	{
		if (!is_alone(p))
			continue;
		DL_DELETE(pool->abandoned, p);
		pool->stats.abandoned -= p->capacity;
		unpin_piece(pool, p);
		DL_APPEND(out, p);
	}
	return out;
}

/* Rounds up a little more, because the next batch has a slightly different
   size. */
static uint64_t capacity_for(const struct pool *pool, uint64_t size)
{
	uint64_t more = align_up(size + size / 16, POOL_ALIGN);

	return size >= ROOM_FROM && more <= pool->options.limit
		       ? more
		       : align_up(max_u64(size, 1), POOL_ALIGN);
}

/* --- without the lock --- */

/* Frees pieces and returns their bytes to the budget. Returns whether there
   were any. */
static bool free_charged(struct pool *pool, struct piece *list,
			 enum budget_use use)
{
	uint64_t bytes = 0;
	struct piece *p;

	DL_FOREACH(list, p)
	{
		bytes += p->capacity;
	}
	free_all(list);
	budget_give(pool->options.budget, use, bytes);
	return bytes > 0;
}

/* Frees abandoned pieces that no other process has any more. */
static bool free_returned(struct pool *pool)
{
	struct piece *returned;

	pthread_mutex_lock(&pool->lock);
	returned = find_returned(pool);
	pthread_mutex_unlock(&pool->lock);
	return free_charged(pool, returned, BUDGET_ABANDONED);
}

/* Notes that a piece was made, or could not be. */
static void note_made(struct pool *pool, const struct piece *p,
		      uint64_t capacity)
{
	scoped_lock(&pool->lock);
	if (!p) {
		pool->stats.bytes -= capacity;
		return;
	}
	pool->stats.made++;
	count_piece(pool, p, 1);
}

/* Makes a piece whose bytes are counted in the pool already. */
static int make_charged(struct pool *pool, uint64_t id, uint64_t capacity,
			struct piece **out)
{
	struct budget *budget = pool->options.budget;
	struct piece *p = NULL;
	int r = budget_take(budget, BUDGET_SLOTS, capacity, 0);

	if (r) {
		note_made(pool, NULL, capacity);
		return -ENOSPC;
	}
	r = piece_new(id, capacity, &p);
	if (r)
		budget_give(budget, BUDGET_SLOTS, capacity);
	note_made(pool, p, capacity);
	*out = p;
	return r;
}

/* --- interface --- */

int pool_take(struct pool *pool, uint64_t size,
	      const struct pool_readers *readers, struct piece **out)
{
	uint64_t needed = align_up(max_u64(size, 1), POOL_ALIGN), capacity = 0;
	struct piece *found, *too_much = NULL;
	uint64_t id = 0;
	int r = 0;

	if (size > INT64_MAX / 2)
		return -ENOMEM;
	free_returned(pool);
	pthread_mutex_lock(&pool->lock);
	found = take_unused(pool, needed, readers);
	if (!found) {
		id = ++pool->ids;
		capacity = capacity_for(pool, size);
		too_much = make_room(pool, capacity);
		if (pool->stats.bytes + capacity > pool->options.limit)
			r = -ENOSPC;
		else
			pool->stats.bytes += capacity;
	}
	pthread_mutex_unlock(&pool->lock);
	free_charged(pool, too_much, BUDGET_SLOTS);
	if (!found && !r)
		r = make_charged(pool, id, capacity, &found);
	if (r)
		return r;
	found->readers = *readers;
	*out = found;
	return 0;
}

void pool_give(struct pool *pool, struct piece **piece)
{
	struct piece *p = steal(*piece), *too_much;

	if (!p)
		return;
	pthread_mutex_lock(&pool->lock);
	pin_unused(pool, p);
	DL_PREPEND(pool->unused, p);
	pool->stats.unused++;
	too_much = shrink_unused(pool, pool->options.keep);
	pthread_mutex_unlock(&pool->lock);
	free_charged(pool, too_much, BUDGET_SLOTS);
}

/* Adds a user to the holders. Returns false if there are too many. The caller
   holds the lock. */
static bool add_holder(struct piece *p, uid_t uid)
{
	for (unsigned i = 0; i < p->num_holders; i++) {
		if (p->holders[i] == uid)
			return true;
	}
	if (p->num_holders == PIECE_HOLDERS)
		return false;
	p->holders[p->num_holders++] = uid;
	return true;
}

int pool_share(struct pool *pool, struct piece *p, uid_t uid, int *fd)
{
	bool added;

	if (p->fd < 0)
		return -ENOSPC;
	pthread_mutex_lock(&pool->lock);
	added = add_holder(p, uid);
	pthread_mutex_unlock(&pool->lock);
	if (!added)
		return -ENOSPC;
	*fd = open_again(p->fd);
	return *fd < 0 ? -ENOSPC : 0;
}

void pool_abandon(struct pool *pool, struct piece **piece)
{
	struct piece *p = steal(*piece);

	if (!p)
		return;
	pthread_mutex_lock(&pool->lock);
	if (is_alone(p)) {
		p->num_holders = 0;
		DL_PREPEND(pool->unused, p);
		pool->stats.unused++;
	} else {
		pool->stats.bytes -= p->capacity;
		count_piece(pool, p, -1);
		abandon_piece(pool, p);
	}
	pthread_mutex_unlock(&pool->lock);
}

bool pool_tidy(struct pool *pool)
{
	struct piece *unused;
	bool freed;

	pthread_mutex_lock(&pool->lock);
	unused = shrink_unused(pool, 0);
	pthread_mutex_unlock(&pool->lock);
	freed = free_charged(pool, unused, BUDGET_SLOTS);
	return free_returned(pool) || freed;
}

bool pool_is_over(struct pool *pool)
{
	scoped_lock(&pool->lock);
	return pool->stats.bytes > pool->options.keep;
}

void pool_stats(struct pool *pool, struct pool_stats *out)
{
	scoped_lock(&pool->lock);
	*out = pool->stats;
}
