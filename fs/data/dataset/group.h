/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of a dataset, grouped by the value of an integer field. Opening
 * reads the metadata once: one to three seconds for ten million samples. A
 * group takes 4 bytes per sample and 12 per distinct value; while it is opened,
 * 16 to 24 bytes per sample. Immutable once open.
 */
#ifndef FS_DATA_DATASET_GROUP_H
#define FS_DATA_DATASET_GROUP_H

#include "fs/data/dataset/dataset.h"

/* A limit on memory: more samples take gigabytes. */
#define GROUP_SAMPLES_MAX ((uint64_t)1 << 28)

struct group {
	uint64_t num;	   /* distinct values */
	int64_t *values;   /* ascending */
	uint32_t *starts;  /* num + 1: the index of each value's first sample */
	uint32_t *samples; /* by value, then ascending */
};

/* `field` has integers. -EFBIG: more than GROUP_SAMPLES_MAX samples; logged. */
int group_open(struct dataset *ds, uint32_t field, struct group **out);
/* Takes NULL. */
void group_close(struct group *group);

uint64_t group_bytes(const struct group *group);
/* The most bytes that group_open() uses, and then the group. */
uint64_t group_need(const struct dataset *ds);

/* Sets *ordinal to the index of a value among the distinct values. Returns
   false if no sample has it. */
bool group_find(const struct group *group, int64_t value, uint64_t *ordinal);
/* Returns whether a sample has the value with this index. */
bool group_has(const struct group *group, uint64_t ordinal, uint64_t sample);

#endif
