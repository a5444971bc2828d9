/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/source/local/file.h"
#include "fs/source/object/disk_read.h"

typedef unsigned long long ull;

enum {
	PAGE = TIER_PAGE,
	/* Bytes of source_read() that are handled at once. */
	SYNC_MOST = 1 << 20,
};

/* --- reads on the caller's thread --- */

/* Reads pages from the inner source and stores them. */
static int read_missing(struct disk_source *d, const struct disk_run *run,
			uint8_t *bytes)
{
	uint64_t from = run->first * PAGE;
	size_t size = (size_t)(min_u64(run->end * PAGE, disk_size(d)) - from);
	const struct iovec iov = { bytes, size };
	int r;

	atomic_fetch_add(&d->misses, size);
	disk_fill_busy(&d->fill);
	r = source_read(d->inner, bytes, size, from);
	disk_fill_idle(&d->fill);
	if (!r && tier_store_wants(&d->store))
		disk_fill_put(&d->fill, run->first, &iov, 0, size);
	return r;
}

static int read_present(struct disk_source *d, const struct disk_run *run,
			uint8_t *bytes, const uint32_t *sums)
{
	uint64_t from = run->first * PAGE;
	size_t size = (size_t)(min_u64(run->end * PAGE, disk_size(d)) - from);
	const struct iovec iov = { bytes, size };
	struct disk_run bad = *run;
	int r = source_read(d->local, bytes, size, from);

	if (r)
		tier_store_failed(&d->store, run->first, run->end, r);
	else
		bad = disk_check_pages(d, run, &iov, 0, sums);
	if (bad.first < bad.end)
		return read_missing(d, &bad,
				    bytes + (bad.first - run->first) * PAGE);
	atomic_fetch_add(&d->hits, size);
	return 0;
}

/* Reads whole pages into `bytes`. */
static int read_pages(struct disk_source *d, const struct disk_span *span,
		      uint8_t *bytes)
{
	uint32_t sums[SYNC_MOST / PAGE + 1];
	struct disk_run runs[DISK_RUNS_MAX];
	uint8_t *at;
	unsigned num;
	size_t n;
	int r = 0;

	tier_store_find(&d->store, span->first, span->n, sums);
	num = disk_find_runs(sums, span->n, span->first, runs);
	for (unsigned i = 0; i < num && !r; i++) {
		n = (size_t)(runs[i].first - span->first);
		at = bytes + n * PAGE;
		r = runs[i].is_local ? read_present(d, &runs[i], at, sums + n)
				     : read_missing(d, &runs[i], at);
	}
	return r;
}

static bool has_any(struct disk_source *d, const struct disk_span *span)
{
	uint32_t sums[SYNC_MOST / PAGE + 1];

	tier_store_find(&d->store, span->first, span->n, sums);
	for (size_t i = 0; i < span->n; i++)
		if (sums[i])
			return true;
	return false;
}

static int read_span(struct disk_source *d, const struct disk_span *span,
		     uint8_t *out)
{
	size_t size = (size_t)(span->end - span->off);
	cleanup_free uint8_t *bytes = NULL;
	int r;

	if (!tier_store_wants(&d->store) && !has_any(d, span)) {
		atomic_fetch_add(&d->misses, size);
		return source_read(d->inner, out, size, span->off);
	}
	bytes = malloc(span->n * PAGE);
	if (!bytes)
		return -ENOMEM;
	r = read_pages(d, span, bytes);
	if (!r)
		memcpy(out, bytes + span->off % PAGE, size);
	return r;
}

static int disk_read_now(struct source *source, void *buf, size_t size,
			 uint64_t off)
{
	struct disk_source *d = disk_of(source);
	uint8_t *out = buf;
	struct disk_span span;
	int r = 0;

	if (!range_ok(off, size, disk_size(d))) {
		disk_past_end(d, size, off);
		return -EIO;
	}
	disk_start(d);
	for (uint64_t end = off + size; off < end && !r; off = span.end) {
		span = disk_span_of(
			d, off,
			min_u64(end, (off / SYNC_MOST + 1) * SYNC_MOST) - off);
		r = read_span(d, &span, out);
		out += span.end - span.off;
	}
	return r;
}

void disk_keep(struct source *source, const void *bytes, size_t size,
	       uint64_t off)
{
	struct disk_source *d = disk_of(source);
	const struct iovec iov = { (void *)bytes, size };

	if (off + size != disk_size(d))
		size -= size % PAGE;
	if (size && tier_store_wants(&d->store))
		disk_fill_put(&d->fill, off / PAGE, &iov, 0, size);
}

/* --- requests --- */

static void disk_submit(struct source *source, struct source_request *q)
{
	disk_read_submit(disk_of(source), q);
}

static void disk_cancel(struct source *source, struct source_request *q)
{
	disk_read_cancel(disk_of(source), q);
}

/* --- hints --- */

/* Once the object is in the tier, the disk is the only source. */
static bool is_complete(const struct disk_source *d)
{
	return atomic_load(&d->store.present) >= d->store.index.num_pages;
}

static unsigned disk_depth(const struct source *source)
{
	const struct disk_source *d = disk_of(source);
	unsigned local = source_depth(d->local), inner;

	if (is_complete(d))
		return local;
	inner = source_depth(d->inner);
	return inner > local ? inner : local;
}

static size_t disk_best_read(const struct source *source)
{
	const struct disk_source *d = disk_of(source);

	return source_best_read(is_complete(d) ? d->local : d->inner);
}

