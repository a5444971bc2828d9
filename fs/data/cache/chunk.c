/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/cache/chunk.h"

#include "fs/base/util/bytes.h"
#include "fs/base/util/stream_copy.h"
#include "fs/data/dataset/value.h"

enum { FRAME = ARENA_FRAME };

/* All frames of a chunk can be counted in 32 bits. */
#define EXTENT_MAX ((uint64_t)UINT32_MAX / CHUNK_EXTENTS * FRAME)

/* Values in the same page, or in adjacent pages, are one piece. */
static void add_range(struct chunk *g, uint64_t off, uint64_t size)
{
	uint64_t start = off & ~(uint64_t)(FRAME - 1);
	uint64_t end = align_up(off + size, FRAME), low, high;
	struct chunk_extent *e;

	for (uint32_t i = 0; i < g->num_extents; i++) {
		e = &g->extents[i];
		low = e->off;
		high = e->off + (uint64_t)e->frames * FRAME;
		if (start > high || end < low)
			continue;
		low = min_u64(low, start);
		high = max_u64(high, end);
		if (high - low > EXTENT_MAX)
			continue;
		e->off = low;
		e->frames = (uint32_t)((high - low) / FRAME);
		return;
	}
	if (g->num_extents == CHUNK_EXTENTS)
		return;
	g->extents[g->num_extents++] = (struct chunk_extent){
		.off = start,
		.frames = (uint32_t)((end - start) / FRAME),
	};
}

static void locate_sample(struct chunk *g, struct dataset *ds,
			  const uint8_t *record, uint64_t sample)
{
	const struct format *f = &ds->format;
	struct value v;

	for (uint32_t i = 0; i < f->num_fields; i++) {
		if (!field_has_payload(&f->fields[i]) ||
		    dataset_place(ds, i, sample, record, &v) || !v.size ||
		    v.size > UINT32_MAX)
			continue;
		add_range(g, v.off, v.size);
	}
}

void chunk_locate(struct chunk *g, struct dataset *ds, const uint8_t *records,
		  uint64_t first, uint64_t n)
{
	g->num_extents = 0;
	for (uint64_t i = 0; i < n; i++)
		locate_sample(g, ds, records + i * ds->format.itemsize,
			      first + i);
	g->num_frames = 0;
	for (uint32_t i = 0; i < g->num_extents; i++)
		g->num_frames += g->extents[i].frames;
}

/* Returns the number of frames from the i-th on that are neighbors in memory,
   at most `max`. */
static uint32_t run_of_frames(const struct chunk *g, uint32_t i, uint32_t max)
{
	uint32_t n = 1;

	while (n < max && g->frames[i + n] == g->frames[i] + n)
		n++;
	return n;
}

/* Copies bytes of the frames from byte `skip` of the given one on. */
static void copy_frames(const struct chunk *g, const struct arena *arena,
			uint32_t frame, uint64_t skip,
			const struct payload_read *what)
{
	uint8_t *to = what->buf;
	const uint8_t *from;
	size_t left = what->size, n;
	uint32_t run;

	frame += (uint32_t)(skip / FRAME);
	skip %= FRAME;
	for (; left; left -= n, to += n, frame += run, skip = 0) {
		run = run_of_frames(g, frame,
				    (uint32_t)((skip + left - 1) / FRAME + 1));
		n = min_u64(left, (uint64_t)run * FRAME - skip);
		from = (const uint8_t *)arena_at(arena, g->frames[frame]) +
		       skip;
		if (what->is_streamed)
			stream_copy(to, from, n);
		else
			memcpy(to, from, n);
	}
}

bool chunk_copy(const struct chunk *g, const struct arena *arena,
		const struct payload_read *what)
{
	const struct chunk_extent *e = g->extents;
	uint32_t frame = 0;

	for (uint32_t i = 0; i < g->num_extents; i++, frame += e++->frames) {
		if (what->off < e->off ||
		    !range_ok(what->off - e->off, what->size,
			      (uint64_t)e->frames * FRAME))
			continue;
		copy_frames(g, arena, frame, what->off - e->off, what);
		return true;
	}
	return false;
}

unsigned chunk_iov(const struct chunk *g, const struct arena *arena,
		   struct iovec *iov)
{
	unsigned n = 0;
	uint32_t run;

	for (uint32_t i = 0; i < g->num_frames; i += run) {
		run = run_of_frames(g, i, g->num_frames - i);
		iov[n++] = (struct iovec){ arena_at(arena, g->frames[i]),
					   (size_t)run * FRAME };
	}
	return n;
}
