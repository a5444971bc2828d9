/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: batches collated in recycled memory, each once, for all readers. A
 * slot is not used for another batch while a reader holds it. The most recent
 * slots stay for later readers.
 *
 * If a reader finds no memory, it waits in turn, for a limited time.
 *
 * Thread-safe. slots.lock is not held while a batch is collated; pool.lock and
 * line.lock may be taken under it.
 */
#ifndef FS_DATA_ENGINE_SLOT_H
#define FS_DATA_ENGINE_SLOT_H

#include "fs/data/engine/batch.h"

struct slots;
struct slot;

enum { SLOTS_WAIT_MS = 10000 };

struct slots_options {
	uint64_t limit;	       /* bytes of all slots but abandoned ones */
	uint64_t keep;	       /* beyond this, memory is freed after use */
	struct budget *budget; /* charged for all memory; NULL: none */
	uint32_t wait_ms;      /* time that a reader waits for memory; 0:
				  SLOTS_WAIT_MS */
	/* Fills `buf`. Returns 0 or -errno. Sets *marks to the samples that
	   failed: 0 for none. */
	int (*collate)(void *arg, const struct batch *batch, void *buf,
		       uint64_t *marks);
	void *arg;
};

int slots_open(const struct slots_options *options, struct slots **out);
/* The caller has put all slots. Takes NULL. */
void slots_close(struct slots *slots);

/* Gets a slot with the batch. If there is none, collates it or waits. -EFBIG:
   it never fits into the limit. -ENOMEM: no memory became free in time. */
int slots_get(struct slots *slots, struct batch *batch, struct slot **out);

/* Prefetches a batch. -EAGAIN if every slot is in use, or prefetched for
   another reader. */
int slots_prepare(struct slots *slots, struct batch *batch);

/* Returns whether a slot has the complete batch. */
bool slots_ready(struct slots *slots, const struct batch *batch);

/* Frees slots that no reader has used for SLOTS_PATIENCE. Returns whether slots
   are left that may be freed later. */
enum { SLOTS_PATIENCE = 10 }; /* seconds */
bool slots_tidy(struct slots *slots);
/* Frees slots that no reader holds and that are not prefetched, and unused
   memory. Returns whether there was any. */
bool slots_reclaim(struct slots *slots);

/* Returns whether a slot has the batch, and a sample in it could not be
   read. */
bool slots_failed(struct slots *slots, const struct batch *batch);

struct slots_stats {
	uint64_t collated;   /* batches */
	uint64_t prefetched; /* batches collated before the first request */
	uint64_t shared;     /* requests for a batch that was complete */
	uint64_t wasted;     /* prefetched batches that no reader requested */
	uint64_t wait_ns;    /* waits for free memory */
	uint64_t waiting;    /* readers that wait now */
	uint64_t slots;
	uint64_t bytes;
	uint64_t abandoned; /* bytes that other processes still have */
	uint64_t huge;	    /* slots of huge pages */
};

void slots_stats(struct slots *slots, struct slots_stats *out);

const void *slot_bytes(const struct slot *slot);
/*
 * Returns the samples that failed. If a reader puts the slot between two pieces
 * of a batch, it must check that this value stays the same. Otherwise a sample
 * that was good may be the zeros of a later try.
 */
uint64_t slot_marks(const struct slot *slot);
/*
 * Gets a descriptor of the memory, for a process of this user to map; the
 * caller closes it. -ENOSPC: the memory cannot be shared. While the slots are
 * open, the id identifies the memory, also with other batches in it.
 */
int slot_share(const struct slot *slot, uid_t uid, int *fd);
uint64_t slot_id(const struct slot *slot);
uint64_t slot_capacity(const struct slot *slot);
/* Drops the reference and clears the caller's pointer; takes NULL. */
void slot_put(struct slot **slot);
/* A reader of one batch, in pieces. Initialize it to zeros; the members are
   private. */
struct slot_reader {
	uint64_t slot;	/* the number of the one that waits for it; 0: none */
	uint64_t bytes; /* that it got so far */
};
/*
 * Call before the reader gets `bytes` of the batch, because it may leave as soon
 * as it has them. It will soon request the rest, unless it has got as many bytes
 * as the batch has. Until then the slot keeps its batch. If slots are few, this
 * lets some readers finish; otherwise each would take the slot of another.
 */
void slot_note_read(struct slot *slot, struct slot_reader *reader,
		    uint64_t bytes);
/* Reverts slot_note_read(): the reader will not request the rest. */
void slots_leave(struct slots *slots, const struct batch *batch,
		 struct slot_reader *reader);
/* Like slot_put(), if another process may still read the memory. It holds no
   other batch until that process has unmapped it. */
void slot_abandon(struct slot **slot);

#endif
