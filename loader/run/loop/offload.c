/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/loop/offload.h"

#include "fs/base/util/bytes.h"
#include "fs/base/util/typed.h"

enum { STAY_PAYS = 8 };

/* The part that limits the throughput. */
enum scarce { SCARCE_NONE, SCARCE_LOADER, SCARCE_CONSUMER };

bool offload_parse(const char *word, enum offload_mode *out)
{
	const struct typed modes = TYPED_WORD_OF("auto|gpu|cpu|turns");
	uint64_t i;

	if (!typed_parse_string(&modes, word, &i))
		return false;
	*out = (enum offload_mode)i;
	return true;
}

const char *offload_name(enum offload_side side)
{
	return side == OFFLOAD_GPU ? "gpu" : "cpu";
}

void offload_init(struct offload *b, enum offload_mode mode, uint32_t workers)
{
	*b = (struct offload){
		.mode = mode,
		.side = mode == OFFLOAD_ALL_CPU ? OFFLOAD_CPU : OFFLOAD_GPU,
		.workers = workers,
		.next_wait = 1,
	};
}

enum offload_side offload_choose(struct offload *b)
{
	enum offload_side side = b->side;

	if (b->mode == OFFLOAD_TURNS)
		b->side = !side;
	return side;
}

static void sum(struct offload_sum *s, const struct offload_batch *batch)
{
	s->batches++;
	s->rows += batch->rows;
	s->busy_ns += batch->busy_ns;
	s->bytes += batch->bytes;
	s->starved += batch->starved;
	s->full += batch->full;
	s->blocked += batch->blocked;
	if (!batch->period_ns)
		return;
	s->periods++;
	s->period_ns += batch->period_ns;
	s->longest_ns = max_u64(s->longest_ns, batch->period_ns);
}

/* Returns the nanoseconds of CPU time per row. */
static double busy(const struct offload_sum *s)
{
	return s->rows ? (double)s->busy_ns / (double)s->rows : 0;
}

static double bytes(const struct offload_sum *s)
{
	return s->rows ? (double)s->bytes / (double)s->rows : 0;
}

/* Returns the nanoseconds between two rows, without the longest period, or 0 if
   unknown. */
static double period(const struct offload_sum *s)
{
	double rows;

	if (s->periods < 2 || !s->rows)
		return 0;
	rows = (double)s->rows / s->batches * (s->periods - 1);
	return (double)(s->period_ns - s->longest_ns) / rows;
}

/* Check `blocked` first: if the GPU is the bottleneck, it does not release
   memory to the loader, so that the consumer waits as well. */
static enum scarce find_scarce(const struct offload_sum *s)
{
	if (2 * s->blocked >= s->batches)
		return SCARCE_CONSUMER;
	if (4 * s->starved >= s->batches)
		return SCARCE_LOADER;
	if (4 * s->full >= 3 * s->batches)
		return SCARCE_CONSUMER;
	return SCARCE_NONE;
}

/* The margin covers the noise of measurements. */
static bool cpu_is_lighter(const struct offload *b)
{
	return b->ratio > 0 && b->ratio < 0.9;
}

/* Whether the CPU has enough spare time to finish the rows as well. */
static bool has_time(const struct offload *b)
{
	double time = period(&b->device) * b->workers;

	/* Without a measured ratio, require some spare time for a try. */
	if (b->ratio <= 0)
		return busy(&b->device) < 0.75 * time;
	return busy(&b->device) * b->ratio < 0.9 * time;
}

/* Delays the next try, each time by twice the last delay. */
static void put_off(struct offload *b)
{
	b->wait = b->next_wait;
	if (b->next_wait < UINT32_MAX)
		b->next_wait *= 2;
}

/* Returns whether to try the CPU, after a window on the GPU's side. */
static bool is_worth_a_try(struct offload *b, enum scarce scarce)
{
	if (b->wait) {
		b->wait--;
		return false;
	}
	if (scarce == SCARCE_LOADER)
		return b->ratio <= 0 || cpu_is_lighter(b);
	if (scarce == SCARCE_NONE)
		return false;
	if (has_time(b))
		return true;
	/* The measured ratio can be out of date, for example after the compiler
	   has finished. */
	if (b->ratio > 0)
		put_off(b);
	b->ratio = 0;
	return false;
}

/* Returns whether the throughput is lower than before, after the first window
   of a try. If the GPU's copies were the bottleneck, the try uploads more
   bytes, so it must increase the throughput. */
static bool is_slower(const struct offload *b, const struct offload_sum *now)
{
	bool must_pay = b->was_blocked && bytes(now) > bytes(&b->device);

	return period(now) > (must_pay ? 0.95 : 1.05) * period(&b->device);
}

/* Returns whether to switch back to the GPU, after a window on the CPU's
   side. */
static bool has_failed(const struct offload *b, enum scarce scarce,
		       const struct offload_sum *now)
{
	if (scarce == SCARCE_LOADER && !cpu_is_lighter(b))
		return true;
	return !b->stay && is_slower(b, now);
}

/* Decides after a window on the GPU's side. */
static void judge_gpu(struct offload *b, const struct offload_sum *now)
{
	b->device = *now;
	if (!is_worth_a_try(b, find_scarce(now)))
		return;
	b->was_blocked = 2 * now->blocked >= now->batches;
	b->side = OFFLOAD_CPU;
	b->stay = 0;
}

/* Only the first window of a try is compared with the GPU's, because they
   follow each other. Later windows may have images of another size. */
static void judge_cpu(struct offload *b, const struct offload_sum *now)
{
	if (!b->stay && busy(&b->device) > 0)
		b->ratio = busy(now) / busy(&b->device);
	if (!has_failed(b, find_scarce(now), now)) {
		b->stay++;
		return;
	}
	/* A try that lasts much longer than the wait before it is a success. */
	if (b->stay >= STAY_PAYS * b->next_wait)
		b->wait = b->next_wait;
	else
		put_off(b);
	b->side = OFFLOAD_GPU;
}

void offload_add(struct offload *b, const struct offload_batch *batch)
{
	struct offload_sum now;

	/* The loader began this batch before the last change of side. */
	if (b->mode != OFFLOAD_BY_COST || batch->side != b->side)
		return;
	sum(&b->window, batch);
	if (b->window.batches < OFFLOAD_WINDOW)
		return;
	now = b->window;
	b->window = (struct offload_sum){ 0 };
	if (b->side == OFFLOAD_GPU)
		judge_gpu(b, &now);
	else
		judge_cpu(b, &now);
}
