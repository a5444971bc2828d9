/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/pacing/tail.h"

#include "fs/base/util/bytes.h"

enum {
	/* Quantiles of fewer times are unreliable. */
	TIMES_MIN = 32,
	/* Then all counts are halved, so that old times fade. */
	TIMES_MAX = 2048,
	CLASS_MIN = 64 << 10,
	/* One byte in so many may be read twice. */
	HEDGE_SHARE = 50,
	LATE_MIN_MS = 10,
	/* Servers may prepare an object before its first byte, for example
	   hash it. Fewer times do not predict the slowest answer. */
	PATIENT_TIMES = 8,
	PATIENT_MS = 10 * 1000,
	PATIENCE_MIN_MS = 1000,
	PATIENCE_MAX_MS = 60 * 1000,
	/* A byte is missing after so many times the 99th percentile. */
	PATIENCE_TIMES = 4,
};

static unsigned class_of(uint64_t size)
{
	unsigned class = 0;

	for (uint64_t most = CLASS_MIN; size > most && class + 1 < TAIL_CLASSES;
	     most *= 4)
		class ++;
	return class;
}

static void add(struct tail_times *t, int64_t ns)
{
	t->counts[histogram_bucket(ns < 0 ? 0 : (uint64_t)ns)]++;
	if (++t->num < TIMES_MAX)
		return;
	t->num = 0;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		t->counts[i] /= 2;
		t->num += t->counts[i];
	}
}

void tail_first_byte(struct tail *tail, int64_t ns)
{
	add(&tail->first, ns);
}

void tail_whole(struct tail *tail, uint64_t size, int64_t ns)
{
	add(&tail->whole[class_of(size)], ns);
	tail->bytes += size;
}

static int64_t quantile(const struct tail_times *t, double share)
{
	if (t->num < TIMES_MIN)
		return 0;
	return (int64_t)histogram_quantile(t->counts, share);
}

/* The longest time instead of a quantile if there are few. */
static int64_t slow_first_ns(const struct tail *tail)
{
	int64_t ns = quantile(&tail->first, 0.99);

	return ns ? ns : (int64_t)histogram_quantile(tail->first.counts, 1);
}

unsigned tail_patience_ms(const struct tail *tail, unsigned timeouts)
{
	uint64_t ms = PATIENT_MS;

	if (tail->first.num >= PATIENT_TIMES)
		ms = (uint64_t)slow_first_ns(tail) / 1000000 * PATIENCE_TIMES;
	ms = max_u64(ms, PATIENCE_MIN_MS);
	for (; timeouts && ms < PATIENCE_MAX_MS; timeouts--)
		ms *= 2;
	return (unsigned)min_u64(ms, PATIENCE_MAX_MS);
}

/* For people: few times are better than none. */
int64_t tail_first_quantile(const struct tail *tail, double share)
{
	if (!tail->first.num)
		return 0;
	return (int64_t)histogram_quantile(tail->first.counts, share);
}

int64_t tail_late_ns(const struct tail *tail, uint64_t size)
{
	int64_t ns = quantile(&tail->whole[class_of(size)], 0.99);

	if (!ns)
		return INT64_MAX;
	ns += ns / 2;
	return ns < LATE_MIN_MS * 1000000LL ? LATE_MIN_MS * 1000000LL : ns;
}

bool tail_may_hedge(struct tail *tail, uint64_t size)
{
	if ((tail->twice + size) * HEDGE_SHARE > tail->bytes)
		return false;
	tail->twice += size;
	return true;
}
