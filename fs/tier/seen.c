/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/tier/seen.h"

#include <stdlib.h>

#include "fs/util/bytes.h"

enum { BITS = 64 };

void tier_seen_init(struct tier_seen *seen, uint64_t num_pages)
{
	/* calloc() maps pages that are zero until they are written. */
	seen->words = calloc(num_pages / BITS + 1, sizeof(*seen->words));
}

void tier_seen_fini(struct tier_seen *seen)
{
	free(seen->words);
}

/* Returns the bits of those pages that the word of the first one contains. */
static uint64_t mask_of(uint64_t first, uint64_t end)
{
	uint64_t low = first % BITS, n = min_u64(end - first, BITS - low);

	return (n == BITS ? UINT64_MAX : ((uint64_t)1 << n) - 1) << low;
}

static uint64_t next_word(uint64_t first)
{
	return (first / BITS + 1) * BITS;
}

void tier_seen_note(struct tier_seen *seen, uint64_t first, uint64_t end)
{
	for (; seen->words && first < end; first = next_word(first))
		atomic_fetch_or_explicit(&seen->words[first / BITS],
					 mask_of(first, end),
					 memory_order_relaxed);
}

bool tier_seen_all(const struct tier_seen *seen, uint64_t first, uint64_t end)
{
	uint64_t mask, word;

	for (; seen->words && first < end; first = next_word(first)) {
		mask = mask_of(first, end);
		word = atomic_load_explicit(&seen->words[first / BITS],
					    memory_order_relaxed);
		if ((word & mask) != mask)
			return false;
	}
	return seen->words;
}
