/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A sender that comes late by less than this does not lose the link's time. */
#define BURST_NS 2000000ull
#define PADDED(n) (((n) + 7) & ~(size_t)7)

struct packet {
	uint64_t arrives;
	uint32_t size;
	uint32_t is_gap; /* the ring continues at its beginning */
};

/* SplitMix64. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static double draw_unit(uint64_t *state)
{
	return (double)(draw(state) >> 11) * 0x1p-53;
}

static void plan_outage(struct wire *w, uint64_t from)
{
	const struct wire_options *o = w->options;
	double length = draw_unit(&w->outage_rng);

	w->down_from = from + (uint64_t)(-log1p(-draw_unit(&w->outage_rng)) *
					 (double)o->outage_every);
	w->down_to =
		w->down_from + o->outage_low +
		(uint64_t)(length * (double)(o->outage_high - o->outage_low));
}

int wire_open(struct wire *w, const struct wire_options *o, uint64_t number,
	      uint64_t outages, uint64_t now)
{
	uint64_t time = o->delay + o->buffer + BURST_NS;

	*w = (struct wire){ .options = o, .start = now, .free_at = now };
	w->rng = o->seed * 1000 + number;
	w->outage_rng = ~(o->seed * 1000 + outages);
	w->down_from = w->down_to = UINT64_MAX;
	if (o->outage_every)
		plan_outage(w, now);
	/* Small packets take more room than their bytes. */
	w->size = PADDED((size_t)((double)o->rate * 1e-9 * (double)time * 1.5) +
			 ((size_t)1 << 20));
	w->ring = malloc(w->size);
	return w->ring ? 0 : -ENOMEM;
}

void wire_close(struct wire *w)
{
	free(w->ring);
	free(w->spans);
	*w = (struct wire){ 0 };
}

static bool is_down(struct wire *w, uint64_t now)
{
	while (now >= w->down_to)
		plan_outage(w, w->down_to);
	return now >= w->down_from;
}

/* Room for a record, or NULL. One byte more than the records stays free, so
   that head == end is an empty ring. */
static struct packet *ring_room(struct wire *w, size_t size)
{
	size_t need = PADDED(sizeof(struct packet) + size);
	struct packet *gap = (void *)(w->ring + w->end);

	if (w->end < w->head)
		return w->end + need < w->head ? gap : NULL;
	if (w->end + need + sizeof(*gap) <= w->size)
		return gap;
	if (need >= w->head)
		return NULL;
	gap->is_gap = 1;
	w->end = 0;
	return (void *)w->ring;
}

void wire_put(struct wire *w, const void *data, size_t size, size_t header,
	      uint64_t now)
{
	const struct wire_options *o = w->options;
	double seconds = (double)(size - header) / (double)o->rate;
	bool is_lost = o->loss > 0 && draw_unit(&w->rng) < o->loss;
	uint64_t from = w->free_at;
	struct packet *p;

	if (is_down(w, now)) {
		w->counts.down++;
		return;
	}
	if (from + BURST_NS < now)
		from = now - BURST_NS;
	if (from > now + o->buffer) {
		w->counts.full++;
		return;
	}
	/* A lost packet takes its time on the link. */
	w->free_at = from + (uint64_t)(seconds * 1e9);
	p = is_lost ? NULL : ring_room(w, size);
	if (!p) {
		*(is_lost ? &w->counts.lost : &w->counts.full) += 1;
		return;
	}
	*p = (struct packet){ .size = (uint32_t)size };
	p->arrives = (w->free_at > now ? w->free_at : now) + o->delay;
	memcpy(p + 1, data, size);
	w->end += PADDED(sizeof(*p) + size);
}

static const struct packet *first(const struct wire *w)
{
	const struct packet *p = (const void *)(w->ring + w->head);

	if (w->head == w->end)
		return NULL;
	return p->is_gap ? (const void *)w->ring : p;
}

const void *wire_peek(const struct wire *w, uint64_t now, size_t *size)
{
	const struct packet *p = first(w);

	if (!p || p->arrives > now)
		return NULL;
	*size = p->size;
	return p + 1;
}

static void count_span(struct wire *w, uint64_t arrives, uint64_t bytes)
{
	size_t i = (size_t)((arrives - w->start) / SPAN_NS);
	uint64_t *more;

	if (i >= w->n_spans) {
		more = realloc(w->spans, (i + 64) * sizeof(*more));
		if (!more)
			return;
		memset(more + w->n_spans, 0,
		       (i + 64 - w->n_spans) * sizeof(*more));
		w->spans = more;
		w->n_spans = i + 64;
	}
	w->spans[i] += bytes;
}

void wire_pop(struct wire *w, size_t header)
{
	const struct packet *p = first(w);
	size_t at = (size_t)((const uint8_t *)p - w->ring);

	w->counts.packets++;
	w->counts.bytes += p->size - header;
	count_span(w, p->arrives, p->size - header);
	w->head = at + PADDED(sizeof(*p) + p->size);
}

uint64_t wire_next(const struct wire *w)
{
	const struct packet *p = first(w);

	return p ? p->arrives : UINT64_MAX;
}
