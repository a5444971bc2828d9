/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long things took, counted in buckets: four for each power of two, up to
 * nine minutes, but none of less than 64 ns. A time that is told out of them is
 * off by an eighth at most, or by 32 ns.
 */
#ifndef FS_METRICS_HISTOGRAM_H
#define FS_METRICS_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 128 };

/* Where a time is counted; what is longer than all is in the last bucket. */
unsigned histogram_bucket(uint64_t ns);

/* The least time of a bucket. */
uint64_t histogram_bound(unsigned bucket);

/* The time that this share of all were no longer than; 0 if there are none. */
uint64_t histogram_quantile(const uint64_t counts[HISTOGRAM_BUCKETS],
			    double share);

#endif
