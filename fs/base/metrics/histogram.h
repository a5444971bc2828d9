/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations, counted in buckets: four for each power of two, up to nine
 * minutes. Buckets are at least 64 ns wide. A quantile computed from them is
 * within 12.5 % or 32 ns.
 */
#ifndef FS_BASE_METRICS_HISTOGRAM_H
#define FS_BASE_METRICS_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 128 };

/* Returns the bucket of a duration; the last one takes all longer durations. */
unsigned histogram_bucket(uint64_t ns);

/* The shortest duration of a bucket. */
uint64_t histogram_bound(unsigned bucket);

/* Returns the quantile `share`, in [0, 1]; 0 if the histogram is empty. */
uint64_t histogram_quantile(const uint64_t counts[HISTOGRAM_BUCKETS],
			    double share);

#endif
