/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/disk_fill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"

enum {
	/* Without a reader's request for so long, the link is idle. */
	IDLE_MS = 250,
	WAIT_MS = 1000,
	/* After a run that could not be read. */
	PAUSE_MS = 30000,
	/* Bytes that are copied at once. If there is no room for all of a
	   request, a part of it is stored. */
	COPY = 1 << 20,
};

int disk_fill_init(struct disk_fill *fill, struct tier_store *store,
		   struct source *inner, uint64_t memory)
{
	uint64_t ring =
		min_u64(max_u64(memory / 2, DISK_RING_LEAST), DISK_RING_MOST);
	int r;

	*fill = (struct disk_fill){
		.store = store,
		.inner = inner,
		.size = DISK_FILL_LEAST,
		.most = (size_t)min_u64(ring / 4, DISK_FILL_MOST),
	};
	r = tier_queue_init(&fill->queue, (size_t)ring / TIER_PAGE);
	if (r)
		return r;
	atomic_store(&fill->busy_ms, clock_coarse_ms());
	pthread_mutex_init(&fill->lock, NULL);
	clock_cond_init(&fill->changed);
	return 0;
}

void disk_fill_stop(struct disk_fill *fill)
{
	bool has_thread;

	pthread_mutex_lock(&fill->lock);
	fill->stopping = true;
	has_thread = fill->has_thread;
	pthread_cond_broadcast(&fill->changed);
	pthread_mutex_unlock(&fill->lock);
	if (has_thread)
		pthread_join(fill->thread, NULL);
}

void disk_fill_pause(struct disk_fill *fill)
{
	disk_fill_stop(fill);
	scoped_lock(&fill->lock);
	fill->stopping = false;
	fill->has_thread = false;
}

void disk_fill_fini(struct disk_fill *fill)
{
	free(fill->buffer);
	tier_queue_fini(&fill->queue);
	pthread_cond_destroy(&fill->changed);
	pthread_mutex_destroy(&fill->lock);
}

/* --- readers --- */

void disk_fill_busy(struct disk_fill *fill)
{
	atomic_fetch_add(&fill->waiting, 1);
	atomic_store(&fill->busy_ms, clock_coarse_ms());
	if (!atomic_load(&fill->is_reading) ||
	    atomic_exchange(&fill->is_unwanted, true))
		return;
	scoped_lock(&fill->lock);
	pthread_cond_signal(&fill->changed);
}

void disk_fill_idle(struct disk_fill *fill)
{
	atomic_store(&fill->busy_ms, clock_coarse_ms());
	atomic_fetch_sub(&fill->waiting, 1);
}

static int reserve(struct disk_fill *fill, uint64_t first, size_t pages)
{
	scoped_lock(&fill->lock);
	return tier_queue_reserve(&fill->queue, first, pages);
}

static void copy_pages(struct disk_fill *fill, int run, const struct iovec *iov,
		       size_t skip, size_t size)
{
	size_t done = 0, n;

	for (; done < size; iov++) {
		if (skip >= iov->iov_len) {
			skip -= iov->iov_len;
			continue;
		}
		while (skip < iov->iov_len && done < size) {
			n = min_u64(iov->iov_len - skip, size - done);
			n = min_u64(n, TIER_PAGE - done % TIER_PAGE);
			memcpy(tier_queue_page(&fill->queue, run,
					       done / TIER_PAGE) +
				       done % TIER_PAGE,
			       (const uint8_t *)iov->iov_base + skip, n);
			skip += n;
			done += n;
		}
		skip = 0;
	}
}

static bool put_copy(struct disk_fill *fill, uint64_t first,
		     const struct iovec *iov, size_t skip, size_t size)
{
	int run = reserve(fill, first, (size + TIER_PAGE - 1) / TIER_PAGE);

	if (run < 0)
		return false;
	copy_pages(fill, run, iov, skip, size);
	scoped_lock(&fill->lock);
	tier_queue_ready(&fill->queue, run);
	pthread_cond_signal(&fill->changed);
	return true;
}

void disk_fill_put(struct disk_fill *fill, uint64_t first,
		   const struct iovec *iov, size_t skip, size_t size)
{
	size_t n;

	for (; size; size -= n, skip += n, first += COPY / TIER_PAGE) {
		n = min_u64(size, COPY);
		if (!put_copy(fill, first, iov, skip, n)) {
			atomic_fetch_add(&fill->skipped, size);
			return;
		}
	}
}

uint64_t disk_fill_memory(const struct disk_fill *fill)
{
	return fill->queue.pages * TIER_PAGE + fill->most;
}

uint64_t disk_fill_waiting(struct disk_fill *fill)
{
	scoped_lock(&fill->lock);
	return (uint64_t)fill->queue.used * TIER_PAGE;
}

/* --- pages that no reader requested --- */

static bool is_idle(const struct disk_fill *fill)
{
	return !atomic_load(&fill->waiting) &&
	       clock_coarse_ms() - atomic_load(&fill->busy_ms) >= IDLE_MS;
}

