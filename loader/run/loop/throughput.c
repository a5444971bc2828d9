/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/loop/throughput.h"

#include <stdio.h>

#include "fs/base/util/bytes.h"

/* Least fraction of waiting time that counts as a data bottleneck. `beton top`
   has the same bound. */
static const double enough = 0.05;

static void add(struct throughput *p, enum throughput_sum sum, uint64_t n)
{
	counters_add_own(&p->sums[sum], n);
}

void throughput_init(struct throughput *p, struct stage_lane *lane,
		     uint32_t places)
{
	*p = (struct throughput){ .lane = lane, .places = places };
}

/* --- a batch --- */

void throughput_wait(struct throughput *p, uint64_t now)
{
	throughput_ask(p, now);
	p->is_waiting = true;
}

void throughput_ask(struct throughput *p, uint64_t now)
{
	if (p->is_waiting)
		return;
	trace_here(p->lane->track);
	if (p->given_ns) {
		trace_span(p->lane->track, TRACE_TRAINER, p->given_ns, now,
			   counters_get(&p->epoch), counters_get(&p->number));
		counters_items_own(&p->lane->stages[STAGE_TRAINER], 1, 0,
				   now - p->given_ns);
		add(p, PACE_TRAINER_NS, now - p->given_ns);
	}
	p->given_ns = 0;
	p->asked_ns = now;
}

void throughput_look(struct throughput *p, uint32_t ready)
{
	trace_count(p->lane->track, TRACE_QUEUE, p->asked_ns, ready);
	add(p, PACE_READY, min_u64(ready, p->places));
	add(p, PACE_EMPTY, !ready);
	add(p, PACE_FULL, ready >= p->places);
}

static void add_wait(struct throughput *p, uint64_t ns)
{
	add(p, PACE_WAIT_NS, ns);
	counters_add_own(&p->lane->stages[STAGE_NEXT].input_wait_ns, ns);
}

static void delay(struct throughput *p, enum stage stage, uint64_t ns)
{
	counters_add_own(&p->delay_ns[stage], ns);
}

/* Removes the part before `moment` from a time span and returns its length. */
static uint64_t take_until(uint64_t *begin, uint64_t end, uint64_t moment)
{
	uint64_t until = min_u64(end, max_u64(*begin, moment));
	uint64_t taken = until - *begin;

	*begin = until;
	return taken;
}

/* Workers alternate between decoding and transforming, so divide the wait in
   proportion to their time in either stage. */
static void delay_by_rows(struct throughput *p, uint64_t ns,
			  const struct throughput_times *t)
{
	double share =
		t->busy_ns ? (double)t->decode_ns / (double)t->busy_ns : 0;
	uint64_t decode = min_u64(ns, (uint64_t)(share * (double)ns));

	delay(p, STAGE_DECODE, decode);
	delay(p, STAGE_TRANSFORM, ns - decode);
}

void throughput_waited(struct throughput *p, uint64_t begin, uint64_t now,
		       const struct throughput_times *times)
{
	static const struct throughput_times never = { .fetched_ns = 0 };
	const struct throughput_times *t = times ? times : &never;
	uint64_t made = t->made_ns && t->has_upload ? t->made_ns : now;

	/* Trace viewers nest a span in another one that begins earlier. */
	trace_span(p->lane->track, TRACE_WAIT, begin + 1, now, 0, 0);
	add(p, PACE_WAITS, 1);
	add_wait(p, now - begin);
	delay(p, STAGE_MAKERS, take_until(&begin, now, t->answered_ns));
	delay(p, t->answered_ns ? STAGE_NETWORK : STAGE_READ,
	      take_until(&begin, now, t->fetched_ns ? t->fetched_ns : now));
	delay_by_rows(p, take_until(&begin, now, made), t);
	delay(p, STAGE_UPLOAD, now - begin);
}

void throughput_waited_for_upload(struct throughput *p, uint64_t now)
{
	trace_span(p->lane->track, TRACE_WAIT, p->given_ns, now, 0, 0);
	add_wait(p, now - p->given_ns);
	delay(p, STAGE_UPLOAD, now - p->given_ns);
	p->given_ns = now;
}

