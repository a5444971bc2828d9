/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/engine/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <utlist.h>

#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"

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
	/* From this size on, one huge page too many is little. */
	ROOM_FROM = 16 << 20,
};

struct pool {
	pthread_mutex_t lock; /* guards the members below */
	struct piece *unused; /* the most recently used first */
	uint64_t limit;
	uint64_t ids; /* last id that was given */
	struct pool_stats stats;
};

/* --- one piece --- */

static int open_memory(uint64_t capacity)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("beton-batch", flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("beton-batch", flags);
	if (fd >= 0 && ftruncate(fd, (off_t)capacity)) {
		close(fd);
		fd = -1;
	}
	return fd;
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
	return at;
}

/*
 * Fills a piece with huge pages. The kernel makes one from a range in which at
 * least one small page is present; clearing it as a whole is ten times faster
 * than clearing 512 small ones. Where the kernel refuses, small pages are
 * allocated now: a page that cannot be had later is a SIGBUS.
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

/* Afterwards only the mapping that exists already can write. */
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

	p->fd = open_memory(p->capacity);
	p->bytes = map_aligned(p->capacity, p->fd);
	if (!p->bytes)
		return -ENOMEM;
	if (p->fd < 0) {
		madvise(p->bytes, p->capacity, MADV_HUGEPAGE);
		return 0;
	}
	r = fill_piece(p);
	if (!r && !seal_memfd(p->fd)) {
		/* Without the seals, the memory is for this process alone. */
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

int pool_open(uint64_t limit, struct pool **out)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	pthread_mutex_init(&pool->lock, NULL);
	pool->limit = limit;
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

void pool_close(struct pool *pool)
{
	if (!pool)
		return;
	free_all(pool->unused);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* Adds a piece to the counts, or removes it. The caller holds the lock. */
static void count_piece(struct pool *pool, const struct piece *p, int sign)
{
	pool->stats.pieces += (uint64_t)sign;
	pool->stats.collapsed += p->collapsed ? (uint64_t)sign : 0;
}

static struct piece *take_unused(struct pool *pool, uint64_t needed)
{
	struct piece *p;

	DL_FOREACH(pool->unused, p)
	{
		if (p->capacity < needed || p->capacity > 2 * needed)
			continue;
		DL_DELETE(pool->unused, p);
		pool->stats.unused--;
		return p;
	}
	return NULL;
}

/* Takes unused pieces out, the oldest first, until all pieces together are at
   most `bytes`. Called with the lock held; the caller frees them without it. */
static struct piece *shrink_unused(struct pool *pool, uint64_t bytes)
{
	struct piece *out = NULL, *p;

	while (pool->unused && pool->stats.bytes > bytes) {
		p = pool->unused->prev;
		DL_DELETE(pool->unused, p);
		pool->stats.unused--;
		pool->stats.bytes -= p->capacity;
		count_piece(pool, p, -1);
		DL_APPEND(out, p);
	}
	return out;
}

static struct piece *make_room(struct pool *pool, uint64_t more)
{
	return shrink_unused(pool, pool->limit - min_u64(pool->limit, more));
}

/* Notes that a piece was made, or could not be. Called without the lock. */
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

/* Rounds up by some more, for the next batch differs by a little. The caller
   holds the lock. */
static uint64_t capacity_for(const struct pool *pool, uint64_t size)
{
	uint64_t more = align_up(size + size / 16, POOL_ALIGN);

	return size >= ROOM_FROM && more <= pool->limit
		       ? more
		       : align_up(max_u64(size, 1), POOL_ALIGN);
}

int pool_take(struct pool *pool, uint64_t size, bool insist, struct piece **out)
{
	uint64_t needed = align_up(max_u64(size, 1), POOL_ALIGN), capacity = 0;
	struct piece *found, *too_much = NULL;
	uint64_t id = 0;
	int r = 0;

	if (size > INT64_MAX / 2)
		return -ENOMEM;
	pthread_mutex_lock(&pool->lock);
	found = take_unused(pool, needed);
	if (!found) {
		id = ++pool->ids;
		capacity = capacity_for(pool, size);
		too_much = make_room(pool, capacity);
		if (pool->stats.bytes + capacity > pool->limit && !insist)
			r = -ENOSPC;
		else
			pool->stats.bytes += capacity;
	}
	pthread_mutex_unlock(&pool->lock);
	free_all(too_much);
	if (!found && !r) {
		r = piece_new(id, capacity, &found);
		note_made(pool, found, capacity);
	}
	if (!r)
		*out = found;
	return r;
}

void pool_give(struct pool *pool, struct piece **piece)
{
	struct piece *p = steal(*piece), *too_much;

	if (!p)
		return;
	pthread_mutex_lock(&pool->lock);
	DL_PREPEND(pool->unused, p);
	pool->stats.unused++;
	too_much = make_room(pool, 0);
	pthread_mutex_unlock(&pool->lock);
	free_all(too_much);
}

void pool_drop(struct pool *pool, struct piece **piece)
{
	struct piece *p = steal(*piece);

	if (!p)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->stats.bytes -= p->capacity;
	count_piece(pool, p, -1);
	pthread_mutex_unlock(&pool->lock);
	piece_free(p);
}

void pool_set_limit(struct pool *pool, uint64_t limit)
{
	struct piece *too_much;

	pthread_mutex_lock(&pool->lock);
	pool->limit = limit;
	too_much = make_room(pool, 0);
	pthread_mutex_unlock(&pool->lock);
	free_all(too_much);
}

void pool_tidy(struct pool *pool)
{
	struct piece *unused;

	pthread_mutex_lock(&pool->lock);
	unused = shrink_unused(pool, 0);
	pthread_mutex_unlock(&pool->lock);
	free_all(unused);
}

bool pool_is_over(struct pool *pool)
{
	scoped_lock(&pool->lock);
	return pool->stats.bytes > pool->limit;
}

void pool_stats(struct pool *pool, struct pool_stats *out)
{
	scoped_lock(&pool->lock);
	*out = pool->stats;
}
