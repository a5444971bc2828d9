/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/stage.h"

#include <stdlib.h>
#include <string.h>

#include "fs/clock.h"

static const char *const names[STAGES] = {
	[STAGE_READ] = "read",		 [STAGE_DECODE] = "decode",
	[STAGE_TRANSFORM] = "transform", [STAGE_NEXT] = "next",
	[STAGE_TRAINER] = "trainer",	 [STAGE_UPLOAD] = "upload",
};

uint64_t stage_now_ns(void)
{
	return (uint64_t)clock_ns();
}

const char *stage_name(enum stage stage)
{
	return names[stage];
}

struct lane *stage_lanes(size_t n)
{
	struct lane *lanes =
		aligned_alloc(_Alignof(struct lane), n * sizeof(struct lane));

	if (lanes)
		memset(lanes, 0, n * sizeof(*lanes));
	return lanes;
}

static struct beton_stage_stats stats_of(const struct lane *lanes,
					 size_t num_lanes, enum stage stage)
{
	struct tally_sum sum = { .items = 0 };

	for (size_t i = 0; i < num_lanes; i++)
		tally_sum(&sum, &lanes[i].stages[stage]);
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

size_t stage_stats(const struct lane *lanes, size_t num_lanes,
		   const atomic_uint_fast64_t delay_ns[STAGES],
		   struct beton_stage_stats *out, size_t max)
{
	size_t n = STAGE_UPLOAD;

	for (size_t i = 0; i < num_lanes; i++) {
		if (tally_get(&lanes[i].stages[STAGE_UPLOAD].items))
			n = STAGES;
	}
	for (size_t i = 0; i < n && i < max; i++) {
		out[i] = stats_of(lanes, num_lanes, (enum stage)i);
		out[i].delay_ns = tally_get(&delay_ns[i]);
	}
	return n;
}
