/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/doctor/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/clock.h"
#include "loader/tools/machine/cpu.h"
#include "loader/tools/machine/process.h"
#include "loader/tools/ui/no_batches.h"

enum { JIT_WAIT_MS = 5000, PREFETCH = 2 };

struct run {
	const struct run_place *place;
	const struct run_plan *plan;
	struct beton_loader *loader;
	struct beton_loader_info info;
	uint64_t since_seek; /* samples, since the last seek to the start */
	uint64_t rows;
	uint64_t all_rows; /* including the warm-up */
	uint64_t output_bytes;
	uint32_t batch;
	char *why;
};

/* Counters at one end of a measurement. */
struct ends {
	int64_t ns;
	double own_s, daemon_s, trainer_s;
	uint64_t bytes, uploaded;
	struct machine_times machine;
};

static double own_cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void read_ends(const struct run *run, struct ends *out)
{
	struct beton_stage_stats s[RUN_STAGES_MAX];
	size_t n = beton_loader_stats(run->loader, s, RUN_STAGES_MAX);

	*out = (struct ends){ 0 };
	for (size_t i = 0; i < n && i < RUN_STAGES_MAX; i++) {
		if (!strcmp(s[i].name, "read"))
			out->bytes = s[i].bytes;
		if (!strcmp(s[i].name, "upload"))
			out->uploaded = s[i].bytes;
	}
	machine_times_read(run->place->root, &out->machine);
	if (run->place->daemon)
		out->daemon_s = process_cpu_s("", run->place->daemon);
	if (run->place->trainer)
		out->trainer_s = process_cpu_s("", run->place->trainer);
	out->own_s = own_cpu_s();
	out->ns = clock_ns();
}

static uint64_t samples_of(const struct run *run)
{
	return run->plan->samples ? run->plan->samples : run->place->samples;
}

/* Takes the next batch and releases it at once. Starts over after the last
   sample that the run may use. */
static int take_batch(struct run *run)
{
	const struct beton_batch *batch;
	int r;

	if (*run->place->stop)
		return -ECANCELED;
	if (samples_of(run) && run->since_seek >= samples_of(run)) {
		beton_loader_seek(run->loader, 0);
		run->since_seek = 0;
	}
	r = beton_loader_next(run->loader, &batch);
	if (r == -ENODATA)
		r = beton_loader_next(run->loader, &batch);
	if (r) {
		snprintf(run->why, RUN_WHY_SIZE, "%s",
			 beton_loader_error(run->loader));
		return r;
	}
	run->rows += batch->num_samples;
	run->all_rows += batch->num_samples;
	run->since_seek += batch->num_samples;
	if (batch->num_samples > run->batch)
		run->batch = batch->num_samples;
	for (uint32_t i = 0; i < batch->num_outputs; i++)
		run->output_bytes += batch->outputs[i].size;
	beton_loader_release(run->loader, batch);
	return 0;
}

/*
 * Runs until every slot of the ring was used and the kernel is compiled. Both
 * cost time once only, and the compiler's process would count as a noisy
 * neighbor.
 */
static int warm_up(struct run *run)
{
	uint32_t prefetch =
		run->place->prefetch ? run->place->prefetch : PREFETCH;
	int64_t end = clock_ns() + (int64_t)(1e9 * run->plan->seconds);
	int64_t latest = clock_ns() + JIT_WAIT_MS * INT64_C(1000000);
	struct timespec pause = { .tv_nsec = 5000000 };
	int r = 0;

	for (uint32_t i = 0;
	     !r && (i < 2 * (prefetch + 1) || run->rows < run->plan->samples);
	     i++) {
		r = take_batch(run);
		if (clock_ns() >= end && !run->plan->samples)
			break;
	}
	beton_loader_info(run->loader, &run->info);
	while (!r && !strcmp(run->info.jit, "generic") && clock_ns() < latest &&
	       !*run->place->stop) {
		nanosleep(&pause, NULL);
		beton_loader_info(run->loader, &run->info);
	}
	return r ? r : take_batch(run);
}

