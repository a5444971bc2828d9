/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cold tier: a copy of what a cache evicted, compressed by LZ4, within a
 * hard limit that includes its books. What does not shrink is noticed early and
 * costs next to nothing; what is used latest goes first.
 *
 * Thread-safe. cold.lock is held while items and frames change owners, never
 * while bytes are compressed, decompressed or copied; nothing follows it.
 */
#ifndef FS_CACHE_COLD_H
#define FS_CACHE_COLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct cold;

/* An item of at most this many bytes is kept; a larger one is dropped. */
enum { COLD_ITEM_MAX = 16 << 20 };

int cold_open(uint64_t limit_bytes, struct cold **out);
/* Takes NULL. */
void cold_close(struct cold *cold);

/*
 * Keeps a copy in place of what the key had. `next_use`: the greater, the
 * sooner it is evicted. False: dropped, for it does not shrink, or all room is
 * taken by what is needed no later.
 */
bool cold_put(struct cold *cold, uint64_t key, const struct iovec *in,
	      unsigned n, uint64_t next_use);

/*
 * Decompresses into `out` and forgets the item. -ENOENT: not there; -EINVAL,
 * and it stays: `out` is not of its size.
 */
int cold_take(struct cold *cold, uint64_t key, const struct iovec *out,
	      unsigned n);

void cold_drop(struct cold *cold, uint64_t key);

struct cold_stats {
	uint64_t puts;
	uint64_t dropped_incompressible;
	uint64_t dropped_full; /* evicted later ones are not counted */
	uint64_t hits;
	uint64_t in_bytes;  /* of all that was kept, before */
	uint64_t out_bytes; /* and after */
	uint64_t used;	    /* bytes of frames and books now */
	uint64_t items;	    /* now */
};

void cold_stats(struct cold *cold, struct cold_stats *out);

/* The part of their size that bytes would take: 1 where they do not shrink. */
double cold_probe(const void *bytes, size_t size);

#endif
