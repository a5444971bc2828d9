/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which memory holds the payloads of datasets: the kernel's page cache where
 * they fit into it, else a page cache of our own, and behind that a cold tier
 * where it pays.
 */
#ifndef FS_CACHE_CHOICE_H
#define FS_CACHE_CHOICE_H

#include "fs/dataset/dataset.h"

enum tiers_mode { TIERS_AUTO, TIERS_OS, TIERS_PROCESS };

/* A cold tier if it pays, when the mode is TIERS_AUTO; else none. */
#define TIERS_COLD_AUTO UINT64_MAX

struct tiers {
	enum tiers_mode mode;
	uint64_t cache_size; /* of a process cache; 0: half of what there is */
	uint64_t cold_size;
};

enum { TIERS_WHY_SIZE = 320 };

/* Replaces what is to be decided by what is, and says why. */
void tiers_choose(struct tiers *tiers, struct dataset *const *datasets,
		  size_t n, char why[TIERS_WHY_SIZE]);

/* "auto", "os", "process". */
const char *tiers_mode_name(enum tiers_mode mode);
/* False: none of these. */
bool tiers_parse_mode(const char *text, enum tiers_mode *out);

#endif
