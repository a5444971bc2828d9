/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/verify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/crc32c.h"
#include "fs/data/dataset/sums.h"

typedef unsigned long long ull;

enum {
	BLOCK = SUMS_BLOCK,
	/* The most bytes that are read and compared at once. */
	UNIT = VERIFY_MEMORY_LEAST,
	/* As many as a local file has threads, and requests that a link has in
	   flight. */
	BUFFERS_LOCAL = 16,
	BUFFERS_MAX = 64,
};

/* Facts about a block. */
enum mark {
	MARK_RIGHT = 1,	 /* was right when it was read */
	MARK_LOGGED = 2, /* was damaged; there is a message */
};

/* The checksums of one file, and facts about its blocks. */
struct checked {
	struct sums *sums;
	const char *path;    /* of the source that owns this */
	atomic_uchar *marks; /* per block */
	atomic_uint_fast64_t bytes, bad_blocks;
};

struct verify_piece {
	struct checked *file;
	uint64_t base; /* offset of its first byte in the source */
};

struct verify_read;

struct verify_source {
	struct source base;
	struct source *inner;
	struct verify_piece *pieces; /* in the order of their offsets */
	size_t num_pieces;
	struct checked own; /* unused if there are several files */
	atomic_bool closing;
	pthread_mutex_t lock; /* innermost; guards the members below */
	struct verify_read *waiting;
	uint8_t *idle[BUFFERS_MAX];
	unsigned num_idle;
	unsigned num_used; /* buffers of reads */
	unsigned most;	   /* buffers that may be used */
	unsigned keep;	   /* buffers that may be idle */
};

/* The read of some blocks of a file. */
struct unit {
	struct checked *file;
	uint64_t from, to; /* offsets in the file: the bytes that are read */
	size_t size;	   /* bytes of them that the request needs next */
};

enum state { SUBMITTING, PENDING, DONE };

/* A request whose blocks must be compared, UNIT bytes at a time. */
struct verify_read {
	struct source_request request; /* of `unit` */
	struct unit unit;
	struct verify_source *v;
	struct source_request *caller;
	struct verify_read *prev, *next; /* in `waiting` */
	uint8_t *buffer;
	size_t got; /* bytes of the caller's request */
	int result; /* of the unit */
	atomic_int state;
};

static struct verify_source *verify_of(const struct source *source)
{
	return (struct verify_source *)source;
}

/* --- places --- */

/* A byte of the source. */
struct verify_place {
	struct checked *file;
	uint64_t off;  /* in the file, or past its end */
	uint64_t left; /* bytes to where the next file begins */
};

static struct verify_place place_of(const struct verify_source *v, uint64_t off)
{
	size_t low = 0, high = v->num_pieces, mid;
	const struct verify_piece *piece;

	while (high - low > 1) {
		mid = low + (high - low) / 2;
		if (v->pieces[mid].base <= off)
			low = mid;
		else
			high = mid;
	}
	piece = &v->pieces[low];
	return (struct verify_place){ piece->file, off - piece->base,
				      high == v->num_pieces
					      ? UINT64_MAX
					      : piece[1].base - off };
}

static bool is_past_end(const struct verify_place *at)
{
	return at->off >= at->file->sums->size;
}

static bool is_marked_right(struct checked *file, uint64_t block)
{
	return atomic_load_explicit(&file->marks[block], memory_order_acquire) &
	       MARK_RIGHT;
}

/* Returns whether a request may go to the page cache. */
static bool is_right(const struct verify_source *v,
		     const struct source_request *q)
{
	uint64_t n;
	struct verify_place at;

	if (q->direct)
		return false;
	for (uint64_t done = 0; done < q->size; done += n) {
		at = place_of(v, q->off + done);
		if (!is_past_end(&at) &&
		    !is_marked_right(at.file, at.off / BLOCK))
			return false;
		n = min_u64(at.left, BLOCK - at.off % BLOCK);
	}
	return true;
}

/* The blocks at a place that the next `size` bytes need. */
static struct unit unit_at(const struct verify_place *at, uint64_t size)
{
	uint64_t from = at->off / BLOCK * BLOCK, end = at->file->sums->size;
	uint64_t to = min_u64(end - from, UNIT) + from;

