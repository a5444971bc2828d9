/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: batches assembled in recycled memory, each once, for all who read
 * them. A slot is not used for another batch as long as somebody holds it; the
 * most recent ones stay for readers to come.
 *
 * Thread-safe. slots.lock is not held while a batch is assembled; pool.lock
 * may follow it. slots.growth is held while the owner is told that slots grow.
 */
#ifndef FS_ENGINE_SLOT_H
#define FS_ENGINE_SLOT_H

#include "fs/engine/batch.h"

struct slots;
struct slot;

struct slots_options {
	uint64_t limit; /* bytes */
	bool is_hard;	/* who finds no room waits, rather than exceed it */
	/* Fills `buf`; 0 or -errno, and which samples failed: 0 for none. */
	int (*assemble)(void *arg, const struct batch *batch, void *buf,
			uint64_t *marks);
	/* The slots are about to hold so many bytes at most, more than was told
	   before. One call at a time; NULL: nobody wants to know. */
	void (*grow)(void *arg, uint64_t bytes);
	void *arg;
};

int slots_open(const struct slots_options *options, struct slots **out);
/* All are put. Takes NULL. */
void slots_close(struct slots *slots);

/* A slot with the batch, which is assembled if there is none; waits. -EFBIG: it
   never fits into a hard limit. */
int slots_get(struct slots *slots, struct batch *batch, struct slot **out);

/*
 * The same for a reader to come: -EAGAIN rather than at the cost of a slot that
 * is in use, or that another reader will come for.
 */
int slots_prepare(struct slots *slots, struct batch *batch);

/* Whether a reader would find it assembled. */
bool slots_ready(struct slots *slots, const struct batch *batch);

/* Frees what nobody has wanted for a while. Returns whether anything is left
   that may be freed later. */
enum { SLOTS_PATIENCE = 10 }; /* seconds */
bool slots_tidy(struct slots *slots);

/* Whether there is one, and some sample in it could not be read. */
bool slots_failed(struct slots *slots, const struct batch *batch);

struct slots_stats {
	uint64_t assembled; /* batches */
	uint64_t ahead;	    /* of these, before anybody asked */
	uint64_t shared;    /* times that a reader found one there */
	uint64_t wasted;    /* nobody came for */
	uint64_t wait_ns;   /* for memory to be free */
	uint64_t slots;
	uint64_t bytes;
	uint64_t huge; /* slots of huge pages */
};

void slots_stats(struct slots *slots, struct slots_stats *out);

const void *slot_bytes(const struct slot *slot);
/*
 * Which samples failed. Who reads a batch in pieces, with the slot given up in
 * between, must see to it that this stays the same: of a sample that was told
 * to be good the zeros of a later try are no bytes.
 */
uint64_t slot_marks(const struct slot *slot);
/*
 * The memory itself, for another process to map: fd is -1 where this cannot be.
 * As long as the slots are open no other memory has the same id, and the next
 * batch in this memory has it too.
 */
int slot_fd(const struct slot *slot);
uint64_t slot_id(const struct slot *slot);
uint64_t slot_capacity(const struct slot *slot);
/* Drops the reference and the caller's pointer; takes NULL. */
void slot_put(struct slot **slot);
/* As slot_put(), by a reader who comes for the rest in a moment: until then it
   keeps what it has, so that where slots are few some readers come to their end
   rather than each of them take the slot of another. */
void slot_put_begun(struct slot **slot);
/* A reader of the batch will not come for the rest. */
void slots_leave(struct slots *slots, const struct batch *batch);
/* As slot_put(), where another process may go on reading: its memory will hold
   no other batch. */
void slot_abandon(struct slot **slot);

#endif
