/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/horizon.h"

#include "fs/base/util/bytes.h"
#include "fs/data/cache/arena.h"

enum {
	/* In its first epoch, a reader may be one that reads no other. Until it
	   has begun the second, the plan reads at most this part of it. */
	BEGINNING = 512,
	/* A reader that has opened half as many batches is read ahead without
	   bounds. */
	TRUST_MAX = 30,
	/* Without windows, a reader is read ahead by this part of its share, or
	   of half of it. The rest keeps samples of the next epoch. */
	AHEAD = 4,
};

/* The least part of examined samples that counts as missing. */
static const double missing_least = 1. / 16;

uint64_t horizon_trust(const struct reader *r)
{
	uint64_t batches = (uint64_t)1 << min_u64(2 * r->opened, TRUST_MAX);

	return batches * r->spec.batch * max_u64(1, reader_step(r));
}

uint64_t horizon_end(const struct reader *r)
{
	return r->passed ? 2 * r->samples : r->samples + r->samples / BEGINNING;
}

/* Returns the number of positions whose samples fit into a part of the cache
   for so many readers. Another part is left for batches that are being
   collated. A rank needs one in so many positions. */
static uint64_t share_of(const struct readers *s, const struct reader *r,
			 uint64_t readers)
{
	/* Values begin and end within pages. */
	uint64_t samples = (s->room - s->room / HORIZON_SPARE) / readers /
			   (r->weight + ARENA_FRAME);

	return samples * max_u64(1, reader_step(r));
}

static double missing_of(const struct reader *r)
{
	return r->missing > missing_least ? r->missing : missing_least;
}

/* Returns whether reads take so long that many must be in flight. */
static bool is_far(const struct source *source)
{
	return source_prefetches(source) || source_depth(source) > SOURCE_DEPTH;
}

/*
 * Returns the positions to read ahead that keep a slow source busy. Samples
 * that the cache has need neither requests nor room. But if the window fits, it
 * has to fit beyond these positions, too; otherwise its blocks would be read in
 * pieces. For local files, a batch is enough.
 */
static uint64_t least_reach(const struct reader *r, uint64_t share,
			    uint64_t taken, uint64_t readers)
{
	const struct source *source = r->ds->source;
	uint64_t step = max_u64(1, reader_step(r)), depth, deep;

	if (!is_far(source))
		return 0;
	depth = step * source_depth(source) / readers;
	depth = min_u64(share / 4, depth);
	deep = (uint64_t)((double)depth / missing_of(r));
	return share < taken ? deep
			     : max_u64(depth, min_u64(deep, share - taken));
}

uint64_t horizon_reach(const struct readers *s, const struct reader *r)
{
	uint64_t readers = readers_sharing(s, r, true), room;
	uint64_t step = max_u64(1, reader_step(r));
	uint64_t share = share_of(s, r, readers);
	uint64_t want = r->spec.window + s->ahead / r->weight * step;
	uint64_t taken = r->spec.window + 2 * r->spec.batch;
	/* A late answer of a server must not stop all readers. */
	uint64_t part = is_far(r->ds->source) ? share : share / 2;

	if (r->spec.window)
		room = part - min_u64(part, taken);
	else
		room = part / AHEAD;
	room = max_u64(room, least_reach(r, share, taken, readers));
	/* The order has not determined later samples yet. */
	if (r->spec.draws)
		want = min_u64(want, DRAWS_POSITIONS / 2);
	want = min_u64(min_u64(want, room), horizon_trust(r));
	return max_u64(r->spec.batch, want);
}

uint64_t horizon_now(const struct readers *s, const struct reader *r)
{
	uint64_t end =
		r->base + r->weight * (r->passed * r->samples + horizon_end(r));
	uint64_t far = horizon_reach(s, r) + r->spec.window;
	uint64_t share = share_of(s, r, readers_sharing(s, r, false));

	/* Jobs beside each other use one window, but if it does not fit, the
	   room keeps what those behind will use. */
	if (share <= r->spec.window)
		share = share_of(s, r, readers_sharing(s, r, true));
	return min_u64(end, readers_place(r) + r->weight * min_u64(far, share));
}

uint64_t horizon_for_batch(const struct readers *s, const struct reader *r,
			   const struct batch_key *key)
{
	if (!reader_step(r) || (reader_begins(r) && key->number == r->first))
		return readers_place(r);
	return horizon_now(s, r);
}
