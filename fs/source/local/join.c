/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/local/join.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/source/local/file.h"
#include "fs/source/local/net_stats.h"

struct join_piece {
	struct source *source;
	uint64_t base;
};

struct join_read;

struct join_source {
	struct source base;
	struct join_piece *pieces; /* in the order of their offsets */
	size_t num_pieces;
	pthread_mutex_t lock; /* innermost; guards `active` */
	pthread_cond_t idle;
	struct join_read *active;
};

/* The part of a request that one source reads. */
struct join_part {
	struct source_request request;
	struct join_read *read;
	struct source *source;
	bool is_done;
};

struct join_read {
	struct join_source *join;
	struct source_request *caller;
	struct join_read *prev, *next;
	uint64_t begin_ns;
	unsigned users; /* parts, and those who cancel; guarded by join.lock */
	int result;	/* guarded by join.lock */
	bool is_canceled; /* guarded by join.lock */
	unsigned num_parts;
	struct iovec *iov;
	struct join_part parts[];
};

static struct join_source *join_of(const struct source *source)
{
	return (struct join_source *)source;
}

/* --- places --- */

static size_t piece_at(const struct join_source *j, uint64_t off)
{
	size_t low = 0, high = j->num_pieces, mid;

	while (high - low > 1) {
		mid = low + (high - low) / 2;
		if (j->pieces[mid].base <= off)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* Returns where the range of a piece ends, with the gap after it. */
static uint64_t end_of(const struct join_source *j, size_t i)
{
	return i + 1 < j->num_pieces ? j->pieces[i + 1].base : UINT64_MAX;
}

/* Bytes [off, off + size) of one piece; the last `zeros` of them are a gap. */
struct join_place {
	struct join_piece piece;
	uint64_t off;
	uint64_t size;
	uint64_t zeros;
	bool is_last; /* no piece follows */
};

/* Returns the place of the first bytes of a range. */
static struct join_place place_of(const struct join_source *j, uint64_t off,
				  uint64_t size)
{
	size_t i = piece_at(j, off);
	struct join_place p = {
		.piece = j->pieces[i],
		.off = off - j->pieces[i].base,
		.size = min_u64(size, end_of(j, i) - off),
		.is_last = i + 1 == j->num_pieces,
	};
	uint64_t has = (uint64_t)p.piece.source->stat.st_size;

	if (!p.is_last && p.off + p.size > has)
		p.zeros = p.size - (has > p.off ? has - p.off : 0);
	return p;
}

static unsigned count_places(const struct join_source *j, uint64_t off,
			     uint64_t size)
{
	unsigned n = 0;
	uint64_t some;

	for (; size; size -= some, off += some, n++)
		some = place_of(j, off, size).size;
	return n;
}

/* --- memory of requests --- */

/* Writes the pieces of memory of bytes [skip, skip + size) of a request, and
   returns their number. */
static unsigned slice(const struct source_request *q, size_t skip, size_t size,
		      struct iovec *out)
{
	const struct iovec whole = { q->buf, q->size };
	const struct iovec *iov = q->buf ? &whole : q->iov;
	unsigned n = 0;
	size_t some;

	for (; size; iov++) {
		if (skip >= iov->iov_len) {
			skip -= iov->iov_len;
			continue;
		}
		some = min_u64(iov->iov_len - skip, size);
		out[n++] = (struct iovec){ (char *)iov->iov_base + skip, some };
		size -= some;
		skip = 0;
	}
	return n;
}

/* Zeros the last bytes of a part, which lie in a gap. */
static void fill_gap(const struct join_part *part, uint64_t zeros)
{
	const struct source_request *q = &part->request;
	size_t n;

	for (unsigned i = q->iovcnt; zeros; zeros -= n) {
		i--;
		n = min_u64(q->iov[i].iov_len, zeros);
		memset((char *)q->iov[i].iov_base + q->iov[i].iov_len - n, 0,
		       n);
	}
}

/* --- requests --- */

/* Drops a user. The last one ends the request. */
static void drop_read(struct join_read *r, int result)
{
	struct join_source *j = r->join;
	struct source_request *q = r->caller;

	pthread_mutex_lock(&j->lock);
	r->result = r->result ? r->result : result;
	if (--r->users) {
		pthread_mutex_unlock(&j->lock);
		return;
	}
	result = r->result;
	pthread_mutex_unlock(&j->lock);
	counters_item(&j->base.reads, result ? 0 : q->size,
		      (uint64_t)clock_ns() - r->begin_ns);
	q->done(q, result);
	pthread_mutex_lock(&j->lock);
	DL_DELETE(j->active, r);
	if (!j->active)
		pthread_cond_signal(&j->idle);
	pthread_mutex_unlock(&j->lock);
	free(r);
}

static uint64_t gap_of(const struct join_part *part)
{
	const struct source_request *q = &part->request;
	uint64_t has = (uint64_t)part->source->stat.st_size;

	return q->off + q->size > has && q->need == has - q->off
		       ? q->size - q->need
		       : 0;
}

static void part_done(struct source_request *request, int result)
{
	struct join_part *part = request->arg;
	struct join_read *r = part->read;

	if (!result)
		fill_gap(part, gap_of(part));
	pthread_mutex_lock(&r->join->lock);
	part->is_done = true;
	pthread_mutex_unlock(&r->join->lock);
	drop_read(r, result);
}

/* Bytes of a place that must be read. `done` bytes of the request lie before.
 */
static size_t need_of(const struct source_request *q,
		      const struct join_place *p, uint64_t done)
{
	if (!p->is_last)
		return (size_t)(p->size - p->zeros);
	if (!q->need)
		return 0;
	return q->need > done ? (size_t)(q->need - done) : 1;
}

static void add_part(struct join_read *r, const struct join_place *p,
		     uint64_t done, struct iovec *iov)
{
	const struct source_request *q = r->caller;
	struct join_part *part = &r->parts[r->num_parts++];

	part->read = r;
	part->source = p->piece.source;
	part->is_done = p->zeros == p->size;
	part->request = (struct source_request){
		.iov = iov,
		.iovcnt = slice(q, (size_t)done, (size_t)p->size, iov),
		.off = p->off,
		.size = (size_t)p->size,
		.need = need_of(q, p, done),
		.direct = q->direct,
		.must = q->must,
		.done = part_done,
		.arg = part,
	};
}

/* Returns NULL if memory is short. */
static struct join_read *new_read(struct join_source *j,
				  struct source_request *q)
{
	unsigned n = count_places(j, q->off, q->size);
	unsigned num_iov = (q->buf ? 1 : q->iovcnt) + n;
	struct join_read *r = malloc(sizeof(*r) + n * sizeof(*r->parts) +
				     num_iov * sizeof(*r->iov));
	struct iovec *iov;
	struct join_place p;

	if (!r)
		return NULL;
	*r = (struct join_read){
		.join = j,
		.caller = q,
		.begin_ns = (uint64_t)clock_ns(),
		.users = 1,
	};
	r->iov = iov = (struct iovec *)&r->parts[n];
	for (uint64_t done = 0; done < q->size; done += p.size) {
		p = place_of(j, q->off + done, q->size - done);
		add_part(r, &p, done, iov);
		iov += r->parts[r->num_parts - 1].request.iovcnt;
	}
	r->users += r->num_parts;
	pthread_mutex_lock(&j->lock);
	DL_APPEND(j->active, r);
	pthread_mutex_unlock(&j->lock);
	return r;
}

static void join_submit(struct source *source, struct source_request *q)
{
	struct join_source *j = join_of(source);
	struct join_read *r = new_read(j, q);
	struct join_part *part;

	if (!r) {
		q->done(q, -ENOMEM);
		return;
	}
	for (unsigned i = 0; i < r->num_parts; i++) {
		part = &r->parts[i];
		if (!part->is_done) {
			source_submit(part->source, &part->request);
			continue;
		}
		fill_gap(part, part->request.size);
		drop_read(r, 0);
	}
	drop_read(r, 0);
}

/* Returns the read of a request, or any one if that is NULL, with one more
   user. NULL: it has ended. */
static struct join_read *use_read(struct join_source *j,
				  const struct source_request *q)
{
	struct join_read *r;

	scoped_lock(&j->lock);
	DL_FOREACH(j->active, r)
	{
		if (r->users && !r->is_canceled && (!q || r->caller == q))
			break;
	}
	if (r) {
		r->users++;
		r->is_canceled = true;
	}
	return r;
}

static bool is_done(struct join_source *j, const struct join_part *part)
{
	scoped_lock(&j->lock);
	return part->is_done;
}

static void cancel_read(struct join_source *j, struct join_read *r)
{
	struct join_part *part = r->parts;

	for (unsigned i = 0; i < r->num_parts; i++, part++) {
		if (!is_done(j, part))
			source_cancel(part->source, &part->request);
	}
	drop_read(r, 0);
}

static void join_cancel(struct source *source, struct source_request *q)
{
	struct join_source *j = join_of(source);
	struct join_read *r = use_read(j, q);

	if (r)
		cancel_read(j, r);
}

static int join_read(struct source *source, void *buf, size_t size,
		     uint64_t off)
{
	const struct join_source *j = join_of(source);
	uint8_t *to = buf;
	struct join_place p;
	int r = 0;

	for (; size && !r; size -= p.size, off += p.size, to += p.size) {
		p = place_of(j, off, size);
		if (p.size > p.zeros)
			r = source_read(p.piece.source, to, p.size - p.zeros,
					p.off);
		memset(to + p.size - p.zeros, 0, p.zeros);
	}
	return r;
}

/* --- hints and facts --- */

static void join_prefetch(struct source *source, uint64_t off, uint64_t size)
{
	const struct join_source *j = join_of(source);
	struct join_place p;

	if (off >= (uint64_t)source->stat.st_size)
		return;
	size = min_u64(size, (uint64_t)source->stat.st_size - off);
	for (; size; size -= p.size, off += p.size) {
		p = place_of(j, off, size);
		source_prefetch(p.piece.source, p.off, p.size - p.zeros);
	}
}

static bool join_is_direct(const struct source *source)
{
	const struct join_source *j = join_of(source);
	bool all = true;

	for (size_t i = 0; i < j->num_pieces; i++)
		all &= source_is_direct(j->pieces[i].source);
	return all;
}

/* Readers of one source at a time get its depth, others no less. */
static unsigned join_depth(const struct source *source)
{
	const struct join_source *j = join_of(source);
	unsigned depth = 0;

	for (size_t i = 0; i < j->num_pieces; i++)
		depth = (unsigned)max_u64(depth,
					  source_depth(j->pieces[i].source));
	return depth;
}

static size_t join_best_read(const struct source *source)
{
	const struct join_source *j = join_of(source);
	size_t best = 0;

	for (size_t i = 0; i < j->num_pieces; i++)
		best = max_u64(best, source_best_read(j->pieces[i].source));
	return best;
}

static int join_descriptor(const struct source *source, uint64_t off,
			   uint64_t *at, uint64_t *left)
{
	const struct join_source *j = join_of(source);
	size_t i = piece_at(j, off);
	int fd = source_descriptor(j->pieces[i].source, off - j->pieces[i].base,
				   at, left);

	*left = min_u64(*left, end_of(j, i) - off);
	return fd;
}

/* Adds up figures; of times it takes the longest. */
static void add_net_stats(struct source_net_stats *to,
			  const struct source_net_stats *s)
{
	to->rate += s->rate;
	to->latency_ns = max_u64(to->latency_ns, s->latency_ns);
	to->latency_p50_ns = max_u64(to->latency_p50_ns, s->latency_p50_ns);
	to->latency_p99_ns = max_u64(to->latency_p99_ns, s->latency_p99_ns);
	to->in_flight += s->in_flight;
	to->waiting += s->waiting;
	to->depth += s->depth;
	to->target_bytes += s->target_bytes;
	to->requests += s->requests;
	to->connections += s->connections;
	to->retries += s->retries;
	to->stalls += s->stalls;
	to->hedges += s->hedges;
	to->hedge_bytes += s->hedge_bytes;
	to->throttled += s->throttled;
	to->wire_bytes += s->wire_bytes;
	to->payload_bytes += s->payload_bytes;
	to->failures += s->failures;
	to->is_stale |= s->is_stale;
	to->is_out |= s->is_out;
	to->last_error = s->last_error ? s->last_error : to->last_error;
}

static void join_pause(struct source *source)
{
	const struct join_source *j = join_of(source);

	for (size_t i = 0; i < j->num_pieces; i++)
		source_pause(j->pieces[i].source);
}

static bool join_needs_program(const struct source *source)
{
	const struct join_source *j = join_of(source);

	for (size_t i = 0; i < j->num_pieces; i++) {
		if (source_needs_program(j->pieces[i].source))
			return true;
	}
	return false;
}

static void join_halt(struct source *source)
{
	const struct join_source *j = join_of(source);

	for (size_t i = 0; i < j->num_pieces; i++)
		source_halt(j->pieces[i].source);
}

static void join_net_stats(const struct source *source,
			   struct source_net_stats *out)
{
	const struct join_source *j = join_of(source);
	struct source_net_stats one;

	*out = (struct source_net_stats){ 0 };
	for (size_t i = 0; i < j->num_pieces; i++) {
		if (source_net_stats(j->pieces[i].source, &one))
			add_net_stats(out, &one);
	}
}

/* --- opening and closing --- */

/* The sources remain open: waits until they have ended all requests. */
static void join_close(struct source *source)
{
	struct join_source *j = join_of(source);
	struct join_read *r;

	while ((r = use_read(j, NULL)))
		cancel_read(j, r);
	pthread_mutex_lock(&j->lock);
	while (j->active)
		pthread_cond_wait(&j->idle, &j->lock);
	pthread_mutex_unlock(&j->lock);
	pthread_cond_destroy(&j->idle);
	free(j->pieces);
	pthread_mutex_destroy(&j->lock);
}

static const struct source_ops join_ops = {
	.name = "joined",
	.submit = join_submit,
	.cancel = join_cancel,
	.read = join_read,
	.is_direct = join_is_direct,
	.depth = join_depth,
	.best_read = join_best_read,
	.prefetch = join_prefetch,
	.descriptor = join_descriptor,
	.pause = join_pause,
	.needs_program = join_needs_program,
	.halt = join_halt,
	.net_stats = join_net_stats,
	.close = join_close,
};

/* Restricts `all` to users who may also read this file. If the file has
   another owner or group, users of one class of `all` may be of any class
   of the file. */
static void restrict_stat(struct stat *all, const struct stat *st)
{
	mode_t mode = st->st_mode;
	mode_t other = mode & mode >> 3 & mode >> 6 & 0007;

	if (st->st_uid != all->st_uid || st->st_gid != all->st_gid)
		mode = (mode & S_IFMT) | other << 6 | other << 3 | other;
	all->st_mode &= mode;
	if (st->st_mtim.tv_sec > all->st_mtim.tv_sec)
		all->st_mtim = st->st_mtim;
}

static void set_stat(struct source *joined, struct source *const *sources,
		     const uint64_t *bases, size_t n)
{
	struct stat *all = &joined->stat;

	*all = sources[0]->stat;
	for (size_t i = 0; i < n; i++)
		restrict_stat(all, &sources[i]->stat);
	all->st_size = (off_t)bases[n - 1] + sources[n - 1]->stat.st_size;
}

static int join_any(struct source *const *sources, const uint64_t *bases,
		    size_t n, const char *path, struct source **out)
{
	struct join_source *j = calloc(1, sizeof(*j));
	struct join_piece *pieces = calloc(n, sizeof(*pieces));
	char *name = strdup(path);

	if (!j || !pieces || !name) {
		free(j);
		free(pieces);
		free(name);
		return -ENOMEM;
	}
	j->base.ops = &join_ops;
	j->base.path = name;
	j->base.log = sources[0]->log;
	j->pieces = pieces;
	j->num_pieces = n;
	for (size_t i = 0; i < n; i++)
		pieces[i] = (struct join_piece){ sources[i], bases[i] };
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->idle, NULL);
	*out = &j->base;
	return 0;
}

/* Files share their threads. */
int source_join(struct source *const *sources, const uint64_t *bases, size_t n,
		const char *path, struct source **out)
{
	bool all_files = true;
	int r;

	for (size_t i = 0; i < n; i++)
		all_files &= file_source_is(sources[i]);
	r = all_files ? file_source_join(sources, bases, n, path, out)
		      : join_any(sources, bases, n, path, out);
	if (!r)
		set_stat(*out, sources, bases, n);
	return r;
}
