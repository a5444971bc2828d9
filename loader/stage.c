/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/stage.h"

#include "fs/clock.h"

static const char *const names[STAGES] = { "read", "decode", "transform",
					   "next", "upload" };

uint64_t stage_now_ns(void)
{
	return (uint64_t)clock_ns();
}

size_t stage_stats(const struct stage_counters counters[STAGES],
		   struct beton_stage_stats *out, size_t max)
{
	size_t n = atomic_load(&counters[STAGE_UPLOAD].items) ? STAGES
							      : STAGE_UPLOAD;

	for (size_t i = 0; i < n && i < max; i++) {
		const struct stage_counters *c = &counters[i];

		out[i] = (struct beton_stage_stats){
			.name = names[i],
			.items = atomic_load(&c->items),
			.bytes = atomic_load(&c->bytes),
			.busy_ns = atomic_load(&c->busy_ns),
			.input_wait_ns = atomic_load(&c->input_wait_ns),
			.room_wait_ns = atomic_load(&c->room_wait_ns),
		};
	}
	return n;
}
