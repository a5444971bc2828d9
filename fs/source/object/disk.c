/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/source/local/file.h"
#include "fs/source/object/disk_fill.h"
#include "fs/source/tier/store.h"

typedef unsigned long long ull;

enum {
	PAGE = TIER_PAGE,
	/* Parts of a request that are read from different places. */
	PARTS_MAX = 32,
	/* Fewer present pages between missing ones are read with them. */
	BRIDGE = 4,
	/* Bytes of source_read() that are handled at once. */
	SYNC_MOST = 1 << 20,
};

struct disk_source {
	struct source base;
	struct source *inner;
	struct source *local; /* the data file */
	struct tier_store store;
	struct disk_fill fill;
	atomic_bool is_started;
	atomic_bool is_closing;
	atomic_uint_fast64_t hits, misses;
	pthread_mutex_t lock; /* guards the list, and `refs` of its reads */
	struct disk_read *reads;
};

/* Pages [first, end) of a request, from one place. */
struct disk_run {
	uint64_t first, end;
	bool is_local;
};

struct disk_part {
	struct source_request request;
	struct source_request again; /* of damaged pages, to the inner source */
	struct disk_read *read;
	struct disk_run run;
	uint64_t from, to;    /* bytes of the object */
	struct iovec *pieces; /* memory for them */
};

/* A request of which some bytes are read from the tier, or will be stored. */
struct disk_read {
	struct disk_source *d;
	struct source_request *caller;
	struct disk_read *prev, *next;
	unsigned refs;
	atomic_uint pending; /* parts, and the submitter */
	atomic_int result;
	uint64_t first;	   /* page of sums[0] */
	uint64_t base;	   /* offset of iov's first byte */
	struct iovec *iov; /* the caller's memory, within whole pages */
	unsigned iovcnt;
	struct iovec *pieces; /* of the parts */
	uint32_t *sums;	      /* per page */
	uint8_t *edges;	      /* the rest of the first and the last page */
	unsigned num_parts;
	struct disk_part parts[];
};

static struct disk_source *disk_of(const struct source *source)
{
	return (struct disk_source *)source;
}

static uint64_t size_of(const struct disk_source *d)
{
	return d->store.index.size;
}

static void start(struct disk_source *d)
{
	if (!atomic_load_explicit(&d->is_started, memory_order_relaxed) &&
	    !atomic_exchange(&d->is_started, true))
		disk_fill_start(&d->fill);
}

/* --- which pages come from where --- */

/* Returns the end of the pages from `at` on that are present, or absent. */
static size_t same_until(const uint32_t *sums, size_t n, size_t at)
{
	bool is_present = sums[at] != 0;

	while (at < n && (sums[at] != 0) == is_present)
		at++;
	return at;
}

/* Extends missing pages beyond gaps that are too small for a request. */
static size_t missing_until(const uint32_t *sums, size_t n, size_t at)
{
	size_t end = same_until(sums, n, at), gap;

	while (end < n) {
		gap = same_until(sums, n, end);
		if (gap - end > BRIDGE || gap == n)
			break;
		end = same_until(sums, n, gap);
	}
	return end;
}

static unsigned find_runs(const uint32_t *sums, size_t n, uint64_t first,
			  struct disk_run runs[PARTS_MAX])
{
	unsigned num = 0;
	size_t at = 0, end;
	bool is_local;

	for (; at < n; at = end) {
		is_local = sums[at] != 0;
		end = is_local ? same_until(sums, n, at)
			       : missing_until(sums, n, at);
		if (num == PARTS_MAX - 1) {
			is_local &= end == n;
			end = n;
		}
		runs[num++] =
			(struct disk_run){ first + at, first + end, is_local };
	}
	return num;
}

/* --- checking --- */

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

/*
 * Compares pages in memory from w on with their checksums. Returns the smallest
 * run that contains all that differ.
 */
static struct disk_run check_pages(struct disk_source *d,
				   const struct disk_run *run,
				   struct disk_walk w, const uint32_t *sums)
{
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

/* --- parts of a request --- */

/* Writes the memory of `size` bytes from byte `skip` on to `out`, which may be
   iov itself. Returns the number of pieces. */
static unsigned slice(const struct iovec *iov, size_t skip, size_t size,
		      struct iovec *out)
{
	unsigned n = 0;
	size_t len;

