/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the memory that holds the payloads of datasets: the kernel's page
 * cache if they fit into it, else a page cache of this process. A cold tier is
 * added if it pays.
 */
#ifndef FS_CACHE_CHOICE_H
#define FS_CACHE_CHOICE_H

#include "fs/dataset/dataset.h"

enum tiers_mode { TIERS_AUTO, TIERS_OS, TIERS_PROCESS };

/* A cold tier if it pays and the mode is TIERS_AUTO; else none. */
#define TIERS_COLD_AUTO UINT64_MAX

struct tiers {
	enum tiers_mode mode;
	uint64_t cache_size; /* of a process cache; 0: half of the memory */
	uint64_t cold_size;
};

enum { TIERS_WHY_SIZE = 320 };

/* Replaces the automatic settings by the chosen ones, and writes the reason to
   `why`. */
void tiers_choose(struct tiers *tiers, struct dataset *const *datasets,
		  size_t n, char why[TIERS_WHY_SIZE]);

/* "auto", "os", "process". */
const char *tiers_mode_name(enum tiers_mode mode);
/* Returns false for any other text. */
bool tiers_parse_mode(const char *text, enum tiers_mode *out);

#endif
