/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/zerocopy/holdings.h"

#include <errno.h>

uint64_t holdings_bytes(const struct holdings *h)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < h->n; i++)
		bytes += slot_capacity(h->slots[i]);
	return bytes;
}

int holdings_count(struct holdings *h, const struct slot *slot)
{
	uint64_t bytes = slot_capacity(slot);

	if (h->n == ZEROCOPY_SLOTS_MAX ||
	    budget_pin(h->budget, BUDGET_PIN_BATCHES, h->uid, bytes, false))
		return -ENOSPC;
	*h->bytes += bytes;
	return 0;
}

void holdings_uncount(struct holdings *h, const struct slot *slot)
{
	*h->bytes -= slot_capacity(slot);
	budget_unpin(h->budget, BUDGET_PIN_BATCHES, h->uid,
		     slot_capacity(slot));
}

void holdings_add(struct holdings *h, struct slot *slot)
{
	h->slots[h->n++] = slot;
}

int holdings_put(struct holdings *h, uint64_t id)
{
	for (unsigned i = 0; i < h->n; i++) {
		if (slot_id(h->slots[i]) != id)
			continue;
		holdings_uncount(h, h->slots[i]);
		slot_put(&h->slots[i]);
		h->slots[i] = h->slots[--h->n];
		return 0;
	}
	return -ENOENT;
}

void holdings_abandon(struct holdings *h)
{
	while (h->n) {
		holdings_uncount(h, h->slots[--h->n]);
		slot_abandon(&h->slots[h->n]);
	}
}

bool holdings_knows(const struct holdings *h, uint64_t id)
{
	for (unsigned i = 0; i < HOLDINGS_KNOWN_MAX; i++) {
		if (h->known[i] == id)
			return true;
	}
	return false;
}

void holdings_remember(struct holdings *h, uint64_t id)
{
	h->known[h->oldest_known] = id;
	h->oldest_known = (h->oldest_known + 1) % HOLDINGS_KNOWN_MAX;
}

void holdings_forget(struct holdings *h, uint64_t id)
{
	for (unsigned i = 0; i < HOLDINGS_KNOWN_MAX; i++) {
		if (h->known[i] == id)
			h->known[i] = 0;
	}
}
