/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/pacing/depth.h"

#include <string.h>

#include "fs/base/util/bytes.h"

/*
 * Two products of rate and latency keep a link busy if answers arrive as fast
 * as the link is. They do not: a connection waits for a round trip between two
 * requests, TCP begins slowly after it, and a server needs time. But more than
 * the link and its buffers hold are lost packets, each a pause of its
 * connection. At 400 Mbit/s, with 60 ms of buffer, 2 products of random reads
 * filled 0.99 of the link at 50 ms, and fewer and fewer at 200 ms; 6 filled
 * 0.94 and 0.99.
 * Therefore the number moves between the two: down while first bytes wait
 * longer than on an idle link, and up otherwise.
 */
static const double products_min = 2;
static const double products_max = 6;
/* First bytes wait if their average is that multiple of the lowest one. */
static const double waits = 1.4;
/* Each interval: more in flight, less, and what the best rate loses, because
   a link may become slower. */
static const double grow = 1.1;
static const double shrink = 0.8;
static const double forget = 0.995;

enum {
	/* A connection waits for a round trip between two requests. */
	IDLE_REQUESTS = 3,
	/* So many urgent requests need not wait for those read ahead. More of
	   them would be lost packets: a batch of 28 MB that its reader waited
	   for was requested at once, and a link of 400 Mbit/s at 50 ms was
	   filled 0.92 instead of 1.00. */
	URGENT_REQUESTS = 4,
	/* The rate that is assumed until there is a measured one, and the most
	   of the first time that counts as latency: a server may first open
	   the file. */
	FIRST_RATE = 128 << 20,
	FIRST_LATENCY_NS = 50000000,
	INTERVAL_MIN_MS = 50,
	INTERVAL_MAX_MS = 500,
	/* A probe for the latency: so long after first bytes did not wait, and
	   for so many intervals, as requests of before have to end first. */
	LATENCY_S = 30,
	PROBES = 4,
	PROBE_PART = 8, /* of a product */
	RATES = 16,	/* intervals of an average */
	/* First bytes that make an average. */
	LATENCIES_MIN = 3,
	/* Reactions to an overload, and attempts to exceed it, are so far
	   apart. */
	THROTTLE_MS = 1000,
};

/* A server that refuses one request in a hundred has a fault, and fewer at a
   time would not help. One that limits the rate refuses more than one in ten:
   so many refusals, of about the last 64 answers. */
static const double refusals_min = 6;
static const double refusals_weight = 1. / 64;

void depth_init(struct depth *d, uint64_t most, unsigned connections)
{
	*d = (struct depth){
		.most = max_u64(most, DEPTH_START),
		.target = DEPTH_START,
		.connections = connections,
	};
}

double depth_rate(const struct depth *d)
{
	return d->rate;
}

static void set_target(struct depth *d, uint64_t target)
{
	uint64_t most = d->ceiling ? min_u64(d->ceiling, d->most) : d->most;
	uint64_t least =
		d->ceiling ? min_u64(d->ceiling, DEPTH_START) : DEPTH_START;

	d->target = max_u64(min_u64(target, most), least);
}

/* The target before any rate is known. */
static void assume_rate(struct depth *d, int64_t latency)
{
	double counted = (double)min_u64((uint64_t)latency, FIRST_LATENCY_NS);

	d->latency_ns = latency;
	set_target(d, (uint64_t)(FIRST_RATE * counted * 1e-9));
}

void depth_begin(struct depth *d, uint64_t size)
{
	if (!d->request_bytes)
		d->request_bytes = (double)size;
	d->request_bytes += ((double)size - d->request_bytes) / 16;
}

void depth_first_byte(struct depth *d, int64_t latency)
{
	d->refusals -= d->refusals * refusals_weight;
	d->latencies_ns += latency;
	d->num_latencies++;
	if (!d->latency_ns)
		assume_rate(d, latency);
}

static int64_t interval_ns(const struct depth *d)
{
	int64_t ms = d->latency_ns / 1000000;

	if (ms < INTERVAL_MIN_MS)
		ms = INTERVAL_MIN_MS;
	return (ms > INTERVAL_MAX_MS ? INTERVAL_MAX_MS : ms) * 1000000;
}

static uint64_t products(const struct depth *d, double num)
{
	return (uint64_t)(d->best_rate * (double)d->latency_ns * 1e-9 * num);
}

/* Keeps so little in flight for some intervals that nothing waits. */
static void begin_probe(struct depth *d)
{
	d->kept = d->target;
	d->target = products(d, 1) / PROBE_PART;
	d->has_latency = false;
	d->doubts = false;
	d->probes = PROBES;
}

