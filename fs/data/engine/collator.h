/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of an engine that makes batches: it lays them out, plans which
 * values are read when, and collates each batch once into a slot, or into
 * memory of its reader. Thread-safe between collator_start() and
 * collator_stop().
 */
#ifndef FS_DATA_ENGINE_COLLATOR_H
#define FS_DATA_ENGINE_COLLATOR_H

#include <stdatomic.h>

#include "fs/data/engine/layouts.h"
#include "fs/data/engine/memory.h"
#include "fs/data/engine/plan.h"
#include "fs/data/engine/slot.h"

struct collator {
	struct log *log;
	const struct engine_memory *memory;
	struct slots *slots;
	struct layouts *layouts;
	struct plan *plan;
	struct cache *cache; /* NULL: the kernel's */
	struct team *team;   /* NULL: none */
	struct counters counters;
	atomic_uint_fast64_t direct; /* batches in memory of their readers */
	atomic_uint_fast64_t refused_bytes; /* of the last too large batch */
};

/* `memory`, the datasets and the log outlive the collator, which stays where it
   is. After a failure the caller closes it, too. */
int collator_open(struct collator *collator, const struct engine_memory *memory,
		  struct dataset *const *datasets, size_t num_datasets,
		  struct log *log);
/* Starts the threads that read ahead, and `helpers` for large batches. */
int collator_start(struct collator *collator, unsigned helpers);
void collator_stop(struct collator *collator);
void collator_close(struct collator *collator);

/* Like stream_batch(). */
int collator_layout(struct collator *collator, const struct batch_key *key,
		    bool afresh, struct batch **out);
/* Like engine_explain_size(). */
void collator_explain_size(const struct collator *collator, char *out,
			   size_t size);

/* Gets the slot of a batch. Collates the batch if no slot holds it. */
int collator_slot(struct collator *collator, struct batch *batch,
		  struct slot **out);
/* Collates a batch into memory of its reader. */
int collator_direct(struct collator *collator, const struct batch *batch,
		    void *bytes);
/* Prefetches a batch if a reader may still open it. Returns false if not.
   Failures are not reported, because the reader of the batch gets them
   again. */
bool collator_prepare(struct collator *collator, const struct batch_key *key);
/* Like slots_tidy(). */
bool collator_tidy(struct collator *collator);

#endif
