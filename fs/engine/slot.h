/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: batches assembled in recycled memory, each once, for all readers. A
 * slot is not used for another batch while a reader holds it. The most recent
 * slots stay for readers to come.
 *
 * A reader that finds no memory waits in turn, and not for ever.
 *
 * Thread-safe. slots.lock is not held while a batch is assembled; pool.lock and
 * line.lock may be taken under it.
 */
#ifndef FS_ENGINE_SLOT_H
#define FS_ENGINE_SLOT_H

#include "fs/engine/batch.h"

struct slots;
struct slot;

enum { SLOTS_WAIT_MS = 10000 };

struct slots_options {
	uint64_t limit;	       /* bytes of all slots but abandoned ones */
	uint64_t keep;	       /* beyond that, memory is freed after use */
	struct budget *budget; /* charged for all memory; NULL: none */
	uint32_t wait_ms;      /* a reader waits so long for memory; 0:
				  SLOTS_WAIT_MS */
	/* Fills `buf`. Returns 0 or -errno, and which samples failed: 0 for
	   none. */
	int (*assemble)(void *arg, const struct batch *batch, void *buf,
			uint64_t *marks);
	void *arg;
};

int slots_open(const struct slots_options *options, struct slots **out);
/* The caller has put all slots. Takes NULL. */
void slots_close(struct slots *slots);

/* Gets a slot with the batch; assembles it if there is none, and waits. -EFBIG:
   it never fits into the limit. -ENOMEM: no memory became free in time. */
int slots_get(struct slots *slots, struct batch *batch, struct slot **out);

/* Assembles a batch for a reader to come. -EAGAIN if only a slot is free that
   is in use, or that another reader will come for. */
int slots_prepare(struct slots *slots, struct batch *batch);

/* Whether a slot has the batch, assembled. */
bool slots_ready(struct slots *slots, const struct batch *batch);

/* Frees slots that no reader has wanted for SLOTS_PATIENCE. Returns whether
   slots are left that may be freed later. */
enum { SLOTS_PATIENCE = 10 }; /* seconds */
bool slots_tidy(struct slots *slots);
/* Frees slots that no reader holds or will come for, and unused memory. Returns
   whether there was any. */
bool slots_reclaim(struct slots *slots);

/* Whether a slot has the batch, and a sample in it could not be read. */
bool slots_failed(struct slots *slots, const struct batch *batch);

struct slots_stats {
	uint64_t assembled; /* batches */
	uint64_t ahead;	    /* assembled before a reader asked for them */
	uint64_t shared;    /* readers that found their batch assembled */
	uint64_t wasted;    /* batches that no reader came for */
	uint64_t wait_ns;   /* waits for free memory */
	uint64_t waiting;   /* readers that do now */
	uint64_t slots;
	uint64_t bytes;
	uint64_t abandoned; /* bytes that other processes still have */
	uint64_t huge;	    /* slots of huge pages */
};

void slots_stats(struct slots *slots, struct slots_stats *out);

const void *slot_bytes(const struct slot *slot);
/*
 * Which samples failed. A reader that puts the slot between two pieces of a
 * batch must check that this stays the same. Otherwise a sample that it took
 * for good may be zeros of a later try.
 */
uint64_t slot_marks(const struct slot *slot);
/*
 * The memory itself, for a process of this user to map; the caller closes the
 * descriptor. -ENOSPC: that is impossible. While the slots are open, no other
 * memory has the same id; other batches in this memory have it, too.
 */
int slot_lend(const struct slot *slot, uid_t uid, int *fd);
uint64_t slot_id(const struct slot *slot);
uint64_t slot_capacity(const struct slot *slot);
/* Drops the reference and clears the caller's pointer; takes NULL. */
void slot_put(struct slot **slot);
/*
 * Like slot_put(), by a reader that comes back soon for the rest. Until then
 * the slot keeps its batch. If slots are few, some readers finish this way,
 * where otherwise each would take the slot of another.
 */
void slot_put_begun(struct slot **slot);
/* A reader of the batch will not come back for the rest. */
void slots_leave(struct slots *slots, const struct batch *batch);
/* Like slot_put(), if another process may still read the memory: it will hold
   no other batch before that process has unmapped it. */
void slot_abandon(struct slot **slot);

#endif
