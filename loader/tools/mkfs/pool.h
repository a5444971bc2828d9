/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes images on several threads and returns them in order. The pool holds
   at most four images per thread, even if one of them takes long. */
#ifndef LOADER_TOOLS_MKFS_POOL_H
#define LOADER_TOOLS_MKFS_POOL_H

#include "fs/util/rng.h"
#include "loader/tools/mkfs/encode.h"
#include "loader/tools/mkfs/scan.h"

/* Maps samples to files. Immutable while a pool runs. */
struct mkfs_plan {
	const struct scan *scan;
	const struct recipe *recipe;
	uint64_t count; /* of images to take */
	bool shuffle;
	struct permutation order;
};

const struct scan_file *mkfs_plan_file(const struct mkfs_plan *plan,
				       uint64_t number);

struct mkfs_pool;

int mkfs_pool_open(const struct mkfs_plan *plan, unsigned threads,
		   struct mkfs_pool **out);

/*
 * Returns the next image in order; the caller frees its bytes. Waits up to
 * `timeout_ms`. -EAGAIN: not encoded in that time. -ENODATA: there are no more
 * images.
 */
int mkfs_pool_next(struct mkfs_pool *pool, int timeout_ms, struct encoded *out);

/* Waits until the threads have finished their current images. Takes NULL. */
void mkfs_pool_close(struct mkfs_pool *pool);

#endif