	if (size < to - at->off)
		to = min_u64(to, align_up(at->off + size, BLOCK));
	return (struct unit){
		.file = at->file,
		.from = from,
		.to = to,
		.size = (size_t)min_u64(size, to - at->off),
	};
}

/* Copies bytes into the caller's request, from `got` on. NULL: zeros. */
static void deliver(struct verify_read *r, const uint8_t *bytes, size_t size)
{
	const struct source_request *q = r->caller;
	const struct iovec whole = { q->buf, q->size };
	const struct iovec *iov = q->buf ? &whole : q->iov;
	size_t skip = r->got, n;
	uint8_t *to;

	r->got += size;
	for (; size; iov++) {
		if (skip >= iov->iov_len) {
			skip -= iov->iov_len;
			continue;
		}
		n = min_u64(iov->iov_len - skip, size);
		to = (uint8_t *)iov->iov_base + skip;
		if (bytes)
			memcpy(to, bytes, n);
		else
			memset(to, 0, n);
		bytes = bytes ? bytes + n : NULL;
		size -= n;
		skip = 0;
	}
}

/* --- comparing --- */

/*
 * Logs and counts a damaged block once. It is compared again if it is read
 * again, because the file may be restored, or a cable may be at fault. A
 * warning, because the reader of a sample reports its error.
 */
static void block_is_damaged(struct verify_source *v, struct checked *file,
			     uint64_t block, uint32_t crc)
{
	atomic_uchar *marks = &file->marks[block];
	char why[SUMS_WHY_SIZE];

	if (atomic_fetch_or(marks, MARK_LOGGED) & MARK_LOGGED)
		return;
	atomic_fetch_add(&file->bad_blocks, 1);
	sums_explain(file->sums, block, crc, why);
	log_warning(v->base.log,
		    "%s: %s: run fsck.beton, or restore the file from a copy",
		    file->path, why);
}

static int compare_block(struct verify_source *v, struct checked *file,
			 uint64_t block, const uint8_t *bytes, size_t size)
{
	uint32_t crc = crc32c(0, bytes, size);

	if (crc != file->sums->crc[block]) {
		block_is_damaged(v, file, block, crc);
		return -BETON_ECORRUPT;
	}
	atomic_fetch_or_explicit(&file->marks[block], MARK_RIGHT,
				 memory_order_release);
	atomic_fetch_add(&file->bytes, size);
	return 0;
}

static int compare_unit(struct verify_source *v, const struct unit *u,
			const uint8_t *bytes)
{
	size_t n;
	int r = 0;

	for (uint64_t at = u->from; at < u->to && !r; at += n, bytes += n) {
		n = (size_t)min_u64(BLOCK, u->to - at);
		r = compare_block(v, u->file, at / BLOCK, bytes, n);
	}
	return r;
}

/* --- reads --- */

static void release_buffer(struct verify_source *v, uint8_t *buffer)
{
	scoped_lock(&v->lock);
	v->num_used--;
	if (v->num_idle < v->keep)
		v->idle[v->num_idle++] = buffer;
	else
		free(buffer);
}

static void finish_read(struct verify_read *r, int result)
{
	struct source_request *q = r->caller;

	if (r->buffer)
		release_buffer(r->v, r->buffer);
	free(r);
	q->done(q, result);
}

static void unit_done(struct source_request *request, int result);

/* Ends a read of which the file has no more bytes. */
static void finish_at_end(struct verify_read *r)
{
	const struct source_request *q = r->caller;
	bool is_enough = r->got >= (q->need ? q->need : q->size);

	if (!is_enough)
		log_error(r->v->base.log, "%s: read of %zu bytes at %llu: %s",
			  r->v->base.path, q->size, (ull)q->off, strerror(EIO));
	finish_read(r, is_enough ? 0 : -EIO);
}

