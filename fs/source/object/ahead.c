/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/ahead.h"

#include "fs/base/util/bytes.h"

static bool continues(const struct ahead_scan *s, uint64_t off, uint64_t end)
{
	uint64_t distance = off > s->next ? off - s->next : s->next - off;

	return s->used && distance <= AHEAD_SLACK && end > s->next;
}

/* Returns the scan that a read continues, or the one to replace. */
static struct ahead_scan *find_scan(struct ahead *a, uint64_t off, uint64_t end)
{
	struct ahead_scan *oldest = a->scans;

	for (unsigned i = 0; i < AHEAD_SCANS; i++) {
		if (continues(&a->scans[i], off, end))
			return &a->scans[i];
		if (a->scans[i].used < oldest->used)
			oldest = &a->scans[i];
	}
	return oldest;
}

bool ahead_note(struct ahead *a, uint64_t off, uint64_t size, uint64_t limit,
		uint64_t most, uint64_t *from, uint64_t *to)
{
	uint64_t end = off + size;
	struct ahead_scan *s = find_scan(a, off, end);
	bool is_scan = continues(s, off, end);

	if (!is_scan)
		*s = (struct ahead_scan){ .end = end, .window = size };
	s->used = ++a->clock;
	s->next = end;
	s->end = max_u64(s->end, end);
	*from = *to = s->end;
	if (!is_scan)
		return false;
	s->window = min_u64(max_u64(s->window, size), most);
	/* Many small requests would cost more than they gain. */
	if (s->end - end > s->window / 2)
		return true;
	s->window = min_u64(2 * s->window, most);
	*to = max_u64(s->end, min_u64(end + s->window, limit));
	s->end = *to;
	return true;
}
