/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/cache/fill.h"

#include <stdlib.h>

#include "fs/base/util/bytes.h"

enum { FRAME = ARENA_FRAME };

/* A page that two neighboring chunks need is read once, and copied. */
struct fill_copy {
	uint32_t from;
	uint32_t to;
};

/* One read. Each of its chunks has a frame or a copy in it. */
struct fill {
	struct source_request request;
	const struct fill_target *target;
	unsigned max; /* the most frames; twice as many chunks and copies */
	unsigned num_frames;
	unsigned num_chunks;
	unsigned num_copies;
	uint32_t *frames;
	struct chunk **chunks;
	struct fill_copy *copies;
	struct iovec iov[]; /* all arrays, in this memory */
};

static void drop_pending(const struct fill_target *target, struct chunk *g)
{
	if (atomic_fetch_sub(&g->pending, 1) == 1)
		target->chunk_done(target->arg, g);
}

static void fill_done(struct source_request *request, int result)
{
	struct fill *f = request->arg;
	const struct fill_target *target = f->target;
	/* A chunk may be freed as soon as it is done. */
	uint64_t owner = f->chunks[0]->owner;

	for (unsigned i = 0; i < f->num_copies && !result; i++)
		memcpy(arena_at(target->arena, f->copies[i].to),
		       arena_at(target->arena, f->copies[i].from), FRAME);
	for (unsigned i = 0; i < f->num_chunks; i++) {
		if (result)
			atomic_store(&f->chunks[i]->error, result);
		drop_pending(target, f->chunks[i]);
	}
	target->read_done(target->arg, owner, request->need, result);
	free(f);
}

static void set_iov(struct fill *f)
{
	struct iovec *last = NULL;
	void *at;

	for (unsigned i = 0; i < f->num_frames; i++) {
		at = arena_at(f->target->arena, f->frames[i]);
		if (last && (char *)last->iov_base + last->iov_len == at) {
			last->iov_len += FRAME;
			continue;
		}
		last = &f->iov[f->request.iovcnt++];
		*last = (struct iovec){ at, FRAME };
	}
}

static void submit_fill(struct fill *f)
{
	uint64_t end = (uint64_t)f->target->source->stat.st_size;
	struct source_request *q = &f->request;

	set_iov(f);
	q->iov = f->iov;
	q->size = (size_t)f->num_frames * FRAME;
	/* If the file ends within its last page, the read is short. */
	q->need = min_u64(q->size, end > q->off ? end - q->off : q->size);
	q->direct = true;
	q->done = fill_done;
	q->arg = f;
	f->target->read_begun(f->target->arg, q->need);
	source_submit(f->target->source, q);
}

/* Makes a read of at most `max` frames. */
static struct fill *fill_new(const struct fill_target *target, uint64_t off,
			     unsigned max)
{
	struct fill *f;

	f = malloc(sizeof(*f) +
		   max * (sizeof(*f->iov) + 2 * sizeof(*f->chunks) +
			  2 * sizeof(*f->copies) + sizeof(*f->frames)));
	if (!f)
		return NULL;
	*f = (struct fill){
		.request = { .off = off },
		.target = target,
		.max = max,
		.chunks = (struct chunk **)(f->iov + max),
	};
	f->copies = (struct fill_copy *)(f->chunks + 2 * max);
	f->frames = (uint32_t *)(f->copies + 2 * max);
	return f;
}

static bool has_room(const struct fill *f)
{
	return f->num_frames < f->max && f->num_chunks < 2 * f->max &&
	       f->num_copies < 2 * f->max;
}

static void add_chunk(struct fill *f, struct chunk *g)
{
	if (f->num_chunks && f->chunks[f->num_chunks - 1] == g)
		return;
	atomic_fetch_add(&g->pending, 1);
	f->request.must |= g->is_missed;
	f->chunks[f->num_chunks++] = g;
}

/* Adds one page of the file. False if it is not adjacent to the end of the
   read. */
static bool add_page(struct fill *f, struct chunk *g, uint64_t off,
		     uint32_t frame)
{
	uint64_t end = f->request.off + (uint64_t)f->num_frames * FRAME;

	if (!has_room(f))
		return false;
	if (f->num_frames && off + FRAME == end) {
		add_chunk(f, g);
		f->copies[f->num_copies++] = (struct fill_copy){
			f->frames[f->num_frames - 1],
			frame,
		};
		return true;
	}
	if (off != end)
		return false;
	add_chunk(f, g);
	f->frames[f->num_frames++] = frame;
	return true;
}

/* The reads of some chunks: the one that grows, and the frames that are not in
   a read yet. */
struct fills {
	const struct fill_target *target;
	struct fill *last;
	uint64_t max;
	uint64_t left;
};

/* Adds a chunk's pages to the read, or to new reads. */
static int add_pages(struct fills *fills, struct chunk *g)
{
	uint32_t frame = 0;
	uint64_t off;

	for (uint32_t i = 0; i < g->num_extents; i++) {
		off = g->extents[i].off;
		for (uint32_t k = 0; k < g->extents[i].frames;
		     k++, frame++, off += FRAME, fills->left--) {
			if (fills->last &&
			    add_page(fills->last, g, off, g->frames[frame]))
				continue;
			if (fills->last)
				submit_fill(fills->last);
			fills->last = fill_new(
				fills->target, off,
				(unsigned)min_u64(fills->max, fills->left));
			if (!fills->last)
				return -ENOMEM;
			add_page(fills->last, g, off, g->frames[frame]);
		}
	}
	return 0;
}

void fill_chunks(const struct fill_target *target, struct chunk **chunks,
		 unsigned n)
{
	struct fills fills = {
		.target = target,
		.max = max_u64(1, source_best_read(target->source) / FRAME),
	};
	int r;

	/* Add one to each chunk's count, so that no chunk is complete before
	   all its reads are submitted. */
	for (unsigned i = 0; i < n; i++) {
		atomic_store(&chunks[i]->pending, 1);
		fills.left += chunks[i]->num_frames;
	}
	for (unsigned i = 0; i < n; i++) {
		r = add_pages(&fills, chunks[i]);
		if (r)
			atomic_store(&chunks[i]->error, r);
	}
	if (fills.last)
		submit_fill(fills.last);
	for (unsigned i = 0; i < n; i++)
		drop_pending(target, chunks[i]);
}
