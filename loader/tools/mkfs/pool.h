/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes samples with several threads and returns them in the order of the
 * selection, whatever the number of threads. A few samples per thread are in
 * memory at a time.
 */
#ifndef LOADER_TOOLS_MKFS_POOL_H
#define LOADER_TOOLS_MKFS_POOL_H

#include "loader/tools/mkfs/encode.h"
#include "loader/tools/mkfs/mapping.h"
#include "loader/tools/mkfs/selection.h"

/* The samples to make. The caller keeps it until the pool is closed. */
struct mkfs_work {
	const struct mapping *mapping;
	const struct selection *selection;
	const struct recipe *recipe;
	/* Called by a thread after it has made a sample; may refuse it by
	   setting made->status and made->error. NULL: none. */
	void (*check)(void *arg, struct made *made);
	void *arg;
};

struct mkfs_pool;

int mkfs_pool_open(const struct mkfs_work *work, unsigned threads,
		   struct mkfs_pool **out);

/*
 * Returns the next sample; the caller calls made_fini(). Waits up to
 * `timeout_ms`. -EAGAIN: not made in that time. -ENODATA: there are no more
 * samples.
 */
int mkfs_pool_next(struct mkfs_pool *pool, int timeout_ms, struct made *out);

/* Waits until the threads have finished their current samples. Takes NULL. */
void mkfs_pool_close(struct mkfs_pool *pool);

#endif
