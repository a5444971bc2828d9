/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages of a tier that this process has compared with their checksums. A
 * bit per page: 32 MiB for a TiB, of which only the used parts take memory.
 * Thread-safe.
 */
#ifndef FS_TIER_SEEN_H
#define FS_TIER_SEEN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tier_seen {
	atomic_uint_fast64_t *words; /* NULL: no page is ever noted */
};

/* If memory is short, no page is noted. */
void tier_seen_init(struct tier_seen *seen, uint64_t num_pages);
void tier_seen_fini(struct tier_seen *seen);

/* Notes pages [first, end). */
void tier_seen_note(struct tier_seen *seen, uint64_t first, uint64_t end);
/* Returns whether all of them were noted. */
bool tier_seen_all(const struct tier_seen *seen, uint64_t first, uint64_t end);

#endif
