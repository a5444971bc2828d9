/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file through which beton doctor watches the loaders of other processes
 * without a change of the training script. Each loader maps the file
 * $BETON_TELEMETRY, and writes its figures to an entry. If the variable is not
 * set, the functions do nothing.
 *
 * The watching process creates the file with TELEMETRY_SIZE bytes and must not
 * shrink it. Other processes write the numbers, so that a reader must check
 * them.
 */
#ifndef LOADER_RUN_LOOP_TELEMETRY_H
#define LOADER_RUN_LOOP_TELEMETRY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { TELEMETRY_ENTRIES = 64 };

/* The entry of one loader. A free entry is all zero. */
struct telemetry_entry {
	atomic_uint_fast64_t pid, rank, world_size, samples, batches, wait_ns;
	/* Parts of wait_ns: for makers, and for the network to them. */
	atomic_uint_fast64_t makers_ns, network_ns;
};

struct telemetry {
	atomic_uint_fast64_t magic, taken;
	uint64_t reserved[6];
	struct telemetry_entry entries[TELEMETRY_ENTRIES];
};

#define TELEMETRY_MAGIC UINT64_C(0x6e6f636165626e31)

enum { TELEMETRY_SIZE = sizeof(struct telemetry) };

/* The mapped file, and the entry of this loader in it. */
struct telemetry_slot {
	struct telemetry *telemetry; /* NULL: no file */
	struct telemetry_entry *entry;
};

/* Without a usable file or a free entry the loader runs unwatched. */
void telemetry_open(uint32_t rank, uint32_t world_size,
		    struct telemetry_slot *out);
/* The entry keeps its last figures for the watching process. */
void telemetry_close(struct telemetry_slot *place);

/* Totals since open. Times are waits of the trainer. */
struct telemetry_totals {
	uint64_t samples, batches, wait_ns, makers_ns, network_ns;
};

static inline void telemetry_report(const struct telemetry_slot *place,
				    const struct telemetry_totals *t)
{
	struct telemetry_entry *e = place->entry;

	atomic_store_explicit(&e->samples, t->samples, memory_order_relaxed);
	atomic_store_explicit(&e->wait_ns, t->wait_ns, memory_order_relaxed);
	atomic_store_explicit(&e->makers_ns, t->makers_ns,
			      memory_order_relaxed);
	atomic_store_explicit(&e->network_ns, t->network_ns,
			      memory_order_relaxed);
	atomic_store_explicit(&e->batches, t->batches, memory_order_release);
}

#endif