static void figures_between(const struct ends *a, const struct ends *b,
			    uint64_t rows, struct run_figures *f)
{
	double s = 1e-9 * (double)(b->ns - a->ns);
	double own = b->own_s - a->own_s + b->daemon_s - a->daemon_s;
	uint64_t periods = b->machine.periods - a->machine.periods;

	f->rate = (double)rows / s;
	f->cpu_us = 1e6 * own / (double)rows;
	f->bytes = (double)(b->bytes - a->bytes) / (double)rows;
	f->cores = own / s;
	f->others = (b->machine.busy_s - a->machine.busy_s -
		     (b->trainer_s - a->trainer_s)) /
			    s -
		    f->cores;
	/* Both times are counted in ticks, so their difference can be
	   negative. */
	if (f->others < 0)
		f->others = 0;
	f->stolen = (b->machine.steal_s - a->machine.steal_s) / s;
	f->uploaded = (double)(b->uploaded - a->uploaded) / (double)rows;
	f->throttled = periods ? (double)(b->machine.throttled -
					  a->machine.throttled) /
					 (double)periods
			       : 0;
	f->rows = rows;
}

static int measure_loader(struct run *run, struct run_figures *out)
{
	int64_t end;
	struct ends a, b;
	int r = warm_up(run);

	run->rows = 0;
	run->output_bytes = 0;
	read_ends(run, &a);
	end = a.ns + (int64_t)(1e9 * run->plan->seconds);
	/* At least two batches: the first may have been ready. */
	for (unsigned i = 0; !r && (i < 2 || clock_ns() < end); i++)
		r = take_batch(run);
	read_ends(run, &b);
	if (r)
		return r;
	figures_between(&a, &b, run->rows, out);
	out->output = (double)run->output_bytes / (double)run->rows;
	return 0;
}

static void note_output(const struct beton_output *o, struct run_figures *out)
{
	out->on_gpu |= o->device_type == BETON_DEVICE_CUDA;
	if (o->ndim != 3 || o->ragged)
		return;
	for (uint32_t i = 0; i < o->ndim; i++) {
		if ((double)o->shape[i] > out->side)
			out->side = (double)o->shape[i];
	}
}

static void note_info(const struct run *run, struct run_figures *out)
{
	struct beton_output o;

	out->failed = (double)beton_loader_failed_samples(run->loader) /
		      (double)(run->all_rows ? run->all_rows : 1);
	out->workers = run->info.workers;
	out->samples = run->info.samples;
	out->batch = run->batch;
	snprintf(out->spec, sizeof(out->spec), "%s", run->info.spec);
	snprintf(out->source, sizeof(out->source), "%s", run->info.source);
	snprintf(out->delivery, sizeof(out->delivery), "%s",
		 run->info.delivery);
	snprintf(out->jit, sizeof(out->jit), "%s", run->info.jit);
	for (uint32_t i = 0; !beton_loader_output(run->loader, i, &o); i++)
		note_output(&o, out);
	out->num_stages =
		beton_loader_stats(run->loader, out->stages, RUN_STAGES_MAX);
	if (out->num_stages > RUN_STAGES_MAX)
		out->num_stages = RUN_STAGES_MAX;
}

static int open_loader(struct run *run)
{
	const struct run_place *place = run->place;
	const struct run_plan *plan = run->plan;
	struct beton_loader_options options = {
		.size = sizeof(options),
		.spec = place->spec,
		.subset = place->subset,
		.pipeline = plan->pipeline,
		.source = plan->source,
		.delivery = place->delivery,
		.cache = plan->cache ? plan->cache : place->cache,
		.cache_size = place->cache_size,
		.cold_size = place->cold_size,
		.workers = plan->workers,
		.prefetch = place->prefetch,
		.until = plan->until,
		.job = "doctor",
		.on_error = BETON_ON_ERROR_SKIP,
		.error = run->why,
		.error_size = RUN_WHY_SIZE,
	};
	char why[NO_BATCHES_SIZE];
	int r = beton_loader_open(plan->path ? plan->path : place->path,
				  &options, &run->loader);

	if (r)
		return r;
	beton_loader_info(run->loader, &run->info);
	if (run->info.steps)
		return 0;
	r = no_batches_text(&run->info, why);
	snprintf(run->why, RUN_WHY_SIZE, "%s", why);
	return r;
}

int run_measure(const struct run_place *place, const struct run_plan *plan,
		struct run_figures *out, char *why)
{
	struct run run = { .place = place, .plan = plan, .why = why };
	struct run_figures f = { 0 };
	int r;

	why[0] = '\0';
	r = open_loader(&run);
	r = r ? r : measure_loader(&run, &f);
	if (!r) {
		beton_loader_info(run.loader, &run.info);
		note_info(&run, &f);
	}
	beton_loader_close(run.loader);
	if (!r)
		*out = f;
	return r;
}
