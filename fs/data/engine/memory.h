/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of an engine: which caches it has, the budget to which all memory
 * is charged that grows with the requests of readers, and the parts of it that
 * datasets take.
 */
#ifndef FS_DATA_ENGINE_MEMORY_H
#define FS_DATA_ENGINE_MEMORY_H

#include "fs/base/memory/budget.h"
#include "fs/data/cache/choice.h"

struct engine_memory {
	struct cache_choice choice;
	char why[CACHE_WHY_SIZE];
	uint64_t slot_bytes;	  /* the most */
	uint64_t slot_reserve;	  /* after use */
	uint64_t shareable_bytes; /* of slots that loaders may hold */
	struct budget *budget;
	uint64_t verify_bytes; /* taken for BUDGET_VERIFY */
	uint64_t remote_bytes; /* taken for BUDGET_REMOTE */
};

/* Chooses the caches and the budget, and gives memory to the datasets.
   `slot_bytes` is that of engine_options. After a failure the caller closes the
   memory, too. */
int engine_memory_open(struct engine_memory *memory,
		       const struct cache_choice *choice,
		       struct dataset *const *datasets, size_t num_datasets,
		       uint64_t slot_bytes, struct log *log);
void engine_memory_close(struct engine_memory *memory);

/* Returns the least size of a process cache, which gives way to all other uses
   of the budget. */
uint64_t engine_memory_cache_min(const struct engine_memory *memory);

#endif