static bool may_fill_later(const struct disk_fill *fill)
{
	const struct tier_store *store = fill->store;

	return tier_store_wants(store) &&
	       atomic_load(&store->allowed) >= store->index.num_pages &&
	       atomic_load(&store->present) < store->index.num_pages;
}

static bool may_fill(const struct disk_fill *fill)
{
	return may_fill_later(fill) && is_idle(fill) &&
	       clock_coarse_ms() >= fill->pause_until_ms;
}

static void fill_done(struct source_request *request, int result)
{
	struct disk_fill *fill = request->arg;
	scoped_lock(&fill->lock);

	fill->has_run = true;
	fill->result = result;
	pthread_cond_signal(&fill->changed);
}

/* Starts to read the next run of absent pages. */
static void begin_run(struct disk_fill *fill)
{
	const struct tier_store *store = fill->store;
	uint64_t first, end, most = fill->size / TIER_PAGE;

	if (!fill->buffer)
		fill->buffer = aligned_alloc(TIER_PAGE, fill->most);
	if (!fill->buffer ||
	    !tier_store_absent(store, fill->at, most, &first, &end)) {
		/* Pages before it may be absent; they are looked at next. */
		fill->at = 0;
		fill->pause_until_ms = clock_coarse_ms() + WAIT_MS;
		return;
	}
	fill->at = end;
	fill->is_cancelled = false;
	fill->request = (struct source_request){
		.buf = fill->buffer,
		.off = first * TIER_PAGE,
		.size = (size_t)min_u64((end - first) * TIER_PAGE,
					store->index.size - first * TIER_PAGE),
		.done = fill_done,
		.arg = fill,
	};
	atomic_store(&fill->is_unwanted, false);
	atomic_store(&fill->is_reading, true);
	source_submit(fill->inner, &fill->request);
}

static void end_run(struct disk_fill *fill, int result)
{
	const struct source_request *q = &fill->request;
	const struct tier_piece pieces[2] = { { fill->buffer, q->size } };

	atomic_store(&fill->is_reading, false);
	if (result) {
		fill->size = DISK_FILL_LEAST;
		fill->at = q->off / TIER_PAGE;
		if (result != -ECANCELED)
			fill->pause_until_ms = clock_coarse_ms() + PAUSE_MS;
		return;
	}
	tier_store_put(fill->store, q->off / TIER_PAGE, pieces);
	atomic_fetch_add(&fill->filled, q->size);
	fill->size = (size_t)min_u64(2 * fill->size, fill->most);
}

/* --- the thread --- */

/* Writes the oldest copy. Returns false if there is none. */
static bool write_one(struct disk_fill *fill)
{
	const struct tier_run *run;
	struct tier_piece pieces[2];

	pthread_mutex_lock(&fill->lock);
	run = tier_queue_first(&fill->queue, pieces);
	pthread_mutex_unlock(&fill->lock);
	if (!run)
		return false;
	tier_store_put(fill->store, run->first, pieces);
	scoped_lock(&fill->lock);
	tier_queue_pop(&fill->queue);
	return true;
}

/* Returns whether a run has been read. */
static bool take_run(struct disk_fill *fill, int *result)
{
	scoped_lock(&fill->lock);
	if (!fill->has_run)
		return false;
	fill->has_run = false;
	*result = fill->result;
	return true;
}

static bool must_make_way(const struct disk_fill *fill)
{
	return atomic_load(&fill->is_reading) && !fill->is_cancelled &&
	       atomic_load(&fill->is_unwanted);
}

/* Readers come first. A request that is being read ends by itself. */
static void make_way(struct disk_fill *fill)
{
	if (!must_make_way(fill))
		return;
	fill->is_cancelled = true;
	fill->size = DISK_FILL_LEAST;
	source_cancel(fill->inner, &fill->request);
}

static void wait_for_work(struct disk_fill *fill, int64_t ms)
{
	struct timespec until = clock_in_ms(ms);
	struct tier_piece pieces[2];
	scoped_lock(&fill->lock);

	if (!fill->stopping && !fill->has_run && !must_make_way(fill) &&
	    !tier_queue_first(&fill->queue, pieces))
		pthread_cond_timedwait(&fill->changed, &fill->lock, &until);
}

static bool is_stopping(struct disk_fill *fill)
{
	scoped_lock(&fill->lock);
	return fill->stopping;
}

static void *fill_tier(void *arg)
{
	struct disk_fill *fill = arg;
	int result;

	while (!is_stopping(fill)) {
		if (tier_store_tick(fill->store) || write_one(fill))
			continue;
		if (take_run(fill, &result)) {
			end_run(fill, result);
			continue;
		}
		make_way(fill);
		if (!atomic_load(&fill->is_reading) && may_fill(fill))
			begin_run(fill);
		wait_for_work(fill, may_fill_later(fill) ? IDLE_MS : WAIT_MS);
	}
	while (write_one(fill))
		;
	return NULL;
}

void disk_fill_start(struct disk_fill *fill)
{
	scoped_lock(&fill->lock);
	if (!fill->has_thread && !fill->stopping)
		fill->has_thread =
			!thread_start(&fill->thread, fill_tier, fill);
}
