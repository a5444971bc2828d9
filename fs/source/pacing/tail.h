/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long requests take, by their size: which of those on their way are late,
 * and how many bytes may be read twice because of it. One thread uses it.
 */
#ifndef FS_SOURCE_PACING_TAIL_H
#define FS_SOURCE_PACING_TAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/base/metrics/histogram.h"

enum { TAIL_CLASSES = 6 };

struct tail_times {
	uint64_t counts[HISTOGRAM_BUCKETS];
	uint64_t num;
};

struct tail {
	struct tail_times whole[TAIL_CLASSES]; /* of all bytes, by size */
	struct tail_times first;	       /* of first bytes */
	uint64_t bytes;			       /* delivered */
	uint64_t twice;			       /* of hedges */
};

void tail_first_byte(struct tail *tail, int64_t ns);
void tail_whole(struct tail *tail, uint64_t size, int64_t ns);

/* The ms that a request should wait for a first or another byte, after so many
   of its attempts waited in vain. */
unsigned tail_patience_ms(const struct tail *tail, unsigned timeouts);

/* Quantile of the time to the first byte; 0: unknown. */
int64_t tail_first_quantile(const struct tail *tail, double share);

/* The age at which a request is late; INT64_MAX: unknown. */
int64_t tail_late_ns(const struct tail *tail, uint64_t size);

/* Returns whether so many bytes may be read a second time, and counts them. */
bool tail_may_hedge(struct tail *tail, uint64_t size);

#endif
