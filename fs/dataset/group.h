/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of a dataset, grouped by the value of an int field. Made by one
 * pass over the metadata. What is kept takes 4 bytes per sample and 12 per
 * value that occurs; while it is made, 16 bytes per sample, 24 if all values
 * differ. Ten million samples take a second, or three. Immutable once
 * open.
 */
#ifndef FS_DATASET_GROUP_H
#define FS_DATASET_GROUP_H

#include "fs/dataset/dataset.h"

/* More would take gigabytes. */
#define GROUP_SAMPLES_MAX ((uint64_t)1 << 28)

struct group {
	uint64_t num;	   /* values that occur */
	int64_t *values;   /* ascending */
	uint32_t *starts;  /* num + 1: where the samples of a value begin */
	uint32_t *samples; /* by value; those of one value ascend */
};

/* -EFBIG for more than GROUP_SAMPLES_MAX samples, which is logged. */
int group_open(struct dataset *ds, uint32_t field, struct group **out);
/* Takes NULL. */
void group_close(struct group *group);

uint64_t group_bytes(const struct group *group);

/* The place of a value among those that occur, or false. */
bool group_find(const struct group *group, int64_t value, uint64_t *ordinal);
/* Whether a sample has the value of this place. */
bool group_has(const struct group *group, uint64_t ordinal, uint64_t sample);

#endif
