/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/disk_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

enum { PAGE = TIER_PAGE };

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
	uint64_t from = first * PAGE, to = min_u64(end * PAGE, disk_size(d));

	if (tier_store_wants(&d->store))
		disk_fill_put(&d->fill, first, r->iov, (size_t)(from - r->base),
			      (size_t)(to - from));
}

/* The whole pages within the bytes of a part. */
static void store_whole_pages(const struct disk_part *part)
{
	uint64_t size = disk_size(part->read->d);
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
	uint64_t to = min_u64(bad->end * PAGE, disk_size(d));
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
		bad = disk_check_pages(d, &part->run, request->iov, 0,
				       r->sums + (part->run.first - r->first));
	if (bad.first < bad.end) {
		read_again(part, &bad);
		return;
	}
	atomic_fetch_add(&d->hits, part->to - part->from);
	finish_part(part, 0);
}

/* --- requests --- */

/* Makes r->iov, the memory of whole pages. */
static bool set_memory(struct disk_read *r, const struct disk_span *span)
{
	const struct source_request *q = r->caller;
	const struct iovec whole = { q->buf, q->size };
	size_t head = span->off % PAGE, tail = 0;
	unsigned n = q->buf ? 1 : q->iovcnt;

	if (span->end < disk_size(r->d))
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
	uint64_t to = min_u64(run->end * PAGE, disk_size(d));
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

static bool all_are_missing(const struct disk_run *runs, unsigned num)
{
	return num == 1 && !runs->is_local;
}

void disk_read_submit(struct disk_source *d, struct source_request *q)
{
	struct disk_read *r = NULL;
	struct disk_run runs[DISK_RUNS_MAX];
	struct disk_span span;
	uint32_t *sums;
	unsigned num;

	if (!range_ok(q->off, q->need ? q->need : q->size, disk_size(d))) {
		disk_past_end(d, q->size, q->off);
		q->done(q, -EIO);
		return;
	}
	disk_start(d);
	span = disk_span_of(d, q->off, q->size);
	if (span.off == span.end) {
		q->done(q, 0);
		return;
	}
	sums = malloc(span.n * sizeof(*sums));
	if (sums) {
		tier_store_find(&d->store, span.first, span.n, sums);
		num = disk_find_runs(sums, span.n, span.first, runs);
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

void disk_read_cancel(struct disk_source *d, struct source_request *q)
{
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
