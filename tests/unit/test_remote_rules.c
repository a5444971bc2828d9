/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions about remote reads: depth on models of links, retries, late
   requests, outages. */
#include "fs/remote/depth.h"
#include "fs/remote/outage.h"
#include "fs/remote/retry.h"
#include "fs/remote/tail.h"

#include "tests/unit/t.h"

static const int64_t ms = 1000000;

/* Runs a link of `rate` bytes/s and a latency for some seconds. The rate is
   reached if the bytes in flight are the product of both. */
static int64_t run(struct depth *d, int64_t from, double rate, int64_t latency,
		   int64_t seconds, uint64_t request)
{
	double flight, got;
	int64_t now = from;

	for (int i = 0; i < 200; i++)
		depth_begin(d, request);
	depth_first_byte(d, now, latency);
	for (; now < from + seconds * 1000 * ms; now += 10 * ms) {
		flight = (double)depth_requests(d) * (double)request;
		got = flight / ((double)latency * 1e-9);
		depth_full(d);
		depth_bytes(d, now,
			    (uint64_t)((got < rate ? got : rate) * 0.01));
	}
	return now;
}

static double share(const struct depth *d, double rate, int64_t latency,
		    uint64_t request)
{
	return depth_requests(d) * (double)request /
	       (rate * (double)latency * 1e-9);
}

static void test_links(void)
{
	static const struct {
		double rate;
		int64_t latency_ms;
	} links[] = { { 50e6, 1 },   { 50e6, 50 },  { 50e6, 200 },
		      { 1.2e9, 20 }, { 1.2e9, 50 }, { 5e6, 300 } };

	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
		int64_t latency = links[i].latency_ms * ms;
		struct depth d;
		double s;

		depth_init(&d, 256 << 20, 64);
		run(&d, 1, links[i].rate, latency, 20, 1 << 20);
		s = share(&d, links[i].rate, latency, 1 << 20);
		/* Enough, and if the least is not more, not too much. */
		CHECK(s >= 1 || depth_requests(&d) == 64);
		CHECK(s <= 8 || d.target <= 2 * DEPTH_START);
		CHECK(depth_requests(&d) <= 64);
	}
}

static void test_bounds(void)
{
	struct depth d;

	depth_init(&d, 8 << 20, 16);
	run(&d, 1, 1e9, 500 * ms, 30, 1 << 20);
	CHECK(d.target <= 8 << 20 && depth_requests(&d) <= 16);
	CHECK(depth_best_read(&d) >= DEPTH_READ_MIN);
	CHECK(depth_best_read(&d) <= DEPTH_READ_MAX);
}

static void test_throttled(void)
{
	int64_t now;
	struct depth d;
	unsigned before;

	depth_init(&d, 256 << 20, 64);
	now = run(&d, 1, 50e6, 50 * ms, 5, 100 << 10);
	before = depth_requests(&d);
	CHECK(depth_throttled(&d, now));
	/* All requests that the server refuses at once count once. */
	CHECK(!depth_throttled(&d, now + 10 * ms));
	CHECK(depth_requests(&d) <= before / 2 + 1);
	CHECK(depth_throttled(&d, now + 2000 * ms));
	CHECK(depth_requests(&d) <= before / 4 + 2);
	for (int i = 0; i < 100; i++)
		depth_throttled(&d, now + (4000 + 2000 * i) * ms);
	CHECK(depth_requests(&d) >= 1);
	/* It recovers. */
	run(&d, now + 300000 * ms, 50e6, 50 * ms, 120, 100 << 10);
	CHECK(depth_requests(&d) >= before / 2);
}

