/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/alloc_probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

enum {
	/* Parts of the table that are examined at once: more runs than most
	   writers have processes. */
	SPANS_MAX = 32,
	/* Entries of one round, about: as much memory as a source has at
	   least. */
	POINTS = 64,
	/* Entries that are read at once: two requests of a table. */
	WINDOW = 2048,
	ROUNDS_MAX = 8,
};

/* Entries [first, last] of the table. */
struct alloc_probe_span {
	uint64_t first;
	uint64_t last;
};

struct probe {
	struct source *source;
	const struct format *format;
	uint64_t sample;
	uint64_t off;
	struct alloc_probe_span spans[SPANS_MAX];
	unsigned num;
	uint64_t parts; /* of one span in this round, at most */
	/* The entry that was found. */
	bool found;
	uint64_t at;
	uint64_t size;
};

static uint64_t place_of(const struct probe *p, uint64_t entry)
{
	return p->format->table_off + entry * FORMAT_ENTRY_SIZE;
}

static int read_offset(const struct probe *p, uint64_t entry, uint64_t *off)
{
	uint8_t bytes[FORMAT_ENTRY_SIZE];
	int r = source_read(p->source, bytes, sizeof(bytes),
			    place_of(p, entry));

	*off = r ? 0 : format_entry_parse(bytes).off;
	return r;
}

/* Returns the number of parts to cut a span into. */
static uint64_t parts_of(const struct probe *p,
			 const struct alloc_probe_span *span)
{
	uint64_t n = span->last - span->first;

	return min_u64(p->parts, n / (WINDOW / 2) + 1);
}

/* Returns the first entry of a part. The last one is that of the next part. */
static uint64_t cut(const struct alloc_probe_span *span, uint64_t part,
		    uint64_t parts)
{
	uint64_t n = span->last - span->first;

	return part == parts ? span->last : span->first + n / parts * part;
}

static bool is_small(const struct alloc_probe_span *span)
{
	return span->last - span->first < WINDOW;
}

/* Returns whether entries from one with offset `low` to one with offset `high`
   may contain the offset. Where offsets fall, a run ends and another begins. */
static bool may_contain(const struct probe *p, uint64_t low, uint64_t high)
{
	if (low <= high)
		return p->off >= low && p->off <= high;
	return p->off >= low || p->off <= high;
}

/* -ENOENT: there are too many. */
static int add_span(struct probe *p, struct alloc_probe_span span)
{
	if (p->num == SPANS_MAX)
		return -ENOENT;
	p->spans[p->num++] = span;
	return 0;
}

/* Appends the parts of a span that may contain the offset. */
static int search_span(struct probe *p, const struct alloc_probe_span *span)
{
	uint64_t parts = parts_of(p, span), low, high;
	int r = read_offset(p, span->first, &low);

	for (uint64_t i = 1; i <= parts && !r; i++, low = high) {
		r = read_offset(p, cut(span, i, parts), &high);
		if (!r && may_contain(p, low, high))
			r = add_span(p, (struct alloc_probe_span){
						cut(span, i - 1, parts),
						cut(span, i, parts) });
	}
	return r;
}

static void prefetch_points(const struct probe *p,
			    const struct alloc_probe_span *span)
{
	uint64_t parts = parts_of(p, span);

	for (uint64_t i = 0; i <= parts; i++)
		source_prefetch(p->source, place_of(p, cut(span, i, parts)),
				FORMAT_ENTRY_SIZE);
}

/* Replaces the spans by smaller ones. Returns whether there were larger ones
   than a window, or -errno. */
static int search_round(struct probe *p)
{
	struct alloc_probe_span spans[SPANS_MAX];
	unsigned num = p->num;
	bool any = false;
	int r = 0;

	memcpy(spans, p->spans, sizeof(spans));
	p->parts = max_u64(2, num ? POINTS / num : 0);
	for (unsigned i = 0; i < num; i++) {
		any |= !is_small(&spans[i]);
		if (!is_small(&spans[i]))
			prefetch_points(p, &spans[i]);
	}
	if (!any)
		return 0;
	p->num = 0;
	for (unsigned i = 0; i < num && !r; i++) {
		if (!is_small(&spans[i]))
			r = search_span(p, &spans[i]);
		else
			r = add_span(p, spans[i]);
	}
	return r ? r : 1;
}

/* Extends a span by a neighbor on each side. */
static struct alloc_probe_span with_neighbors(const struct probe *p,
					      struct alloc_probe_span span)
{
	span.first -= span.first > 0;
	span.last += span.last + 1 < p->format->table_entries;
	return span;
}

/* Returns whether the entry before or after one overlaps it. */
static bool overlaps(const struct format_entry *e,
		     const struct format_entry *other)
{
	if (other->off < e->off)
		return other->size > e->off - other->off;
	return other->off - e->off < e->size && other->size;
}

/* -ENOENT: the entry cannot be the only one of its bytes. */
static int note_entry(struct probe *p, uint64_t at, const uint8_t *bytes,
		      bool has_next)
{
	struct format_entry e = format_entry_parse(bytes), near;

	if (e.off != p->off || !e.size || (p->found && p->at == at))
		return 0;
	if (p->found || e.sample != p->sample)
		return -ENOENT;
	near = format_entry_parse(bytes - (at ? FORMAT_ENTRY_SIZE : 0));
	if (at && overlaps(&e, &near))
		return -ENOENT;
	near = format_entry_parse(bytes + (has_next ? FORMAT_ENTRY_SIZE : 0));
	if (has_next && overlaps(&e, &near))
		return -ENOENT;
	p->found = true;
	p->at = at;
	p->size = e.size;
	return 0;
}

static int read_window(struct probe *p, const struct alloc_probe_span *span,
		       uint8_t *bytes)
{
	struct alloc_probe_span all = with_neighbors(p, *span);
	uint64_t n = all.last - all.first + 1;
	int r = source_read(p->source, bytes, n * FORMAT_ENTRY_SIZE,
			    place_of(p, all.first));

	for (uint64_t i = span->first; i <= span->last && !r; i++)
		r = note_entry(p, i,
			       bytes + (i - all.first) * FORMAT_ENTRY_SIZE,
			       i < all.last);
	return r;
}

static int read_windows(struct probe *p)
{
	cleanup_free uint8_t *bytes = malloc((WINDOW + 2) * FORMAT_ENTRY_SIZE);
	struct alloc_probe_span all;
	int r = bytes ? 0 : -ENOMEM;

	for (unsigned i = 0; i < p->num; i++) {
		all = with_neighbors(p, p->spans[i]);
		source_prefetch(p->source, place_of(p, all.first),
				(all.last - all.first + 1) * FORMAT_ENTRY_SIZE);
	}
	for (unsigned i = 0; i < p->num && !r; i++)
		r = read_window(p, &p->spans[i], bytes);
	return r;
}

int alloc_probe(struct source *source, const struct format *format,
		uint64_t sample, uint64_t off, uint64_t *size)
{
	struct probe p = {
		.source = source,
		.format = format,
		.sample = sample,
		.off = off,
		.num = 1,
	};
	int r;

	if (!format->table_entries)
		return -ENOENT;
	p.spans[0] = (struct alloc_probe_span){ 0, format->table_entries - 1 };
	for (unsigned i = 0;; i++) {
		r = search_round(&p);
		if (r <= 0)
			break;
		if (i == ROUNDS_MAX)
			return -ENOENT;
	}
	if (!r)
		r = read_windows(&p);
	if (r || !p.found)
		return r ? r : -ENOENT;
	*size = p.size;
	return 0;
}
