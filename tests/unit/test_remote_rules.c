/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions about remote reads: depth on models of links, retries, late
   requests, outages. */
#include "fs/source/pacing/depth.h"
#include "fs/source/pacing/outage.h"
#include "fs/source/pacing/retry.h"
#include "fs/source/pacing/tail.h"

#include "tests/unit/t.h"

static const int64_t ms = 1000000;

/* A link: bytes/s, the latency of it and a server, how much longer some answers
   take, and the longest time that its buffer can hold bytes. */
struct line {
	double rate;
	double latency_ms;
	double spread_ms;
	double buffer_ms;
};

/* The time of an answer of an idle link, on average. */
static double idle_ms(const struct line *l)
{
	return l->latency_ms + l->spread_ms / 2;
}

/* Bytes of 10 ms. More in flight than the link holds wait in its buffer. */
static uint64_t pass(struct depth *d, const struct line *l, uint64_t request,
		     unsigned turn)
{
	double flight = (double)depth_requests(d) * (double)request;
	double wait_ms = flight / l->rate * 1e3 - idle_ms(l);
	double rate = wait_ms < 0 ? flight / idle_ms(l) * 1e3 : l->rate;
	double queue_ms = wait_ms < 0		   ? 0
			  : wait_ms > l->buffer_ms ? l->buffer_ms
						   : wait_ms;
	unsigned answers = (unsigned)(rate * 0.01 / (double)request) + 1;

	for (unsigned i = 0; i < answers; i++)
		depth_first_byte(
			d, (int64_t)((l->latency_ms + queue_ms +
				      l->spread_ms * ((turn + i) % 5) / 4) *
				     1e6));
	return (uint64_t)(rate * 0.01);
}

/* Some answers of an idle link. */
static int64_t open_link(struct depth *d, int64_t from, const struct line *l)
{
	int64_t end = from + (int64_t)((idle_ms(l) + 50) * 1e6);

	depth_bytes(d, from, 1);
	for (int i = 0; i < 4; i++)
		depth_first_byte(d, (int64_t)(idle_ms(l) * 1e6));
	depth_bytes(d, end, 100 << 10);
	return end;
}

/* Runs a link for some seconds. */
static int64_t run(struct depth *d, int64_t from, const struct line *l,
		   int64_t seconds, uint64_t request)
{
	int64_t now = d->latency_ns ? from : open_link(d, from, l);

	for (int i = 0; i < 200; i++)
		depth_begin(d, request);
	for (unsigned turn = 0; now < from + seconds * 1000 * ms;
	     now += 10 * ms) {
		depth_full(d);
		depth_bytes(d, now, pass(d, l, request, turn++));
	}
	return now;
}

/* Returns what is in flight, in products of rate and time. */
static double share(const struct depth *d, const struct line *l,
		    uint64_t request)
{
	return depth_requests(d) * (double)request /
	       (l->rate * idle_ms(l) * 1e-3);
}

static void test_links(void)
{
	static const struct line links[] = {
		{ 50e6, 1, 0, 60 },   { 50e6, 50, 0, 60 },
		{ 50e6, 50, 0, 400 }, { 50e6, 200, 0, 60 },
		{ 1.2e9, 20, 0, 60 }, { 1.2e9, 50, 0, 60 },
		{ 5e6, 300, 0, 60 },  { 200e6, 10, 100, 5 },
	};

	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
		struct depth d;
		double s;

		depth_init(&d, 256 << 20, 64);
		run(&d, 1, &links[i], 20, 1 << 20);
		s = share(&d, &links[i], 1 << 20);
		/* Enough, and if the least is not more, not too much. */
		CHECK(s >= 1 || depth_requests(&d) == 64);
		CHECK(s <= 8 || d.target <= 2 * DEPTH_START);
		CHECK(depth_requests(&d) <= 64);
	}
}

/* If the buffer is as large as the link, bytes that wait there are no gain. If
   it is small, nothing shows that they would be lost. */
static void test_queue(void)
{
	const struct line large = { 50e6, 50, 0, 60 };
	const struct line small = { 50e6, 200, 0, 60 };
	struct depth d;

	depth_init(&d, 256 << 20, 128);
	run(&d, 1, &large, 20, 100 << 10);
	CHECK(share(&d, &large, 100 << 10) < 2.6);
	depth_init(&d, 256 << 20, 256);
	run(&d, 1, &small, 20, 256 << 10);
	CHECK(share(&d, &small, 256 << 10) > 4);
}

/* A longer route is noticed, and a queue of a minute is no longer route. */
static void test_route(void)
{
	const struct line near = { 50e6, 5, 0, 60 };
	const struct line far = { 50e6, 150, 0, 60 };
	struct depth d;
	int64_t now;

	depth_init(&d, 256 << 20, 256);
	now = run(&d, 1, &near, 200, 100 << 10);
	CHECK(d.latency_ns < 10 * ms && d.target <= 2 * DEPTH_START);
	now = run(&d, now, &far, 100, 100 << 10);
	CHECK(d.latency_ns >= 150 * ms && share(&d, &far, 100 << 10) > 1);
	run(&d, now, &near, 100, 100 << 10);
	CHECK(d.latency_ns < 10 * ms);
}