	for (; size; iov++) {
		if (skip >= iov->iov_len) {
			skip -= iov->iov_len;
			continue;
		}
		len = min_u64(iov->iov_len - skip, size);
		out[n++] =
			(struct iovec){ (uint8_t *)iov->iov_base + skip, len };
		size -= len;
		skip = 0;
	}
	return n;
}

static void free_read(struct disk_read *r)
{
	free(r->iov);
	free(r->pieces);
	free(r->sums);
	free(r->edges);
	free(r);
}

static void unref_read(struct disk_read *r)
{
	struct disk_source *d = r->d;
	bool is_last;

	pthread_mutex_lock(&d->lock);
	is_last = !--r->refs;
	pthread_mutex_unlock(&d->lock);
	if (is_last)
		free_read(r);
}

/* A part, or the submitter, has finished. */
static void drop_pending(struct disk_read *r)
{
	struct source_request *q = r->caller;
	int result;

	if (atomic_fetch_sub(&r->pending, 1) != 1)
		return;
	pthread_mutex_lock(&r->d->lock);
	DL_DELETE(r->d->reads, r);
	pthread_mutex_unlock(&r->d->lock);
	result = atomic_load(&r->result);
	unref_read(r);
	q->done(q, result);
}

static void finish_part(struct disk_part *part, int result)
{
	int none = 0;

	if (result)
		atomic_compare_exchange_strong(&part->read->result, &none,
					       result);
	drop_pending(part->read);
}

/* Queues those whole pages of a part that were missing. */
static void store_part(const struct disk_part *part, uint64_t first,
		       uint64_t end)
{
	struct disk_read *r = part->read;
	struct disk_source *d = r->d;
	uint64_t from = first * PAGE, to = min_u64(end * PAGE, size_of(d));

	if (tier_store_wants(&d->store))
		disk_fill_put(&d->fill, first, r->iov, (size_t)(from - r->base),
			      (size_t)(to - from));
}

/* The whole pages within the bytes of a part. */
static void store_whole_pages(const struct disk_part *part)
{
	uint64_t size = size_of(part->read->d);
	uint64_t first = (part->from + PAGE - 1) / PAGE;
	uint64_t end = part->to == size ? part->run.end : part->to / PAGE;

	if (first < end)
		store_part(part, first, end);
}

static void inner_done(struct source_request *request, int result)
{
	struct disk_part *part = request->arg;
	struct disk_source *d = part->read->d;

	disk_fill_idle(&d->fill);
	if (!result)
		store_whole_pages(part);
	finish_part(part, result);
}

static void again_done(struct source_request *request, int result)
{
	struct disk_part *part = request->arg;

	disk_fill_idle(&part->read->d->fill);
	if (!result)
		store_part(part, request->off / PAGE,
			   (request->off + request->size + PAGE - 1) / PAGE);
	finish_part(part, result);
}

/* Reads damaged pages from the inner source, into the same memory. */
static void read_again(struct disk_part *part, const struct disk_run *bad)
{
	struct disk_read *r = part->read;
	struct disk_source *d = r->d;
	uint64_t from = bad->first * PAGE;
	uint64_t to = min_u64(bad->end * PAGE, size_of(d));
	/* The part's own pieces are not needed any more. */
	struct iovec *iov = part->pieces;
	unsigned n = slice(iov, (size_t)(from - part->from),
			   (size_t)(to - from), iov);

	part->again = (struct source_request){
		.iov = iov,
		.iovcnt = n,
		.off = from,
		.size = (size_t)(to - from),
		.must = r->caller->must,
		.done = again_done,
		.arg = part,
	};
	atomic_fetch_add(&d->misses, to - from);
	disk_fill_busy(&d->fill);
	source_submit(d->inner, &part->again);
}

static void local_done(struct source_request *request, int result)
{
	struct disk_part *part = request->arg;
	struct disk_read *r = part->read;
	struct disk_source *d = r->d;
	struct disk_run bad = part->run;

	if (result == -ECANCELED || atomic_load(&d->is_closing)) {
		finish_part(part, -ECANCELED);
		return;
	}
	if (result)
		tier_store_failed(&d->store, part->run.first, part->run.end,
				  result);
	else
		bad = check_pages(d, &part->run,
				  (struct disk_walk){ request->iov, 0 },
				  r->sums + (part->run.first - r->first));
	if (bad.first < bad.end) {
		read_again(part, &bad);
		return;
	}
	atomic_fetch_add(&d->hits, part->to - part->from);
	finish_part(part, 0);
}

/* --- requests --- */

/* The bytes of a request that exist, and their pages. */
struct disk_span {
	uint64_t off, end;
	uint64_t first;
	size_t n;
};

static struct disk_span span_of(const struct disk_source *d, uint64_t off,
				uint64_t size)
{
	uint64_t end = off + min_u64(size, size_of(d) - off);
	uint64_t first = off / PAGE;

	return (struct disk_span){ off, end, first,
				   (size_t)((end + PAGE - 1) / PAGE - first) };
}

/* Makes r->iov, the memory of whole pages. */
static bool set_memory(struct disk_read *r, const struct disk_span *span)
{
	const struct source_request *q = r->caller;
	const struct iovec whole = { q->buf, q->size };
	size_t head = span->off % PAGE, tail = 0;
	unsigned n = q->buf ? 1 : q->iovcnt;

	if (span->end < size_of(r->d))
		tail = (size_t)(align_up(span->end, PAGE) - span->end);
	r->base = span->off - head;
	r->iov = malloc((n + 2) * sizeof(*r->iov));
	if (head || tail)
		r->edges = malloc(2 * PAGE);
	if (!r->iov || ((head || tail) && !r->edges))
		return false;
	if (head)
		r->iov[r->iovcnt++] = (struct iovec){ r->edges, head };
	memcpy(r->iov + r->iovcnt, q->buf ? &whole : q->iov,
	       n * sizeof(*r->iov));
	r->iovcnt += n;
	if (tail)
		r->iov[r->iovcnt++] = (struct iovec){ r->edges + PAGE, tail };
	return true;
}

static void set_part(struct disk_read *r, struct disk_part *part,
		     const struct disk_span *span, const struct disk_run *run,
		     struct iovec *pieces)
{
	struct disk_source *d = r->d;
	uint64_t from = run->first * PAGE;
	uint64_t to = min_u64(run->end * PAGE, size_of(d));
	bool is_direct = r->caller->direct;
	size_t size;