void throughput_give(struct throughput *p, uint64_t now,
		     const struct beton_batch *batch, uint64_t bytes)
{
	struct counters *t = &p->lane->stages[STAGE_NEXT];

	trace_span(p->lane->track, TRACE_NEXT, p->asked_ns, now, batch->epoch,
		   batch->number);
	add(p, PACE_BATCHES, 1);
	add(p, PACE_SAMPLES, batch->num_samples);
	atomic_store_explicit(&p->epoch, batch->epoch, memory_order_relaxed);
	atomic_store_explicit(&p->number, batch->number, memory_order_relaxed);
	counters_add_own(&t->items, 1);
	counters_add_own(&t->bytes, bytes);
	counters_add_own(&t->times[histogram_bucket(now - p->asked_ns)], 1);
	p->given_ns = now;
	p->is_waiting = false;
}

void throughput_figures(const struct throughput *p, struct rank_figures *out)
{
	static const enum figure sums[PACE_SUMS] = {
		[PACE_BATCHES] = FIGURE_BATCHES,
		[PACE_SAMPLES] = FIGURE_SAMPLES,
		[PACE_WAITS] = FIGURE_WAITS,
		[PACE_WAIT_NS] = FIGURE_WAIT_NS,
		[PACE_TRAINER_NS] = FIGURE_TRAINER_NS,
		[PACE_READY] = FIGURE_QUEUE_READY,
	};
	static const enum figure delays[STAGES] = {
		[STAGE_READ] = FIGURE_READ_DELAY_NS,
		[STAGE_DECODE] = FIGURE_DECODE_DELAY_NS,
		[STAGE_TRANSFORM] = FIGURE_TRANSFORM_DELAY_NS,
		[STAGE_UPLOAD] = FIGURE_UPLOAD_DELAY_NS,
		[STAGE_MAKERS] = FIGURE_MAKERS_DELAY_NS,
		[STAGE_NETWORK] = FIGURE_NETWORK_DELAY_NS,
	};

	out->epoch = counters_get(&p->epoch);
	out->number = counters_get(&p->number);
	for (size_t i = 0; i < PACE_SUMS; i++) {
		if (sums[i])
			out->n[sums[i]] = counters_get(&p->sums[i]);
	}
	for (size_t i = 0; i < STAGES; i++) {
		if (delays[i])
			out->n[delays[i]] = counters_get(&p->delay_ns[i]);
	}
	out->n[FIGURE_QUEUE_CAPACITY] = out->n[FIGURE_BATCHES] * p->places;
}

/* --- an epoch --- */

void throughput_begin(struct throughput *p, uint64_t now)
{
	p->is_whole = true;
	p->begun_ns = now;
	for (size_t i = 0; i < PACE_SUMS; i++)
		p->sums_before[i] = counters_get(&p->sums[i]);
	for (size_t i = 0; i < STAGES; i++)
		p->delay_before[i] = counters_get(&p->delay_ns[i]);
}

void throughput_break(struct throughput *p)
{
	p->is_whole = false;
	p->is_waiting = false;
	p->given_ns = 0;
}

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

/* Returns the stage with the longest delay since the start of the epoch. */
static const char *slowest(const struct throughput *p)
{
	size_t most = 0;
	uint64_t n[STAGES];

	for (size_t i = 0; i < STAGES; i++) {
		n[i] = counters_get(&p->delay_ns[i]) - p->delay_before[i];
		if (n[i] > n[most])
			most = i;
	}
	return stage_name((enum stage)most);
}

void throughput_end(struct throughput *p, uint64_t now, uint64_t epoch,
		    char line[PACE_LINE_SIZE])
{
	double seconds = 1e-9 * (double)(now - p->begun_ns), waited;
	uint64_t n[PACE_SUMS];
	bool is_whole = p->is_whole;

	throughput_break(p);
	*line = '\0';
	for (size_t i = 0; i < PACE_SUMS; i++)
		n[i] = counters_get(&p->sums[i]) - p->sums_before[i];
	if (!is_whole || !n[PACE_BATCHES])
		return;
	waited = ratio(n[PACE_WAIT_NS], n[PACE_WAIT_NS] + n[PACE_TRAINER_NS]);
	snprintf(
		line, PACE_LINE_SIZE,
		"epoch %llu: %llu samples in %.*f s, %.0f/s; queue %.0f %% full; the trainer waited %.1f %% of the time for data: %s%s%s",
		(unsigned long long)epoch, (unsigned long long)n[PACE_SAMPLES],
		seconds < 100, seconds, (double)n[PACE_SAMPLES] / seconds,
		100 * ratio(n[PACE_READY], n[PACE_BATCHES] * p->places),
		100 * waited,
		waited < enough ? "data is not your bottleneck" : "the stage ",
		waited < enough ? "" : slowest(p),
		waited < enough ? "" : " made it wait longest");
}
