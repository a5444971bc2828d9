/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/tier/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"

typedef unsigned long long ull;

enum {
	/* Checksums that are handled at once. */
	SPAN = 2048,
	/* How often the free space is looked at. */
	LOOK_BYTES = 16 << 20,
	LOOK_MS = 1000,
	/* How often a reader tries to become the writer. */
	TRY_MS = 2000,
	/* How often a reader counts what the writer has added. */
	COUNT_MS = 30000,
	/* Pages that one look removes at most if the file system is full, so
	   that the writing thread also does other things. */
	PUNCH_MAX = 64 * SPAN,
};

/* --- opening --- */

int tier_store_open(struct tier_store *store, const char *dir, uint64_t limit,
		    const struct tier_identity *identity, struct log *log)
{
	uint64_t allowed;
	bool is_writer;
	int r;

	*store = (struct tier_store){ .log = log };
	r = tier_files_open(dir, limit, identity, log, &store->files,
			    &is_writer, &allowed);
	if (r)
		return r;
	pthread_mutex_init(&store->lock, NULL);
	atomic_store(&store->allowed, allowed / TIER_PAGE);
	store->identity = (struct tier_identity){
		.url = strdup(identity->url),
		.version = strdup(identity->version),
		.size = identity->size,
	};
	atomic_store(&store->off, is_writer ? TIER_ON : TIER_READER);
	store->tried_ms = clock_coarse_ms();
	if (!store->identity.url || !store->identity.version)
		r = -ENOMEM;
	r = r ? r
	      : tier_index_init(&store->index, store->files.index, identity);
	if (r) {
		tier_store_close(store);
		return r;
	}
	atomic_store(&store->is_usable,
		     tier_index_is_right(&store->index, identity));
	if (is_writer && !atomic_load(&store->is_usable))
		atomic_store(&store->off, TIER_BROKEN);
	return 0;
}

void tier_store_close(struct tier_store *store)
{
	tier_files_close(&store->files);
	free((char *)store->identity.url);
	free((char *)store->identity.version);
	pthread_mutex_destroy(&store->lock);
}

bool tier_store_wants(const struct tier_store *store)
{
	return atomic_load_explicit(&store->off, memory_order_relaxed) ==
	       TIER_ON;
}

static bool is_writer(const struct tier_store *store)
{
	return atomic_load(&store->off) != TIER_READER;
}

const char *tier_off_text(enum tier_off off)
{
	static const char *const texts[TIER_OFFS] = {
		[TIER_ON] = "",
		[TIER_READER] = "another process fills the tier",
		[TIER_FULL] = "the tier is full",
		[TIER_SPACE] = "less than 5 % of the file system is free",
		[TIER_BROKEN] = "the disk failed",
	};

	return texts[off];
}

/* --- any thread --- */

void tier_store_find(const struct tier_store *store, uint64_t first, size_t n,
		     uint32_t *sums)
{
	if (atomic_load(&store->is_usable))
		tier_index_read(&store->index, first, n, sums);
	else
		memset(sums, 0, 4 * n);
}

/* Stops writing, and logs that once. */
static void give_up(struct tier_store *store, const char *what, int error)
{
	if (atomic_exchange(&store->off, TIER_BROKEN) != TIER_BROKEN)
		log_warning(
			store->log,
			"%s: %s: %s: no more is stored in the disk tier, and the dataset is read from its server",
			store->files.path, what, strerror(-error));
}

/* Returns whether the page was present with this checksum. */
static bool clear_page(struct tier_store *store, uint64_t page, uint32_t sum)
{
	const uint32_t none = 0;
	uint32_t now;

	scoped_lock(&store->lock);
	tier_index_read(&store->index, page, 1, &now);
	if (!now || now != sum)
		return false;
	if (!is_writer(store) ||
	    tier_index_write(&store->index, page, 1, &none))
		return true;
	if (store->counted == store->index.num_pages)
		atomic_fetch_sub(&store->present, 1);
	else
		store->sum -= page < store->counted;
	return true;
}

static bool is_power_of_ten(uint64_t n)
{
	while (n && n % 10 == 0)
		n /= 10;
	return n == 1;
}

/* Logs the place of the first damaged page, and then the number of them: a
   broken disk has a million. */
void tier_store_drop(struct tier_store *store, uint64_t page, uint32_t sum)
{
	uint64_t n;

	if (!clear_page(store, page, sum))
		return;
	n = atomic_fetch_add(&store->dropped, 1) + 1;
	if (n == 1)
		log_warning(
			store->log,
			"%s: the page at %llu is damaged: reading it from the server instead",
			store->files.path, (ull)page * TIER_PAGE);
	else if (is_power_of_ten(n))
		log_warning(
			store->log,
			"%s: %llu damaged pages so far were read from the server instead",
			store->files.path, (ull)n);
}