static void test_retry(void)
{
	struct rng rng = { .key = 1 };
	int64_t most[8] = { 0 };

	CHECK(retry_of_status(206) == RETRY_NONE);
	CHECK(retry_of_status(500) == RETRY_AGAIN);
	CHECK(retry_of_status(599) == RETRY_AGAIN);
	CHECK(retry_of_status(503) == RETRY_THROTTLED);
	CHECK(retry_of_status(404) == RETRY_FINAL);
	CHECK(retry_of_status(418) == RETRY_FINAL);
	CHECK(retry_of_status(412) == RETRY_REPLACED);
	for (unsigned n = 1; n < 8; n++) {
		for (int i = 0; i < 1000; i++) {
			int64_t ns = retry_delay_ns(n, 0, &rng);

			CHECK(ns >= 0 && ns <= (50LL << (n - 1)) * ms);
			if (ns > most[n])
				most[n] = ns;
		}
		CHECK(most[n] > (50LL << (n - 1)) * ms * 9 / 10);
	}
	CHECK(retry_delay_ns(1000000, 0, &rng) <= 5000 * ms);
	CHECK(retry_delay_ns(1, 3, &rng) >= 3000 * ms);
	CHECK(retry_delay_ns(1, UINT64_MAX, &rng) < 61000 * ms);
}

static void test_tail(void)
{
	struct tail t = { 0 };

	CHECK(tail_late_ns(&t, 1000) == INT64_MAX);
	CHECK(!tail_may_hedge(&t, 1000));
	/* The first answers are worth waiting for, the more so again. */
	CHECK(tail_patience_ms(&t, 0) == 10000);
	CHECK(tail_patience_ms(&t, 1) == 20000);
	CHECK(tail_patience_ms(&t, 100) == 60000);
	for (int i = 0; i < 8; i++)
		tail_first_byte(&t, (i == 3 ? 900 : 20) * ms);
	CHECK(tail_patience_ms(&t, 0) >= 3000);
	CHECK(tail_patience_ms(&t, 0) < 4800);
	t = (struct tail){ 0 };
	for (int i = 0; i < 1000; i++) {
		tail_whole(&t, 100000, 20 * ms);
		tail_whole(&t, 8 << 20, 400 * ms);
		tail_first_byte(&t, 5 * ms);
	}
	CHECK(tail_late_ns(&t, 100000) > 25 * ms);
	CHECK(tail_late_ns(&t, 100000) < 36 * ms);
	CHECK(tail_late_ns(&t, 7 << 20) > 500 * ms);
	/* Other sizes have no times. */
	CHECK(tail_late_ns(&t, 1000) == INT64_MAX);
	CHECK(tail_first_quantile(&t, 0.5) > 4 * ms);
	CHECK(tail_patience_ms(&t, 0) == 1000);
	CHECK(tail_patience_ms(&t, 2) == 4000);
	/* 2 % of 8.49 GB, and no more. */
	for (int i = 0; i < 20; i++)
		CHECK(tail_may_hedge(&t, 8 << 20));
	CHECK(!tail_may_hedge(&t, 8 << 20));
	/* Old times fade. */
	for (int i = 0; i < 20000; i++)
		tail_whole(&t, 100000, 200 * ms);
	CHECK(tail_late_ns(&t, 100000) > 250 * ms);
}

struct heard {
	struct log log;
	int lines;
};

static void hear(void *arg, enum beton_log_level level, const char *message)
{
	struct heard *h = arg;

	(void)level, (void)message;
	h->lines++;
}

static void test_outage(void)
{
	struct heard h = { 0 };
	struct outage o = { .log = &h.log, .name = "x" };
	int64_t now = 1;

	log_init(&h.log, hear, &h);
	/* Single failures are silent. */
	for (int i = 0; i < 100; i++, now += 1000 * ms) {
		outage_fails(&o, now, 0, "reset", 1000);
		outage_ends(&o, now);
	}
	CHECK(!h.lines);
	for (int i = 0; i < 100; i++, now += 100 * ms)
		outage_fails(&o, now, 0, "reset", 1000);
	CHECK(h.lines == 1);
	for (int i = 0; i < 100; i++)
		outage_gives_up(&o, now, 0, 1, "reset");
	CHECK(h.lines == 2);
	outage_ends(&o, now);
	outage_ends(&o, now);
	CHECK(h.lines == 3);
	outage_gives_up(&o, now, 0, 1, "status 404");
	CHECK(h.lines == 4);
	outage_ends(&o, now);
	/* A single long one is logged. */
	outage_fails(&o, now, 10000 * ms, "no answer", 1000);
	CHECK(h.lines == 5);
	log_fini(&h.log);
}

int main(void)
{
	test_links();
	test_bounds();
	test_throttled();
	test_retry();
	test_tail();
	test_outage();
	return 0;
}