	/* Whole pages, if they are compared or stored. */
	if (!run->is_local && !tier_store_wants(&d->store)) {
		from = max_u64(from, span->off);
		to = min_u64(to, span->end);
	}
	size = (size_t)(to - from);
	*part = (struct disk_part){
		.read = r,
		.run = *run,
		.from = from,
		.to = to,
		.pieces = pieces,
	};
	part->request = (struct source_request){
		.iov = pieces,
		.off = from,
		.size = is_direct ? (size_t)align_up(size, PAGE) : size,
		.need = size,
		.direct = is_direct,
		.must = r->caller->must,
		.done = run->is_local ? local_done : inner_done,
		.arg = part,
	};
	part->request.iovcnt = slice(r->iov, (size_t)(from - r->base),
				     part->request.size, pieces);
}

/* Takes the ownership of `sums`. NULL: memory is short. */
static struct disk_read *new_read(struct disk_source *d,
				  struct source_request *q,
				  const struct disk_span *span, uint32_t *sums,
				  const struct disk_run *runs, unsigned num)
{
	struct disk_read *r = calloc(1, sizeof(*r) + num * sizeof(*r->parts));
	struct iovec *pieces;

	if (!r) {
		free(sums);
		return NULL;
	}
	r->d = d;
	r->caller = q;
	r->refs = 1;
	r->first = span->first;
	r->sums = sums;
	r->num_parts = num;
	atomic_store(&r->pending, num + 1);
	if (set_memory(r, span))
		r->pieces = malloc((r->iovcnt + num) * sizeof(*r->pieces));
	if (!r->pieces) {
		free_read(r);
		return NULL;
	}
	pieces = r->pieces;
	for (unsigned i = 0; i < num; i++) {
		set_part(r, &r->parts[i], span, &runs[i], pieces);
		pieces += r->parts[i].request.iovcnt;
	}
	return r;
}

static void submit_read(struct disk_read *r)
{
	struct disk_source *d = r->d;
	struct disk_part *part;

	pthread_mutex_lock(&d->lock);
	DL_APPEND(d->reads, r);
	pthread_mutex_unlock(&d->lock);
	/* The server takes longer than the disk. */
	for (unsigned i = 0; i < r->num_parts; i++) {
		part = &r->parts[i];
		if (part->run.is_local)
			continue;
		atomic_fetch_add(&d->misses, part->to - part->from);
		disk_fill_busy(&d->fill);
		source_submit(d->inner, &part->request);
	}
	for (unsigned i = 0; i < r->num_parts; i++)
		if (r->parts[i].run.is_local)
			source_submit(d->local, &r->parts[i].request);
	drop_pending(r);
}

static void log_past_end(const struct disk_source *d, size_t size, uint64_t off)
{
	log_error(d->base.log, "%s: read of %zu bytes at %llu: %s",
		  d->base.path, size, (ull)off, strerror(EIO));
}

static bool all_are_missing(const struct disk_run *runs, unsigned num)
{
	return num == 1 && !runs->is_local;
}

static void disk_submit(struct source *source, struct source_request *q)
{
	struct disk_source *d = disk_of(source);
	struct disk_read *r = NULL;
	struct disk_run runs[PARTS_MAX];
	struct disk_span span;
	uint32_t *sums;
	unsigned num;

	if (!range_ok(q->off, q->need ? q->need : q->size, size_of(d))) {
		log_past_end(d, q->size, q->off);
		q->done(q, -EIO);
		return;
	}
	start(d);
	span = span_of(d, q->off, q->size);
	if (span.off == span.end) {
		q->done(q, 0);
		return;
	}
	sums = malloc(span.n * sizeof(*sums));
	if (sums) {
		tier_store_find(&d->store, span.first, span.n, sums);
		num = find_runs(sums, span.n, span.first, runs);
		if (all_are_missing(runs, num) && !tier_store_wants(&d->store))
			free(sums);
		else
			r = new_read(d, q, &span, sums, runs, num);
	}
	if (r) {
		submit_read(r);
		return;
	}
	atomic_fetch_add(&d->misses, span.end - span.off);
	source_submit(d->inner, q);
}

/* Finds the read of a request, and keeps it from being freed. */
static struct disk_read *ref_read(struct disk_source *d,
				  const struct source_request *q)
{
	struct disk_read *r;
	scoped_lock(&d->lock);

	DL_FOREACH(d->reads, r)
	if (r->caller == q)
		break;
	if (r)
		r->refs++;
	return r;
}

static void disk_cancel(struct source *source, struct source_request *q)
{
	struct disk_source *d = disk_of(source);
	struct disk_read *r = ref_read(d, q);

	if (!r) {
		source_cancel(d->inner, q);
		return;
	}
	for (unsigned i = 0; i < r->num_parts; i++)
		source_cancel(r->parts[i].run.is_local ? d->local : d->inner,
			      &r->parts[i].request);
	unref_read(r);
}

/* --- reads on the caller's thread --- */

/* Reads pages from the inner source and stores them. */
static int read_missing(struct disk_source *d, const struct disk_run *run,
			uint8_t *bytes)
{
	uint64_t from = run->first * PAGE;
	size_t size = (size_t)(min_u64(run->end * PAGE, size_of(d)) - from);
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
	size_t size = (size_t)(min_u64(run->end * PAGE, size_of(d)) - from);
	const struct iovec iov = { bytes, size };
	struct disk_run bad = *run;
	int r = source_read(d->local, bytes, size, from);

	if (r)
		tier_store_failed(&d->store, run->first, run->end, r);
	else
		bad = check_pages(d, run, (struct disk_walk){ &iov, 0 }, sums);
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
	struct disk_run runs[PARTS_MAX];
	uint8_t *at;
	unsigned num;
	size_t n;
	int r = 0;

	tier_store_find(&d->store, span->first, span->n, sums);
	num = find_runs(sums, span->n, span->first, runs);
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

	if (!range_ok(off, size, size_of(d))) {
		log_past_end(d, size, off);
		return -EIO;
	}
	start(d);
	for (uint64_t end = off + size; off < end && !r; off = span.end) {
		span = span_of(d, off,
			       min_u64(end, (off / SYNC_MOST + 1) * SYNC_MOST) -
				       off);
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

	if (off + size != size_of(d))
		size -= size % PAGE;
	if (size && tier_store_wants(&d->store))
		disk_fill_put(&d->fill, off / PAGE, &iov, 0, size);
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

	if (off >= size_of(d))
		return;
	end = off + min_u64(size, size_of(d) - off);
	for (; off < end; off = span.end) {
		span = span_of(d, off, min_u64(end - off, SYNC_MOST - PAGE));
		tier_store_find(&d->store, span.first, span.n, sums);
		if (same_until(sums, span.n, 0) < span.n || !sums[0])
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
	size = size_of(d);
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
