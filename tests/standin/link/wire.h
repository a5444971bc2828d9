/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of a simulated link: packets leave at a rate, wait in a bounded
 * buffer, arrive after a delay, and some are lost. Times are nanoseconds of
 * CLOCK_MONOTONIC. Nothing here reads a clock or a file.
 */
#ifndef STANDIN_LINK_WIRE_H
#define STANDIN_LINK_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NS_PER_S 1000000000ull
/* Bytes are counted for each of these spans, too. */
#define SPAN_NS (NS_PER_S / 10)

struct wire_options {
	uint64_t delay;	 /* one way */
	uint64_t rate;	 /* bytes a second */
	uint64_t buffer; /* packets that would wait longer are dropped */
	double loss;	 /* from 0 to 1 */
	uint64_t seed;
	/* Down for a time between low and high; `every` is the mean time from
	   the end of an outage to the next one, 0 for no outages. */
	uint64_t outage_low, outage_high, outage_every;
};

struct wire_counts {
	uint64_t packets, bytes; /* that arrived */
	uint64_t full, lost, down;
};

struct wire {
	const struct wire_options *options;
	uint64_t rng, start;
	uint64_t free_at; /* when the last packet has left */
	uint64_t down_from, down_to;
	uint64_t outage_rng;
	struct wire_counts counts;
	uint64_t *spans; /* bytes that arrived, for each SPAN_NS */
	size_t n_spans;
	/* A ring of records: struct packet, then its bytes, padded to 8. */
	uint8_t *ring;
	size_t size, head, end;
};

/* `number` keeps the random numbers of two wires apart; `outages`, which are
   the same for all wires with the same number. */
int wire_open(struct wire *w, const struct wire_options *options,
	      uint64_t number, uint64_t outages, uint64_t now);
void wire_close(struct wire *w);
/* Copies a packet whose first `header` bytes are not on the link. */
void wire_put(struct wire *w, const void *data, size_t size, size_t header,
	      uint64_t now);
/* The packet that arrives next, if it arrives until `now`, or NULL. Valid until
   wire_pop(). */
const void *wire_peek(const struct wire *w, uint64_t now, size_t *size);
void wire_pop(struct wire *w, size_t header);
/* When the next packet arrives, or UINT64_MAX. */
uint64_t wire_next(const struct wire *w);

#endif
