/* SPDX-License-Identifier: Apache-2.0 */
/* The slots that a loader holds, which are counted and charged to its user, and
   the slots whose descriptors it has. */
#ifndef FS_MOUNT_ZEROCOPY_HOLDINGS_H
#define FS_MOUNT_ZEROCOPY_HOLDINGS_H

#include <stdbool.h>
#include <sys/types.h>

#include "fs/base/memory/budget.h"
#include "fs/data/engine/engine.h"
#include "fs/data/wire/zerocopy_message.h"

/* Slots whose descriptors a loader may have; older descriptors are sent
   again. */
enum { HOLDINGS_KNOWN_MAX = 64 };

struct holdings {
	uint64_t *bytes; /* that all loaders hold */
	struct budget *budget;
	uid_t uid;
	struct slot *slots[ZEROCOPY_SLOTS_MAX];
	unsigned n;
	uint64_t known[HOLDINGS_KNOWN_MAX]; /* ids, 0: none */
	unsigned oldest_known;
};

/* Bytes that this loader holds. */
uint64_t holdings_bytes(const struct holdings *holdings);

/* Counts a slot before the loader holds it. -ENOSPC: it would exceed the share
   of the user, or the number of slots. */
int holdings_count(struct holdings *holdings, const struct slot *slot);
/* Reverts the count, if the loader did not get the slot. */
void holdings_uncount(struct holdings *holdings, const struct slot *slot);
/* Adds a slot that was counted, and owns it. */
void holdings_add(struct holdings *holdings, struct slot *slot);
/* Releases a slot that the loader no longer uses. -ENOENT: the loader holds no
   slot with this id. */
int holdings_put(struct holdings *holdings, uint64_t id);
/* Abandons the slots of a closed connection, because the process may still read
   them. */
void holdings_abandon(struct holdings *holdings);

bool holdings_knows(const struct holdings *holdings, uint64_t id);
void holdings_remember(struct holdings *holdings, uint64_t id);
void holdings_forget(struct holdings *holdings, uint64_t id);

#endif
