/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of the requests that reach a mount through io_uring, and whether they
   do. Any thread. */
#ifndef FS_BASE_METRICS_RINGS_COUNT_H
#define FS_BASE_METRICS_RINGS_COUNT_H

#include <stdatomic.h>
#include <stdint.h>

struct rings_count {
	atomic_uint_fast64_t queues;	/* 0: requests come through /dev/fuse */
	atomic_uint_fast64_t answered;	/* by the thread of their queue */
	atomic_uint_fast64_t passed_on; /* to other threads */
	/* Why requests do not come through io_uring; NULL: they do. The text
	   stays valid. */
	_Atomic(const char *) why_not;
};

#endif
