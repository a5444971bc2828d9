/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations, counted in buckets: four for each power of two, up to nine
 * minutes. Buckets are at least 64 ns wide. A duration that is computed from
 * them is off by an eighth at most, or by 32 ns.
 */
#ifndef FS_METRICS_HISTOGRAM_H
#define FS_METRICS_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 128 };

/* The bucket of a duration; the last one takes all that are longer. */
unsigned histogram_bucket(uint64_t ns);

/* The shortest duration of a bucket. */
uint64_t histogram_bound(unsigned bucket);

/* The duration that `share` of all do not exceed; 0 if there are none. */
uint64_t histogram_quantile(const uint64_t counts[HISTOGRAM_BUCKETS],
			    double share);

#endif