/* Sets up the next unit. Returns false if the read has ended. */
static bool next_unit(struct verify_read *r)
{
	struct verify_source *v = r->v;
	const struct source_request *q = r->caller;
	struct verify_place at = place_of(v, q->off + r->got);
	struct unit *u = &r->unit;

	while (r->got < q->size && is_past_end(&at) && at.left != UINT64_MAX) {
		deliver(r, NULL, min_u64(at.left, q->size - r->got));
		at = place_of(v, q->off + r->got);
	}
	if (r->got == q->size || is_past_end(&at)) {
		finish_at_end(r);
		return false;
	}
	if (atomic_load(&v->closing)) {
		finish_read(r, -ECANCELED);
		return false;
	}
	*u = unit_at(&at, q->size - r->got);
	r->request = (struct source_request){
		.buf = r->buffer,
		.off = q->off + r->got - (at.off - u->from),
		.size = (size_t)align_up(u->to - u->from, SOURCE_ALIGN),
		.need = (size_t)(u->to - u->from),
		.direct = q->direct,
		.must = q->must,
		.done = unit_done,
		.arg = r,
	};
	if (!q->direct)
		r->request.size = r->request.need;
	return true;
}

/* Takes the bytes that were read. Returns false if the read has ended. */
static bool take_unit(struct verify_read *r)
{
	const struct unit *u = &r->unit;
	uint64_t at = r->caller->off + r->got - r->request.off;
	int e = r->result;

	if (!e)
		e = compare_unit(r->v, u, r->buffer);
	if (e) {
		finish_read(r, e);
		return false;
	}
	deliver(r, r->buffer + at, u->size);
	return true;
}

/* Reads until a unit has to wait for the device, or the read has ended. A unit
   that is in the page cache is done before source_submit() returns: the loop
   then continues here, so that the stack does not grow. */
static void run_read(struct verify_read *r)
{
	while (next_unit(r)) {
		atomic_store(&r->state, SUBMITTING);
		source_submit(r->v->inner, &r->request);
		if (atomic_exchange(&r->state, PENDING) != DONE)
			return;
		if (!take_unit(r))
			return;
	}
}

/* Sets r->buffer. Returns false if there is none. The caller holds the lock. */
static bool take_buffer(struct verify_source *v, struct verify_read *r)
{
	if (v->num_used == v->most)
		return false;
	r->buffer = v->num_idle ? v->idle[--v->num_idle]
				: aligned_alloc(SOURCE_ALIGN, UNIT);
	v->num_used += r->buffer != NULL;
	return r->buffer != NULL || !v->num_used;
}

/*
 * Returns a waiting read that may start now, with a buffer unless its blocks
 * have become right meanwhile, or memory is short and no read will return a
 * buffer.
 */
static struct verify_read *next_ready(struct verify_source *v)
{
	struct verify_read *r;

	scoped_lock(&v->lock);
	DL_FOREACH(v->waiting, r)
	{
		if (!is_right(v, r->caller) && !take_buffer(v, r))
			continue;
		DL_DELETE(v->waiting, r);
		return r;
	}
	return NULL;
}

static void start_ready(struct verify_source *v)
{
	struct verify_read *r;

	while (!atomic_load(&v->closing) && (r = next_ready(v))) {
		if (r->buffer) {
			run_read(r);
		} else if (is_right(v, r->caller)) {
			source_submit(v->inner, r->caller);
			free(r);
		} else {
			finish_read(r, -ENOMEM);
		}
	}
}

static void unit_done(struct source_request *request, int result)
{
	struct verify_read *r = request->arg;
	struct verify_source *v = r->v;

	r->result = result;
	if (atomic_exchange(&r->state, DONE) != PENDING)
		return;
	if (take_unit(r))
		run_read(r);
	start_ready(v);
}

/* --- the source --- */

static void verify_submit(struct source *source, struct source_request *q)
{
	struct verify_source *v = verify_of(source);
	struct verify_read *r;

	q->queued = false;
	if (is_right(v, q)) {
		source_submit(v->inner, q);
		return;
	}
	r = malloc(sizeof(*r));
	if (!r) {
		q->done(q, -ENOMEM);
		return;
	}
	*r = (struct verify_read){ .v = v, .caller = q };
	pthread_mutex_lock(&v->lock);
	DL_APPEND(v->waiting, r);
	pthread_mutex_unlock(&v->lock);
	start_ready(v);
}

/* Takes the read of a request, or any one, off the list of waiting reads. NULL:
   it does not wait. */
static struct verify_read *stop_waiting(struct verify_source *v,
					struct source_request *q)
{
	struct verify_read *r;

	scoped_lock(&v->lock);
	r = v->waiting;
	while (q && r && r->caller != q)
		r = r->next;
	if (r)
		DL_DELETE(v->waiting, r);
	return r;
}

