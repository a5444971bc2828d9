/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the memory that holds the payloads of datasets: the kernel's page
 * cache if they fit into it, else a page cache of this process. A cold tier is
 * added if it pays.
 */
#ifndef FS_DATA_CACHE_CHOICE_H
#define FS_DATA_CACHE_CHOICE_H

#include "fs/base/memory/memory.h"
#include "fs/data/dataset/dataset.h"

enum cache_mode { CACHE_AUTO, CACHE_OS, CACHE_PROCESS };

/* A cold tier if it pays and the mode is CACHE_AUTO; else none. */
#define CACHE_COLD_AUTO UINT64_MAX

struct cache_choice {
	enum cache_mode mode;
	uint64_t cache_size; /* of a process cache; 0: half of the memory */
	uint64_t cold_size;
	/* Processes of this machine that share this half, because each has its
	   own cache; 0: one. */
	uint32_t processes;
};

enum { CACHE_WHY_SIZE = 400 };

/* Replaces the automatic settings by the chosen ones, and writes the reason to
   `why`. The page cache of the kernel holds no bytes of URLs, so the caller
   refuses CACHE_OS for these. */
void cache_choose(struct cache_choice *choice, struct dataset *const *datasets,
		  size_t n, char why[CACHE_WHY_SIZE]);
/* Chooses the cache for a machine with this memory. */
void cache_choose_within(struct cache_choice *choice,
			 const struct memory *memory,
			 struct dataset *const *datasets, size_t n,
			 char why[CACHE_WHY_SIZE]);

/* Returns whether a dataset is behind a URL. */
bool cache_has_remote(struct dataset *const *datasets, size_t n);

/* "auto", "os", "process". */
const char *cache_mode_name(enum cache_mode mode);
/* Returns false for any other text. */
bool cache_parse_mode(const char *text, enum cache_mode *out);

#endif