static void end_probe(struct depth *d, int64_t now)
{
	/* The server may have throttled meanwhile. */
	set_target(d, d->kept);
	d->free_ns = now;
}

/* The lowest average, because the times of a server differ. It is measured
   again if all first bytes have waited for a while: the route may be another
   one. */
static void note_latency(struct depth *d, int64_t now)
{
	bool is_new = d->probes && !d->has_latency;
	int64_t average;

	if (d->num_latencies < (d->probes ? 1 : LATENCIES_MIN))
		return;
	average = d->latencies_ns / d->num_latencies;
	d->latencies_ns = 0;
	d->num_latencies = 0;
	/* On another route, the lower one may be that of a queue. The first
	   request of all may wait for the server to open the file. */
	d->doubts |=
		average < d->latency_ns / 4 * 3 && !d->probes && d->num_rates;
	if (average < d->latency_ns && !d->num_rates)
		assume_rate(d, average);
	else if (is_new || average < d->latency_ns)
		d->latency_ns = average;
	d->has_latency = true;
	d->first_bytes_wait = (double)average > waits * (double)d->latency_ns;
	if (!d->first_bytes_wait)
		d->free_ns = now;
}

/* The average rate, because single intervals have bursts. */
static void note_rate(struct depth *d, double rate)
{
	if (d->num_rates < RATES)
		d->num_rates++;
	d->rate += (rate - d->rate) / d->num_rates;
	d->best_rate = d->rate > d->best_rate ? d->rate : d->best_rate * forget;
}

static void adapt(struct depth *d)
{
	uint64_t least = products(d, products_min);
	uint64_t most = products(d, products_max);
	uint64_t more = (uint64_t)((double)d->target * grow);
	uint64_t less = (uint64_t)((double)d->target * shrink);

	/* The average of a few intervals is that of a slow start. */
	if (d->num_rates < RATES)
		most = max_u64(most, d->target);
	set_target(d, max_u64(d->first_bytes_wait
				      ? less
				      : max_u64(less, min_u64(more, most)),
			      least));
}

/* The server has not throttled for a while: try a little more. */
static void raise_ceiling(struct depth *d, int64_t now)
{
	if (!d->ceiling || now - d->throttled_ns < THROTTLE_MS * 1000000LL)
		return;
	d->throttled_ns = now;
	d->ceiling += d->ceiling / 8;
	if (d->ceiling >= d->most)
		d->ceiling = 0;
}

static void end_full_interval(struct depth *d, int64_t now)
{
	note_rate(d, (double)d->bytes * 1e9 / (double)(now - d->since_ns));
	adapt(d);
	raise_ceiling(d, now);
	if (d->doubts || now - d->free_ns > LATENCY_S * 1000000000LL)
		begin_probe(d);
}

static void end_interval(struct depth *d, int64_t now)
{
	note_latency(d, now);
	if (d->probes && !--d->probes)
		end_probe(d, now);
	else if (d->was_full && !d->probes)
		end_full_interval(d, now);
	d->since_ns = now;
	d->bytes = 0;
	d->was_full = false;
}

void depth_bytes(struct depth *d, int64_t now, uint64_t size)
{
	if (!d->since_ns)
		d->since_ns = d->free_ns = now;
	d->bytes += size;
	if (now - d->since_ns >= interval_ns(d))
		end_interval(d, now);
}

void depth_full(struct depth *d)
{
	d->was_full = true;
}

bool depth_throttled(struct depth *d, int64_t now)
{
	uint64_t most;

	if (++d->refusals < refusals_min)
		return false;
	if (d->throttled_ns && now - d->throttled_ns < THROTTLE_MS * 1000000LL)
		return false;
	d->throttled_ns = now;
	/* The number of connections limits small requests. */
	most = (uint64_t)(d->connections * d->request_bytes);
	d->ceiling = max_u64(min_u64(d->target, most) / 2,
			     (uint64_t)d->request_bytes);
	set_target(d, d->ceiling);
	return true;
}

unsigned depth_requests(const struct depth *d)
{
	double size = d->request_bytes ? d->request_bytes : DEPTH_READ_MIN;
	uint64_t n = (uint64_t)((double)d->target / size);

	/* A throttled source has no request to spare. */
	n += d->ceiling || d->probes ? 1 : IDLE_REQUESTS;
	return (unsigned)min_u64(n, d->connections);
}

unsigned depth_urgent(const struct depth *d)
{
	return (unsigned)min_u64(depth_requests(d) + URGENT_REQUESTS,
				 d->connections);
}

uint64_t depth_best_read(const struct depth *d)
{
	uint64_t size = DEPTH_READ_MIN;
	uint64_t share = d->target / (d->connections / 2 + 1);

	while (size < share && size < DEPTH_READ_MAX)
		size *= 2;
	return size;
}