/* A request that does not wait here may wait in the source behind. */
static void verify_cancel(struct source *source, struct source_request *q)
{
	struct verify_source *v = verify_of(source);
	struct verify_read *r = stop_waiting(v, q);

	if (r)
		finish_read(r, -ECANCELED);
	else
		source_cancel(v->inner, q);
}

struct sync_read {
	struct source_wait wait;
	int result;
};

static void sync_done(struct source_request *q, int result)
{
	struct sync_read *sync = q->arg;

	sync->result = result;
	source_wait_done(&sync->wait);
}

static int verify_read_now(struct source *source, void *buf, size_t size,
			   uint64_t off)
{
	struct sync_read sync = { .result = 0 };
	struct source_request q = {
		.buf = buf,
		.size = size,
		.off = off,
		.must = true,
		.done = sync_done,
		.arg = &sync,
	};

	if (is_right(verify_of(source), &q))
		return source_read(verify_of(source)->inner, buf, size, off);
	source_wait_init(&sync.wait);
	source_wait_add(&sync.wait);
	verify_submit(source, &q);
	source_wait_idle(&sync.wait);
	source_wait_fini(&sync.wait);
	return sync.result;
}

/* Whole blocks are compared. */
static void verify_prefetch(struct source *source, uint64_t off, uint64_t size)
{
	const struct verify_source *v = verify_of(source);
	struct verify_place at = place_of(v, off);
	uint64_t before = at.off % BLOCK;

	if (size > UINT64_MAX / 2 || is_past_end(&at))
		return;
	source_prefetch(v->inner, off - before,
			min_u64(align_up(size + before, BLOCK), at.left));
}

static void verify_note_tables(struct source *source,
			       const struct source_range *tables, size_t n)
{
	source_note_tables(source->inner, tables, n);
}

static unsigned verify_depth(const struct source *source)
{
	return source_depth(source->inner);
}

static size_t verify_best_read(const struct source *source)
{
	return source_best_read(source->inner);
}

static bool verify_is_direct(const struct source *source)
{
	return source_is_direct(verify_of(source)->inner);
}

static void free_checked(struct checked *file)
{
	free(file->marks);
	sums_free(file->sums);
}

static void verify_close(struct source *source)
{
	struct verify_source *v = verify_of(source);
	struct verify_read *r;

	atomic_store(&v->closing, true);
	while ((r = stop_waiting(v, NULL)))
		finish_read(r, -ECANCELED);
	source_close(v->inner);
	free_checked(&v->own);
	while (v->num_idle)
		free(v->idle[--v->num_idle]);
	free(v->pieces);
	pthread_mutex_destroy(&v->lock);
}

static const struct source_ops verify_ops = {
	.name = "verified",
	.submit = verify_submit,
	.cancel = verify_cancel,
	.read = verify_read_now,
	.is_direct = verify_is_direct,
	.depth = verify_depth,
	.best_read = verify_best_read,
	.prefetch = verify_prefetch,
	.note_tables = verify_note_tables,
	.close = verify_close,
};

/* --- opening --- */

/* Puts a source for `num` files in front of *source. Its pieces are empty. */
static int put_in_front(struct source **source, size_t num)
{
	struct verify_source *v = calloc(1, sizeof(*v));
	struct source *inner = *source;

	if (!v)
		return -ENOMEM;
	v->base.path = strdup(inner->path);
	v->pieces = calloc(num, sizeof(*v->pieces));
	if (!v->base.path || !v->pieces) {
		free(v->base.path);
		free(v->pieces);
		free(v);
		return -ENOMEM;
	}
	v->base.ops = &verify_ops;
	v->base.log = inner->log;
	v->base.stat = inner->stat;
	v->base.inner = inner;
	v->inner = inner;
	v->num_pieces = num;
	v->most = 1;
	pthread_mutex_init(&v->lock, NULL);
	*source = &v->base;
	return 0;
}

