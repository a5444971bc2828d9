/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cold tier: compressed copies (LZ4) of evicted chunks, within a hard limit
 * that includes its bookkeeping. Items that do not shrink are detected early
 * and cost little. The item that is used latest is evicted first.
 *
 * Thread-safe. cold.lock is held while items and frames change owners, never
 * while bytes are compressed, decompressed or copied. No other lock is taken
 * under it.
 */
#ifndef FS_DATA_CACHE_COLD_H
#define FS_DATA_CACHE_COLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct cold;

/* The maximum size of an item; a larger one is dropped. */
enum { COLD_ITEM_MAX = 16 << 20 };

int cold_open(uint64_t limit_bytes, struct cold **out);
/* Takes NULL. */
void cold_close(struct cold *cold);

/*
 * Stores a compressed copy, which replaces an older one with this key.
 * `next_use`: the greater, the sooner it is evicted. Returns false if it is
 * dropped: it does not shrink, or all items in the tier are needed no later.
 */
bool cold_put(struct cold *cold, uint64_t key, const struct iovec *in,
	      unsigned n, uint64_t next_use);

/* Decompresses into `out` and forgets the item. -ENOENT: no such item. -EINVAL:
   `out` does not have its size, and the item stays. */
int cold_take(struct cold *cold, uint64_t key, const struct iovec *out,
	      unsigned n);

void cold_drop(struct cold *cold, uint64_t key);

struct cold_stats {
	uint64_t puts;
	uint64_t dropped_incompressible;
	uint64_t dropped_full; /* not counting evicted items */
	uint64_t hits;
	uint64_t in_bytes;  /* of all stored items, before compression */
	uint64_t out_bytes; /* and after it */
	uint64_t used;	    /* current bytes of frames and bookkeeping */
	uint64_t items;	    /* now */
};

void cold_stats(struct cold *cold, struct cold_stats *out);

/* Returns the compression ratio of some bytes: 1 if they do not shrink. */
double cold_probe(const void *bytes, size_t size);

#endif
