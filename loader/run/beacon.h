/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What loaders of other processes get, for beton doctor, which runs a trainer
 * that knows nothing of it: a file, named by $BETON_BEACON, that every loader
 * maps, and in which each has an entry. Without the variable nothing is done.
 *
 * Whoever watches makes the file, of BEACON_SIZE, and must not shrink it. Its
 * numbers are other processes': hostile until checked.
 */
#ifndef LOADER_RUN_BEACON_H
#define LOADER_RUN_BEACON_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { BEACON_ENTRIES = 64 };

/* One loader's; all zero: nobody's. */
struct beacon_entry {
	atomic_uint_fast64_t pid, rank, world, samples, batches, wait_ns;
	uint64_t reserved[2];
};

struct beacon {
	atomic_uint_fast64_t magic, taken;
	uint64_t reserved[6];
	struct beacon_entry entries[BEACON_ENTRIES];
};

#define BEACON_MAGIC UINT64_C(0x6e6f636165626e31)

enum { BEACON_SIZE = sizeof(struct beacon) };

/* A mapped file, and the entry in it that is one's own. */
struct beacon_place {
	struct beacon *beacon; /* NULL: nobody watches */
	struct beacon_entry *entry;
};

/* Nothing is an error: who cannot be watched is not. */
void beacon_open(uint32_t rank, uint32_t world, struct beacon_place *out);
/* The entry stays, for who watches. */
void beacon_close(struct beacon_place *place);

/* What its trainer got since it began, and waited for that. */
static inline void beacon_tell(const struct beacon_place *place,
			       uint64_t samples, uint64_t batches,
			       uint64_t wait_ns)
{
	struct beacon_entry *e = place->entry;

	atomic_store_explicit(&e->samples, samples, memory_order_relaxed);
	atomic_store_explicit(&e->wait_ns, wait_ns, memory_order_relaxed);
	atomic_store_explicit(&e->batches, batches, memory_order_release);
}

#endif