/* Verifies one file. */
static int verify_file(struct dataset *ds, const struct source_options *options)
{
	const char *path = dataset_path(ds);
	struct verify_source *v;
	struct sums *sums;
	int r = sums_open(ds, options, ds->log, &sums);

	if (r == -ENOENT && dataset_is_remote(ds))
		log_error(
			ds->log,
			"%s.sums: no such object, and verify needs its checksums: make them of a local copy with fsck.beton --sums, and upload them",
			path);
	else if (r == -ENOENT)
		log_error(
			ds->log,
			"%s.sums: no such file, and verify needs its checksums: make them with: fsck.beton --sums %s",
			path, path);
	if (r)
		return r;
	r = put_in_front(&ds->source, 1);
	if (r) {
		sums_free(sums);
		return r;
	}
	v = verify_of(ds->source);
	v->own.sums = sums;
	v->own.path = v->base.path;
	v->own.marks = calloc(sums->num, sizeof(*v->own.marks));
	v->pieces[0] = (struct verify_piece){ &v->own, 0 };
	return v->own.marks ? 0 : -ENOMEM;
}

/* Uses the checksums and the marks of the parts. */
static int verify_joined(struct dataset *ds)
{
	struct verify_source *v;
	int r = put_in_front(&ds->source, ds->num_parts);

	if (r)
		return r;
	v = verify_of(ds->source);
	for (size_t i = 0; i < ds->num_parts; i++)
		v->pieces[i] = (struct verify_piece){
			&verify_of(ds->parts[i].ds->source)->own,
			ds->parts[i].base,
		};
	return 0;
}

/* --- what was read before --- */

/* Reads a range again. */
static int read_again(struct dataset *ds, uint64_t off, uint64_t size)
{
	cleanup_free uint8_t *bytes = malloc(size + 1);

	return bytes ? source_read(ds->source, bytes, size, off) : -ENOMEM;
}

/* Names that other blocks contain. If they are damaged, the samples may still
   be right. */
static int verify_names(struct dataset *file, struct dataset *ds, uint32_t i)
{
	const struct class_names_place *at = &file->format.fields[i].classes_at;
	struct field *f = &ds->format.fields[i];
	int r = 0;

	if (f->classes && at->size)
		r = read_again(file, at->off, at->size);
	if (r != -BETON_ECORRUPT)
		return r;
	log_warning(
		ds->log,
		"%s: field %s: ignoring its class names, because their block is damaged",
		dataset_path(file), f->name);
	class_names_free(steal(f->classes));
	return 0;
}

/* The fingerprint is right, and so are the header and the descriptors. Custom
   fields are laid out by the beginning of the metadata and of the table. */
static int verify_opened(struct dataset *file, struct dataset *ds)
{
	const struct format *f = &file->format;
	int r = 0;

	for (uint32_t i = 0; i < f->num_fields && !r; i++)
		r = verify_names(file, ds, i);
	if (!r && format_has_custom(f))
		r = read_again(file, f->meta_off,
			       min_u64(UNIT, f->table_off - f->meta_off));
	if (!r && format_has_custom(f))
		r = read_again(file, f->table_off,
			       min_u64(UNIT, f->file_size - f->table_off));
	return r;
}

int verify_dataset(struct dataset *ds, const struct source_options *options)
{
	size_t num = ds->parts ? ds->num_parts : 1;
	struct dataset *file;
	int r = 0;

	for (size_t i = 0; i < num && !r; i++) {
		file = ds->parts ? ds->parts[i].ds : ds;
		r = verify_file(file, options);
		if (!r)
			r = verify_opened(file, ds);
	}
	return !r && ds->parts ? verify_joined(ds) : r;
}

/* --- memory and statistics --- */

static struct verify_source *verified(const struct dataset *ds)
{
	return ds->source->ops == &verify_ops ? verify_of(ds->source) : NULL;
}

uint64_t verify_set_memory(struct dataset *ds, uint64_t bytes)
{
	struct verify_source *v = verified(ds);

	if (!v)
		return 0;
	v->most = (unsigned)min_u64(
		max_u64(1, bytes / UNIT),
		source_prefetches(v->inner) ? BUFFERS_MAX : BUFFERS_LOCAL);
	v->keep = v->most;
	return (uint64_t)v->most * UNIT;
}

bool verify_stats(const struct dataset *ds, struct verify_stats *out)
{
	const struct verify_source *v = verified(ds);

	*out = (struct verify_stats){ 0 };
	for (size_t i = 0; v && i < v->num_pieces; i++) {
		out->bytes += atomic_load(&v->pieces[i].file->bytes);
		out->bad_blocks += atomic_load(&v->pieces[i].file->bad_blocks);
	}
	return v != NULL;
}