void tier_store_failed(struct tier_store *store, uint64_t first, uint64_t end,
		       int error)
{
	uint32_t sum;

	if (is_writer(store))
		give_up(store, "reading", error);
	for (uint64_t page = first; page < end; page++) {
		tier_index_read(&store->index, page, 1, &sum);
		if (clear_page(store, page, sum))
			atomic_fetch_add(&store->dropped, 1);
	}
}

/* --- writing --- */

static int write_all(int fd, const uint8_t *bytes, size_t size, uint64_t off)
{
	ssize_t n;

	while (size) {
		n = pwrite(fd, bytes, size, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENOSPC;
		bytes += n;
		size -= (size_t)n;
		off += (size_t)n;
	}
	return 0;
}

static size_t bytes_of(const struct tier_store *store, uint64_t first, size_t n)
{
	return (size_t)min_u64((uint64_t)n * TIER_PAGE,
			       store->index.size - first * TIER_PAGE);
}

static void sum_pages(const struct tier_index *index, uint64_t first, size_t n,
		      const uint8_t *bytes, uint32_t *sums)
{
	const uint8_t *three[3];
	size_t i = 0;

	for (; i + 3 <= n && first + i + 3 < index->num_pages; i += 3) {
		for (unsigned j = 0; j < 3; j++)
			three[j] = bytes + (i + j) * TIER_PAGE;
		tier_page_sums3(index, first + i, three, sums + i);
	}
	for (; i < n; i++)
		sums[i] =
			tier_page_sum(index, first + i, bytes + i * TIER_PAGE);
}

/* Writes pages that are absent. */
static int put_run(struct tier_store *store, uint64_t first, size_t n,
		   const uint8_t *bytes)
{
	uint32_t sums[SPAN];
	int r = write_all(store->files.data, bytes, bytes_of(store, first, n),
			  first * TIER_PAGE);

	if (r)
		return r;
	sum_pages(&store->index, first, n, bytes, sums);
	r = tier_index_write(&store->index, first, n, sums);
	if (!r)
		atomic_fetch_add(&store->present, n);
	store->unchecked += (uint64_t)n * TIER_PAGE;
	return r;
}

/* Returns how many of `n` pages may be added. */
static size_t room_for(struct tier_store *store, size_t n)
{
	uint64_t present = atomic_load(&store->present);
	uint64_t allowed = atomic_load(&store->allowed);

	if (present < allowed)
		return (size_t)min_u64(n, allowed - present);
	if (present < store->index.num_pages)
		atomic_store(&store->off, TIER_FULL);
	return 0;
}

/* Stores at most SPAN pages. Returns false if the tier takes no more. */
static bool put_span(struct tier_store *store, uint64_t first, size_t n,
		     const uint8_t *bytes)
{
	uint32_t sums[SPAN];
	size_t from, to = 0, fits;
	int r = 0;

	tier_index_read(&store->index, first, n, sums);
	while (to < n && !r) {
		for (from = to; from < n && sums[from]; from++)
			;
		for (to = from; to < n && !sums[to]; to++)
			;
		if (from == to)
			break;
		fits = room_for(store, to - from);
		if (!fits)
			return false;
		r = put_run(store, first + from, fits,
			    bytes + from * TIER_PAGE);
	}
	if (r)
		give_up(store, "writing", r);
	return !r;
}

static void look_at_space(struct tier_store *store);

void tier_store_put(struct tier_store *store, uint64_t first,
		    const struct tier_piece pieces[2])
{
	size_t n, left;

	for (unsigned i = 0; i < 2; i++) {
		left = pieces[i].size;
		for (size_t at = 0; at < left; at += n * TIER_PAGE) {
			n = min_u64(SPAN,
				    (left - at + TIER_PAGE - 1) / TIER_PAGE);
			if (!tier_store_wants(store) ||
			    !put_span(store, first, n, pieces[i].bytes + at))
				return;
			first += n;
		}
	}
	if (store->unchecked >= LOOK_BYTES)
		look_at_space(store);
}

bool tier_store_absent(const struct tier_store *store, uint64_t from,
		       uint64_t most, uint64_t *first, uint64_t *end)
{
	const uint64_t pages = store->index.num_pages;
	uint32_t sums[SPAN];
	uint64_t run = 0;
	size_t n;

	for (; from < pages; from += n) {
		n = min_u64(SPAN, pages - from);
		tier_index_read(&store->index, from, n, sums);
		for (size_t i = 0; i < n; i++) {
			if (sums[i] ? run > 0 : run == most)
				goto found;
			if (!sums[i] && !run++)
				*first = from + i;
		}
	}
found:
	*end = *first + run;
	return run > 0;
}

/* --- the free space of the file system --- */

static int64_t percent_missing(const struct statvfs *s, unsigned percent)
{
	return (int64_t)(s->f_blocks / 100 * percent) - (int64_t)s->f_bavail;
}

/* Removes up to SPAN pages before `end`. Returns their number. */
static size_t punch(struct tier_store *store, uint64_t first, uint64_t end)
{
	uint32_t sums[SPAN];
	const size_t n = (size_t)(end - first);
	size_t present = 0;
	scoped_lock(&store->lock);

	tier_index_read(&store->index, first, n, sums);
	for (size_t i = 0; i < n; i++)
		present += sums[i] != 0;
	if (!present)
		return 0;
	memset(sums, 0, 4 * n);
	if (tier_index_write(&store->index, first, n, sums))
		return 0;
	atomic_fetch_sub(&store->present, present);
	if (fallocate(store->files.data,
		      FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)(first * TIER_PAGE), (off_t)(n * TIER_PAGE)))
		give_up(store, "freeing space", -errno);
	return present;
}

