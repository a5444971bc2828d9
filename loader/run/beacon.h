/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file through which beton doctor watches the loaders of other processes,
 * without the help of the training script. Each loader maps the file that
 * $BETON_BEACON names, and has an entry in it. Without the variable the
 * functions do nothing.
 *
 * The watching process creates the file with BEACON_SIZE bytes and must not
 * shrink it. Other processes write its numbers, so a reader has to check them.
 */
#ifndef LOADER_RUN_BEACON_H
#define LOADER_RUN_BEACON_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { BEACON_ENTRIES = 64 };

/* The entry of one loader. A free entry is all zero. */
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

/* The mapped file, and the entry of this loader in it. */
struct beacon_place {
	struct beacon *beacon; /* NULL: there is no file to write to */
	struct beacon_entry *entry;
};

/* Without a usable file or a free entry the loader runs unwatched. */
void beacon_open(uint32_t rank, uint32_t world, struct beacon_place *out);
/* The entry keeps its last figures for the watching process. */
void beacon_close(struct beacon_place *place);

/* Publishes the totals since open: samples, batches, and how long the trainer
   waited for them. */
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
