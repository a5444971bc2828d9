/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/util/stages.h"

#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/clock.h"

static const char *const names[STAGES] = {
	[STAGE_READ] = "read",		 [STAGE_DECODE] = "decode",
	[STAGE_TRANSFORM] = "transform", [STAGE_NEXT] = "next",
	[STAGE_TRAINER] = "trainer",	 [STAGE_UPLOAD] = "upload",
	[STAGE_MAKERS] = "makers",	 [STAGE_NETWORK] = "network",
};

uint64_t stage_now_ns(void)
{
	return (uint64_t)clock_ns();
}

const char *stage_name(enum stage stage)
{
	return names[stage];
}

struct stage_lane *stage_lanes(size_t n)
{
	struct stage_lane *lanes = aligned_alloc(_Alignof(struct stage_lane),
						 n * sizeof(struct stage_lane));

	if (lanes)
		memset(lanes, 0, n * sizeof(*lanes));
	return lanes;
}

static struct beton_stage_stats stats_of(const struct stage_lane *lanes,
					 size_t num_lanes, enum stage stage)
{
	struct counters_sum sum = { .items = 0 };

	for (size_t i = 0; i < num_lanes; i++)
		counters_sum(&sum, &lanes[i].stages[stage]);
	return (struct beton_stage_stats){
		.name = names[stage],
		.items = sum.items,
		.bytes = sum.bytes,
		.busy_ns = sum.busy_ns,
		.input_wait_ns = sum.input_wait_ns,
		.room_wait_ns = sum.room_wait_ns,
		.p50_ns = histogram_quantile(sum.times, 0.5),
		.p90_ns = histogram_quantile(sum.times, 0.9),
		.p99_ns = histogram_quantile(sum.times, 0.99),
	};
}

/*
 * Counts as if a row were decoded before the rest is done, although both take
 * turns.
 */
void stage_rows(struct stage_lane *lane, const uint64_t *samples, uint32_t n,
		uint64_t begin, uint64_t end, const struct stage_cost *cost)
{
	uint64_t decode_ns = min_u64(end - begin, cost->decode_ns);
	uint64_t decoded = begin + decode_ns;

	counters_items_own(&lane->stages[STAGE_TRANSFORM], n, cost->made_bytes,
			   end - decoded);
	if (cost->decoded)
		counters_items_own(&lane->stages[STAGE_DECODE], cost->decoded,
				   cost->decoded_bytes, decode_ns);
	if (!lane->track)
		return;
	if (cost->decoded)
		trace_span(lane->track, TRACE_DECODE, begin, decoded,
			   samples[0], cost->decoded);
	trace_span(lane->track, TRACE_TRANSFORM, decoded, end, samples[0], n);
}

uint64_t stage_sum(const struct stage_lane *lanes, size_t num_lanes,
		   enum stage stage, size_t counter)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < num_lanes; i++) {
		const char *tally = (const char *)&lanes[i].stages[stage];

		sum += counters_get(
			(const atomic_uint_fast64_t *)(tally + counter));
	}
	return sum;
}

static bool is_reported(const struct stage_lane *lanes, size_t num_lanes,
			enum stage stage)
{
	return stage < STAGE_UPLOAD ||
	       stage_sum(lanes, num_lanes, stage,
			 offsetof(struct counters, items));
}

size_t stage_stats(const struct stage_lane *lanes, size_t num_lanes,
		   const atomic_uint_fast64_t delay_ns[STAGES],
		   struct beton_stage_stats *out, size_t max)
{
	size_t n = 0;

	for (enum stage i = 0; i < STAGES; i++) {
		if (!is_reported(lanes, num_lanes, i))
			continue;
		if (n < max) {
			out[n] = stats_of(lanes, num_lanes, i);
			out[n].delay_ns = counters_get(&delay_ns[i]);
		}
		n++;
	}
	return n;
}
