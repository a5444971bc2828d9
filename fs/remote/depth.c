/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/remote/depth.h"

#include <string.h>

#include "fs/util/bytes.h"

enum {
	/* A connection waits for a round trip between two requests, and TCP
	   slows down after each loss. At 400 Mbit/s, with 60 ms of buffer in
	   the link, 2 products filled 0.95 of it at 50 ms and 0.82 at 200 ms; 6
	   filled 0.99 and 0.95. */
	PRODUCTS = 6,
	/* A connection waits for a round trip between two requests. */
	IDLE_REQUESTS = 3,
	/* The rate that is assumed until there is a measured one. */
	FIRST_RATE = 128 << 20,
	INTERVAL_MIN_MS = 50,
	INTERVAL_MAX_MS = 500,
	FLAT_MAX = 3,
	/* A route may change, so that a lowest latency becomes old. */
	LATENCY_S = 30,
	/* Reactions to an overload, and attempts to exceed it, are so far
	   apart. */
	THROTTLE_MS = 1000,
};

void depth_init(struct depth *d, uint64_t most, unsigned connections)
{
	*d = (struct depth){
		.most = max_u64(most, DEPTH_START),
		.target = DEPTH_START,
		.connections = connections,
	};
}

/* A maximum would be that of a burst, after this process had to wait. */
double depth_rate(const struct depth *d)
{
	unsigned n = (unsigned)min_u64(d->num_rates, DEPTH_RATES);
	double sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += d->rates[i];
	return n ? sum / n : 0;
}

static void set_target(struct depth *d, uint64_t target)
{
	uint64_t most = d->ceiling ? min_u64(d->ceiling, d->most) : d->most;
	uint64_t least =
		d->ceiling ? min_u64(d->ceiling, DEPTH_START) : DEPTH_START;

	d->target = max_u64(min_u64(target, most), least);
}

void depth_begin(struct depth *d, uint64_t size)
{
	if (!d->request_bytes)
		d->request_bytes = (double)size;
	d->request_bytes += ((double)size - d->request_bytes) / 16;
}

void depth_first_byte(struct depth *d, int64_t now, int64_t latency)
{
	bool is_old = now - d->latency_at_ns > LATENCY_S * 1000000000LL;

	if (d->latency_ns && latency > d->latency_ns && !is_old)
		return;
	if (!d->latency_ns)
		set_target(d,
			   (uint64_t)(FIRST_RATE * ((double)latency * 1e-9)));
	d->latency_ns = latency;
	d->latency_at_ns = now;
}

static int64_t interval_ns(const struct depth *d)
{
	int64_t ms = d->latency_ns / 1000000;

	if (ms < INTERVAL_MIN_MS)
		ms = INTERVAL_MIN_MS;
	return (ms > INTERVAL_MAX_MS ? INTERVAL_MAX_MS : ms) * 1000000;
}

static uint64_t products(const struct depth *d, double rate)
{
	return (uint64_t)(rate * (double)d->latency_ns * 1e-9 * PRODUCTS);
}

/* Raises the target with the rate, which can double until the next interval.
   TCP starts slowly, so that a rate may grow without a higher target. */
static void adapt(struct depth *d, double rate)
{
	if (products(d, rate) > d->target) {
		d->flat = 0;
		set_target(d, products(d, rate));
	} else if (++d->flat >= FLAT_MAX) {
		d->flat = 0;
		set_target(d, products(d, depth_rate(d)));
	}
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

static void end_interval(struct depth *d, int64_t now)
{
	double rate = (double)d->bytes * 1e9 / (double)(now - d->since_ns);

	if (d->was_full) {
		d->rates[d->num_rates++ % DEPTH_RATES] = rate;
		adapt(d, rate);
		raise_ceiling(d, now);
	}
	d->since_ns = now;
	d->bytes = 0;
	d->was_full = false;
}

void depth_bytes(struct depth *d, int64_t now, uint64_t size)
{
	if (!d->since_ns)
		d->since_ns = now;
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
	n += d->ceiling ? 1 : IDLE_REQUESTS;
	return (unsigned)min_u64(n, d->connections);
}

uint64_t depth_best_read(const struct depth *d)
{
	uint64_t size = DEPTH_READ_MIN;
	uint64_t share = d->target / (d->connections / 2 + 1);

	while (size < share && size < DEPTH_READ_MAX)
		size *= 2;
	return size;
}