/* Removes pages from the end of the object on. */
static void punch_bytes(struct tier_store *store, uint64_t bytes)
{
	uint64_t pages = min_u64(bytes / TIER_PAGE + 1, PUNCH_MAX), freed = 0;
	uint64_t end = store->index.num_pages, first;

	for (; end && freed < pages; end = first) {
		first = end > SPAN ? end - SPAN : 0;
		freed += punch(store, first, end);
	}
	if (freed)
		log_warning(
			store->log,
			"%s: removed %llu MiB from the disk tier, because less than 4 %% of the file system is free",
			store->files.path, (ull)freed * TIER_PAGE >> 20);
}

/* Changes `off`, unless another thread has found the disk broken. */
static bool set_off(struct tier_store *store, int from, int to)
{
	return atomic_compare_exchange_strong(&store->off, &from, to);
}

static void look_at_space(struct tier_store *store)
{
	struct statvfs s;

	store->unchecked = 0;
	store->looked_ms = clock_coarse_ms();
	if (fstatvfs(store->files.data, &s) || !s.f_blocks)
		return;
	if (percent_missing(&s, 5) > 0 && set_off(store, TIER_ON, TIER_SPACE))
		log_warning(
			store->log,
			"%s: no more is stored in the disk tier until 6 %% of the file system are free",
			store->files.path);
	if (percent_missing(&s, 4) > 0)
		punch_bytes(store, (uint64_t)percent_missing(&s, 5) *
					   (uint64_t)s.f_frsize);
	if (percent_missing(&s, 6) <= 0)
		set_off(store, TIER_SPACE, TIER_ON);
	/* Pages were dropped. */
	if (atomic_load(&store->present) < atomic_load(&store->allowed))
		set_off(store, TIER_FULL, TIER_ON);
}

/* --- what is due --- */

/* Holds the lock, so that a page that is dropped meanwhile is not counted, or
   is subtracted. */
static bool count_some(struct tier_store *store)
{
	const uint64_t pages = store->index.num_pages;
	uint32_t sums[SPAN];
	size_t n;
	scoped_lock(&store->lock);

	n = min_u64(SPAN, pages - store->counted);
	if (!store->counted)
		store->sum = 0;
	tier_index_read(&store->index, store->counted, n, sums);
	for (size_t i = 0; i < n; i++)
		store->sum += sums[i] != 0;
	store->counted += n;
	if (store->counted < pages)
		return true;
	atomic_store(&store->present, store->sum);
	store->counted_ms = clock_coarse_ms();
	return false;
}

static void begin_to_write(struct tier_store *store)
{
	int r = tier_files_repair(&store->files, &store->identity);

	if (r) {
		give_up(store, "opening", r);
		return;
	}
	/* As much as the writer before was allowed; 0 if that is unknown. */
	atomic_store(&store->allowed,
		     tier_index_allowed(store->files.index) / TIER_PAGE);
	store->counted = 0;
	atomic_store(&store->is_usable, true);
	set_off(store, TIER_READER, TIER_ON);
	log_info(store->log, "%s: filling the disk tier from now on",
		 store->files.path);
}

static void try_to_write(struct tier_store *store)
{
	store->tried_ms = clock_coarse_ms();
	if (tier_files_lock(&store->files)) {
		begin_to_write(store);
		return;
	}
	atomic_store(&store->is_usable,
		     tier_index_is_right(&store->index, &store->identity));
}

bool tier_store_tick(struct tier_store *store)
{
	int64_t now = clock_coarse_ms();

	if (!is_writer(store) && now - store->tried_ms >= TRY_MS)
		try_to_write(store);
	if (!is_writer(store) && now - store->counted_ms >= COUNT_MS &&
	    store->counted == store->index.num_pages)
		store->counted = 0;
	if (atomic_load(&store->is_usable) &&
	    store->counted < store->index.num_pages)
		return count_some(store);
	if (is_writer(store) && now - store->looked_ms >= LOOK_MS)
		look_at_space(store);
	return false;
}