static bool disk_is_direct(const struct source *source)
{
	return source_is_direct(disk_of(source)->local);
}

static void disk_prefetch(struct source *source, uint64_t off, uint64_t size)
{
	struct disk_source *d = disk_of(source);
	uint32_t sums[SYNC_MOST / PAGE + 1];
	struct disk_span span;
	uint64_t end;

	if (off >= disk_size(d))
		return;
	end = off + min_u64(size, disk_size(d) - off);
	for (; off < end; off = span.end) {
		span = disk_span_of(d, off,
				    min_u64(end - off, SYNC_MOST - PAGE));
		tier_store_find(&d->store, span.first, span.n, sums);
		if (disk_same_until(sums, span.n, 0) < span.n || !sums[0])
			source_prefetch(d->inner, span.off,
					span.end - span.off);
	}
}

static void disk_note_tables(struct source *source,
			     const struct source_range *tables, size_t n)
{
	source_note_tables(disk_of(source)->inner, tables, n);
}

/* --- opening and closing --- */

static void close_tier(struct disk_source *d)
{
	atomic_store(&d->is_closing, true);
	disk_fill_stop(&d->fill);
	/* Its threads submit to the inner source. */
	source_close(d->local);
}

static void free_tier(struct disk_source *d)
{
	disk_fill_fini(&d->fill);
	tier_store_close(&d->store);
	pthread_mutex_destroy(&d->lock);
}

/* The sources behind it are paused next. */
static void disk_pause(struct source *source)
{
	struct disk_source *d = disk_of(source);

	disk_fill_pause(&d->fill);
	atomic_store(&d->is_started, false);
	source_pause(d->local);
}

static void disk_close(struct source *source)
{
	struct disk_source *d = disk_of(source);

	close_tier(d);
	source_close(d->inner);
	free_tier(d);
}

static const struct source_ops disk_ops = {
	.name = "disk",
	.submit = disk_submit,
	.cancel = disk_cancel,
	.read = disk_read_now,
	.is_direct = disk_is_direct,
	.depth = disk_depth,
	.best_read = disk_best_read,
	.prefetch = disk_prefetch,
	.note_tables = disk_note_tables,
	.pause = disk_pause,
	.close = disk_close,
};

/* Opens the data file as a source. The tier reports its failures, because they
   are none of the dataset. */
static int open_local(struct disk_source *d)
{
	char link[64];
	int r;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", d->store.files.data);
	/* A tier that fails is not waited for. */
	r = file_source_open(link, &(struct source_options){ .retry_ms = 1 },
			     NULL, &d->local);
	if (r)
		log_error(d->base.log, "%s: %s", d->store.files.path,
			  strerror(-r));
	/* Opens it again while paths may be used. */
	else
		source_is_direct(d->local);
	return r;
}

static int open_tier(struct disk_source *d, const struct source_options *o,
		     const struct tier_identity *identity)
{
	int r = tier_store_open(&d->store, o->disk, o->disk_size, identity,
				d->base.log);

	if (r)
		return r;
	r = disk_fill_init(&d->fill, &d->store, d->inner,
			   o->memory ? o->memory : SOURCE_MEMORY);
	if (r) {
		tier_store_close(&d->store);
		return r;
	}
	pthread_mutex_init(&d->lock, NULL);
	r = open_local(d);
	if (r)
		free_tier(d);
	return r;
}

int disk_open(struct source *inner, const struct tier_identity *identity,
	      const struct source_options *options, struct log *log,
	      struct source **out)
{
	struct disk_source *d = calloc(1, sizeof(*d));
	int r = -ENOMEM;

	if (!d)
		return r;
	d->base.ops = &disk_ops;
	d->base.log = log;
	d->base.path = strdup(inner->path);
	d->base.stat = inner->stat;
	d->base.inner = inner;
	d->inner = inner;
	if (d->base.path)
		r = open_tier(d, options, identity);
	if (r) {
		free(d->base.path);
		free(d);
		return r;
	}
	*out = &d->base;
	return 0;
}

bool disk_stats(const struct source *source, struct disk_stats *out)
{
	struct disk_source *d;
	uint64_t size;
	int off;

	while (source && source->ops != &disk_ops)
		source = source->inner;
	if (!source)
		return false;
	d = disk_of(source);
	size = disk_size(d);
	off = atomic_load(&d->store.off);
	*out = (struct disk_stats){
		.size = size,
		.present = min_u64(size, atomic_load(&d->store.present) * PAGE),
		.allowed = min_u64(size, atomic_load(&d->store.allowed) * PAGE),
		.hits = atomic_load(&d->hits),
		.misses = atomic_load(&d->misses),
		.filled = atomic_load(&d->fill.filled),
		.skipped = atomic_load(&d->fill.skipped),
		.waiting = disk_fill_waiting(&d->fill),
		.dropped = atomic_load(&d->store.dropped),
		.memory = disk_fill_memory(&d->fill),
		.is_writer = off != TIER_READER,
		.why = tier_off_text(off),
	};
	return true;
}

void disk_stats_add(struct disk_stats *to, const struct disk_stats *s)
{
	to->size += s->size;
	to->present += s->present;
	to->allowed += s->allowed;
	to->hits += s->hits;
	to->misses += s->misses;
	to->filled += s->filled;
	to->skipped += s->skipped;
	to->waiting += s->waiting;
	to->dropped += s->dropped;
	to->memory += s->memory;
	to->is_writer |= s->is_writer;
	if (!to->why || !*to->why)
		to->why = s->why;
}
