/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/metrics/histogram.h"

#include <math.h>

#include "fs/base/util/bytes.h"

enum { UNIT_BITS = 6 };

/* Durations are in units of the narrowest bucket. The first eight buckets hold
   one value each. From there on, four buckets share a power of two. */
unsigned histogram_bucket(uint64_t ns)
{
	uint64_t units = ns >> UNIT_BITS;
	unsigned power;

	if (units < 4)
		return (unsigned)units;
	power = 63 - (unsigned)__builtin_clzll(units);
	return (unsigned)min_u64(HISTOGRAM_BUCKETS - 1,
				 4 * (power - 1) + (units >> (power - 2)) % 4);
}

uint64_t histogram_bound(unsigned bucket)
{
	uint64_t units = bucket;

	if (bucket >= 4)
		units = (uint64_t)(4 + bucket % 4) << (bucket / 4 - 1);
	return units << UNIT_BITS;
}

uint64_t histogram_quantile(const uint64_t counts[HISTOGRAM_BUCKETS],
			    double share)
{
	uint64_t all = 0, rank, seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		all += counts[i];
	if (!all)
		return 0;
	rank = max_u64(1, (uint64_t)ceil(share * (double)all));
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += counts[i];
		if (seen >= rank)
			return (histogram_bound(i) + histogram_bound(i + 1)) /
			       2;
	}
	return 0;
}
