/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/disk_pages.h"

#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/log.h"

typedef unsigned long long ull;

enum {
	PAGE = TIER_PAGE,
	/* Fewer present pages between missing ones are read with them. */
	BRIDGE = 4,
};

void disk_start(struct disk_source *d)
{
	if (!atomic_load_explicit(&d->is_started, memory_order_relaxed) &&
	    !atomic_exchange(&d->is_started, true))
		disk_fill_start(&d->fill);
}

struct disk_span disk_span_of(const struct disk_source *d, uint64_t off,
			      uint64_t size)
{
	uint64_t end = off + min_u64(size, disk_size(d) - off);
	uint64_t first = off / PAGE;

	return (struct disk_span){ off, end, first,
				   (size_t)((end + PAGE - 1) / PAGE - first) };
}

void disk_past_end(const struct disk_source *d, size_t size, uint64_t off)
{
	log_error(d->base.log, "%s: read of %zu bytes at %llu: %s",
		  d->base.path, size, (ull)off, strerror(EIO));
}

size_t disk_same_until(const uint32_t *sums, size_t n, size_t at)
{
	bool is_present = sums[at] != 0;

	while (at < n && (sums[at] != 0) == is_present)
		at++;
	return at;
}

/* Extends missing pages beyond gaps that are too small for a request. */
static size_t missing_until(const uint32_t *sums, size_t n, size_t at)
{
	size_t end = disk_same_until(sums, n, at), gap;

	while (end < n) {
		gap = disk_same_until(sums, n, end);
		if (gap - end > BRIDGE || gap == n)
			break;
		end = disk_same_until(sums, n, gap);
	}
	return end;
}

unsigned disk_find_runs(const uint32_t *sums, size_t n, uint64_t first,
			struct disk_run runs[DISK_RUNS_MAX])
{
	unsigned num = 0;
	size_t at = 0, end;
	bool is_local;

	for (; at < n; at = end) {
		is_local = sums[at] != 0;
		end = is_local ? disk_same_until(sums, n, at)
			       : missing_until(sums, n, at);
		if (num == DISK_RUNS_MAX - 1) {
			is_local &= end == n;
			end = n;
		}
		runs[num++] =
			(struct disk_run){ first + at, first + end, is_local };
	}
	return num;
}

/* Walks over the pages of scattered memory. */
struct disk_walk {
	const struct iovec *iov;
	size_t skip;
};

/* Returns the next bytes; a copy in `page` if they are not contiguous. */
static const uint8_t *next_bytes(struct disk_walk *w, size_t size,
				 uint8_t *page)
{
	const uint8_t *at;
	size_t done = 0, n;

	while (w->skip == w->iov->iov_len) {
		w->iov++;
		w->skip = 0;
	}
	at = (const uint8_t *)w->iov->iov_base + w->skip;
	if (w->iov->iov_len - w->skip >= size) {
		w->skip += size;
		return at;
	}
	for (; done < size; done += n) {
		if (w->skip == w->iov->iov_len) {
			w->iov++;
			w->skip = 0;
		}
		n = min_u64(size - done, w->iov->iov_len - w->skip);
		memcpy(page + done, (const uint8_t *)w->iov->iov_base + w->skip,
		       n);
		w->skip += n;
	}
	return page;
}

/* Pages that were damaged lie within [bad->first, bad->end). */
static void compare(struct disk_source *d, uint64_t page, uint32_t found,
		    uint32_t sum, struct disk_run *bad)
{
	if (found == sum)
		return;
	tier_store_drop(&d->store, page, sum);
	if (bad->first == bad->end)
		bad->first = page;
	bad->end = page + 1;
}

struct disk_run disk_check_pages(struct disk_source *d,
				 const struct disk_run *run,
				 const struct iovec *iov, size_t skip,
				 const uint32_t *sums)
{
	struct disk_walk w = { iov, skip };
	const struct tier_index *index = &d->store.index;
	uint8_t spare[3][PAGE];
	const uint8_t *three[3];
	uint32_t found[3];
	struct disk_run bad = { 0 };
	uint64_t page = run->first;

	for (; page + 3 <= run->end && page + 3 < index->num_pages; page += 3) {
		for (unsigned i = 0; i < 3; i++)
			three[i] = next_bytes(&w, PAGE, spare[i]);
		tier_page_sums3(index, page, three, found);
		for (unsigned i = 0; i < 3; i++)
			compare(d, page + i, found[i],
				sums[page - run->first + i], &bad);
	}
	for (; page < run->end; page++) {
		three[0] =
			next_bytes(&w, tier_page_size(index, page), spare[0]);
		compare(d, page, tier_page_sum(index, page, three[0]),
			sums[page - run->first], &bad);
	}
	return bad;
}
