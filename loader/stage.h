/* SPDX-License-Identifier: Apache-2.0 */
/* Where the loader's time goes: counters of its stages, which any thread
   increases and reads. */
#ifndef LOADER_STAGE_H
#define LOADER_STAGE_H

#include <stdatomic.h>

#include "beton/loader.h"

enum stage {
	STAGE_READ,
	STAGE_DECODE,
	STAGE_TRANSFORM,
	STAGE_NEXT,
	STAGE_UPLOAD, /* last: only told where there is a GPU */
	STAGES,
};

struct stage_counters {
	atomic_uint_fast64_t items, bytes, busy_ns, input_wait_ns, room_wait_ns;
};

uint64_t stage_now_ns(void);

/* As beton_loader_stats(). */
size_t stage_stats(const struct stage_counters counters[STAGES],
		   struct beton_stage_stats *out, size_t max);

#endif
