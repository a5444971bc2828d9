/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions of a dataset's samples: every sample is in exactly one part, and
   the samples of a part ascend. */
#ifndef LOADER_TOOLS_COMBINE_PARTITION_H
#define LOADER_TOOLS_COMBINE_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#include "fs/data/dataset/dataset.h"
#include "fs/data/dataset/group.h"

enum { PARTITION_MAX = 32768, PARTITION_SHARES_MAX = 64 };

/* Zero-initialize. */
struct partition {
	size_t num;
	uint64_t *starts;  /* num + 1: the index of each part's first sample */
	uint32_t *samples; /* by part, then ascending; NULL: sample i is at i */
	struct group *group; /* of partition_by_value(): its values */
};

/* Shares of the samples, and how to draw them. */
struct partition_shares {
	size_t num;	      /* PARTITION_SHARES_MAX at most */
	const double *shares; /* positive; their sum is 1 */
	uint64_t seed;
	int stratify; /* a field of integers: each of its values is divided by
			 the shares; -1: none */
};

/*
 * Makes a partition, which the caller ends with partition_fini() in any case.
 * Failures are logged. -EINVAL: a part would have no samples, or there would be
 * more than PARTITION_MAX parts. -EFBIG: too many samples for a group.
 */

/* A part per value of a field of integers, ascending. */
int partition_by_value(struct dataset *ds, uint32_t field,
		       struct partition *out);

/* `num` parts of consecutive samples whose sizes differ by one at most. */
int partition_by_number(struct dataset *ds, uint64_t num,
			struct partition *out);

/* Random parts, which depend on the seed and the number of samples alone or, if
   stratified, on the values of that field. */
int partition_by_share(struct dataset *ds,
		       const struct partition_shares *shares,
		       struct partition *out);

/* Returns sample `i` of all samples by part. */
static inline uint64_t partition_at(const struct partition *p, uint64_t i)
{
	return p->samples ? p->samples[i] : i;
}

void partition_fini(struct partition *p);

#endif