/* So many that the next one is no coincidence. */
static void refuse(struct depth *d, int64_t now)
{
	for (int i = 0; i < 5; i++)
		CHECK(!depth_throttled(d, now));
}

/* While a probe measures the latency, nothing is in flight that could wait;
   then the depth is as before, or what a server that throttles leaves of it. */
static void test_probe(void)
{
	const struct line line = { 50e6, 5, 0, 60 };
	uint64_t request = 100 << 10;
	struct depth d;
	int64_t now, end;
	unsigned turns = 0;

	depth_init(&d, 256 << 20, 256);
	now = run(&d, 1, &line, 20, request);
	for (end = now + 20000 * ms; now < end && !d.probes; now += 10 * ms) {
		depth_full(&d);
		depth_bytes(&d, now, pass(&d, &line, request, 0));
	}
	CHECK(d.probes);
	for (; d.probes && turns < 100; now += 10 * ms, turns++) {
		CHECK(depth_requests(&d) <= 2);
		depth_full(&d);
		depth_bytes(&d, now, pass(&d, &line, request, 0));
		if (turns != 5)
			continue;
		refuse(&d, now);
		CHECK(depth_throttled(&d, now));
	}
	CHECK(turns > 10 && turns < 100);
	CHECK(d.target == d.ceiling && d.target < d.kept);
}

static void test_bounds(void)
{
	const struct line line = { 1e9, 500, 0, 60 };
	struct depth d;

	depth_init(&d, 8 << 20, 16);
	run(&d, 1, &line, 30, 1 << 20);
	CHECK(d.target <= 8 << 20 && depth_requests(&d) <= 16);
	CHECK(depth_best_read(&d) >= DEPTH_READ_MIN);
	CHECK(depth_best_read(&d) <= DEPTH_READ_MAX);
}

/* A lost packet stops a small part of what is in flight. */
static void test_parts(void)
{
	const struct line line = { 50e6, 50, 0, 60 };
	struct depth d;

	depth_init(&d, 64 << 20, 128);
	run(&d, 1, &line, 100, 256 << 10);
	CHECK(d.target / depth_best_read(&d) >= 12);
}

/* A batch that a reader waits for is not requested all at once. */
static void test_urgent(void)
{
	const struct line line = { 50e6, 50, 0, 60 };
	struct depth d;

	depth_init(&d, 256 << 20, 128);
	run(&d, 1, &line, 20, 256 << 10);
	CHECK(depth_urgent(&d) > depth_requests(&d));
	CHECK(depth_urgent(&d) <= depth_requests(&d) + 4);
	/* All connections are in use already. */
	run(&d, 1000000 * ms, &line, 20, 10 << 10);
	CHECK(depth_urgent(&d) == 128 && depth_requests(&d) == 128);
}

/* A server that first opens the file is not a long route. */
static void test_first_latency(void)
{
	uint64_t request = 256 << 10;
	struct depth d;

	depth_init(&d, 256 << 20, 128);
	depth_begin(&d, request);
	depth_first_byte(&d, 600 * ms);
	CHECK(depth_requests(&d) * request < 8 << 20);
	depth_bytes(&d, 1, 1);
	for (int i = 0; i < 10; i++)
		depth_first_byte(&d, 20 * ms);
	depth_full(&d);
	depth_bytes(&d, 1 + 700 * ms, request);
	CHECK(d.latency_ns < 80 * ms);
	CHECK(!d.probes);
	CHECK(depth_requests(&d) * request < 8 << 20);
}

static void test_throttled(void)
{
	const struct line line = { 50e6, 50, 0, 60 };
	int64_t now;
	struct depth d;
	unsigned before;

	depth_init(&d, 256 << 20, 64);
	now = run(&d, 1, &line, 5, 100 << 10);
	before = depth_requests(&d);
	/* One refusal in a hundred answers is a fault. */
	for (int i = 0; i < 1000; i++) {
		depth_first_byte(&d, 50 * ms);
		CHECK(i % 100 || !depth_throttled(&d, now));
	}
	CHECK(depth_requests(&d) == before);
	refuse(&d, now);
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
	run(&d, now + 300000 * ms, &line, 120, 100 << 10);
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
	CHECK(tail_first_quantile(&t, 0.5) == 0);
	tail_first_byte(&t, 50 * ms);
	CHECK(tail_first_quantile(&t, 0.5) > 40 * ms);
	t = (struct tail){ 0 };
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
	test_queue();
	test_route();
	test_probe();
	test_bounds();
	test_parts();
	test_urgent();
	test_first_latency();
	test_throttled();
	test_retry();
	test_tail();
	test_outage();
	return 0;
}
