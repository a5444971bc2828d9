/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/doctor/trials.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fs/base/files/paths.h"
#include "fs/base/util/clock.h"
#include "loader/pipeline/graph/edit.h"
#include "loader/tools/doctor/estimate.h"
#include "loader/tools/doctor/network.h"
#include "loader/tools/doctor/variant.h"
#include "loader/tools/ui/sort.h"

enum {
	ROUNDS = 3,
	/* The whole pipeline runs after every EVERY-th job, because all jobs
	   are compared to it. */
	EVERY = 4,
	TURNS = 8,
	JOBS_MAX = RUNGS + DOCTOR_OPS_MAX + DOCTOR_SWEEP_MAX + 2 * VARIANTS + 1,
	SAMPLES_MAX = 4096, /* that a run uses */
	NETWORK_LEAST_S = 2,
	NETWORK_S = 4,
	NETWORK_BATCH = 8,
	VARIANT_SAMPLES = 96,
	BATCH_MAX = 256, /* of a run; large enough that the cost per batch does
			    not count */
};

/* If a larger share of samples fails, the run did not measure the pipeline. */
#define FAILED_MOST 0.5

/* A configuration to run several times. */
struct trials_job {
	struct run_plan plan;
	char *pipeline; /* owned, as the path */
	int fd;		/* of the file in memory at the plan's path, or -1 */
	char path[32];
	struct figure *to;
	unsigned rounds;
	unsigned done;
	double rates[TURNS], cpus[TURNS];
	struct run_figures last;
	bool failed;
	char why[RUN_WHY_SIZE];
};

struct ladder {
	const struct ladder_options *options;
	struct evidence *e;
	struct run_place place; /* with the spec of the doctor */
	char spec[512];
	struct trials_job jobs[JOBS_MAX];
	size_t num_jobs;
	size_t num_needed; /* jobs that a diagnosis requires */
	uint32_t workers;
	double run_s;	       /* of one run */
	uint64_t batch;	       /* of runs */
	const char *base_spec; /* without the batch size of runs */
	int copy_fd; /* samples of a URL in memory, at copy_path; or -1 */
	char copy_path[32];
	int64_t started_ns, end_ns;
	double others[TURNS], stolen[TURNS], taken[TURNS];
	double throttled[TURNS];
	unsigned num_others;
	/* Like `taken`, for variants, which never wait for a disk; the
	   minimum. */
	double taken_in_memory;
};

static double seconds_since(int64_t ns)
{
	return 1e-9 * (double)(clock_ns() - ns);
}

static void progress(struct ladder *l, const char *what)
{
	double all = 1e-9 * (double)(l->end_ns - l->started_ns);
	double done = all > 0 ? seconds_since(l->started_ns) / all : 0;

	if (l->options->progress)
		l->options->progress(l->options->arg, fmin(done, 1), what);
}

static bool is_stopped(const struct ladder *l)
{
	return *l->place.stop;
}

/* --- what runs look at --------------------------------------------------- */

/* Writes the same spec with another batch size. */
static void spec_with_batch(const char *spec, uint64_t batch, char *out,
			    size_t size)
{
	const char *old = spec, *rest;

	while ((old = strstr(old, "batch=")) && old != spec && old[-1] != ',')
		old++;
	if (!old) {
		snprintf(out, size, "%s%sbatch=%llu", spec, *spec ? "," : "",
			 (unsigned long long)batch);
		return;
	}
	rest = old + strcspn(old, ",");
	snprintf(out, size, "%.*sbatch=%llu%s", (int)(old - spec), spec,
		 (unsigned long long)batch, rest);
}

/* Returns the number of samples that can be read from the device meanwhile. */
static double samples_from_disk(const struct evidence *e, double seconds)
{
	double bytes = (double)e->file_size / e->model.samples;

	if (e->network.is_copied || e->disk.resident > 0.95 ||
	    e->small.bytes <= 0 || bytes <= 0)
		return SAMPLES_MAX;
	return seconds * e->small.bytes / bytes;
}

/* Chooses batches that are small enough for several in a run, and no more
   samples than can be read into memory in a part of the time. */
static int choose_samples(struct ladder *l)
{
	double reads = samples_from_disk(l->e, 0.1 * l->options->seconds);
	struct run_plan plan = { .pipeline = l->options->pipeline,
				 .cache = "os",
				 .workers = l->options->workers,
				 .seconds = 0.2 };
	const char *spec = l->base_spec;
	struct run_figures f;
	char why[RUN_WHY_SIZE];
	double least, batch;
	int r;

	spec = spec ? spec : "";
	l->place.samples = (uint64_t)fmin(fmax(reads, 8), SAMPLES_MAX);
	batch = fmin(fmax(reads / 16, 1), 16);
	spec_with_batch(spec, (uint64_t)batch, l->spec, sizeof(l->spec));
	l->place.spec = l->spec;
	r = run_measure(&l->place, &plan, &f, why);
	if (r) {
		if (r != -ECANCELED)
			log_error(l->options->log, "%s", why);
		return r;
	}
	l->workers = f.workers;
	least = fmin(8.0 * f.workers, BATCH_MAX);
	batch = fmin(fmax(f.rate * l->run_s / 8, least), BATCH_MAX);
	batch = fmin(batch, fmax(reads / 16, 1));
	batch = fmin(batch, fmax(floor((double)f.samples / 2), 1));
	l->batch = (uint64_t)batch;
	l->place.samples =
		(uint64_t)fmin(fmax(8 * batch, 2 * f.rate * l->run_s),
			       (double)l->place.samples);
	spec_with_batch(spec, (uint64_t)batch, l->spec, sizeof(l->spec));
	return 0;
}

/* --- what is run --------------------------------------------------------- */

static struct trials_job *add(struct ladder *l, struct figure *to,
			      unsigned rounds)
{
	/* JOBS_MAX has room for the jobs of all tables. */
	struct trials_job *j = &l->jobs[l->num_jobs++];

	*j = (struct trials_job){ .to = to, .rounds = rounds, .fd = -1 };
	/* Use the file in memory, because the cost of a miss is measured
	   separately. */
	j->plan = (struct run_plan){ .pipeline = l->options->pipeline,
				     .cache = "os",
				     .workers = l->workers,
				     .seconds = l->run_s };
	return j;
}

static void add_rungs(struct ladder *l)
{
	static const enum beton_stage until[RUNGS] = {
		[RUNG_CONSTANT] = BETON_STAGE_ALL,
		[RUNG_ALL] = BETON_STAGE_ALL,
		[RUNG_TRANSFORM] = BETON_STAGE_TRANSFORM,
		[RUNG_DECODE] = BETON_STAGE_DECODE,
		[RUNG_READ] = BETON_STAGE_READ,
	};

	for (enum rung r = 0; r < RUNG_COLD; r++) {
		struct trials_job *j = add(l, &l->e->ladder[r], ROUNDS);

		j->plan.until = until[r];
		/* If there is no GPU, this is the whole pipeline. */
		if (r == RUNG_TRANSFORM &&
		    !edit_has(l->options->pipeline, "cuda"))
			j->rounds = 0;
		if (r == RUNG_CONSTANT) {
			j->plan.source = "constant";
			j->rounds = 1;
		}
	}
}

/* Uploads finished batches repeatedly, to measure the link alone. */
static void add_upload(struct ladder *l)
{
	if (edit_has(l->options->pipeline, "cuda"))
		add(l, &l->e->upload, ROUNDS)->plan.source = "memory";
}

static void add_ops(struct ladder *l)
{
	size_t n = edit_num_ops(l->options->pipeline);
	struct evidence *e = l->e;

	for (size_t i = 0; i < n && i < DOCTOR_OPS_MAX; i++) {
		struct left_out *o = &e->ops[i];
		char *name, *text = NULL;
		struct trials_job *j;

		if (edit_op(l->options->pipeline, i, &o->written, &name))
			return;
		free(name);
		e->num_ops = i + 1;
		if (edit_without(l->options->pipeline, i, &text))
			continue;
		o->possible = true;
		j = add(l, &o->without, ROUNDS);
		j->pipeline = text;
		j->plan.pipeline = text;
	}
}

static void add_sweep(struct ladder *l)
{
	unsigned most = 2 * l->e->cpu.online;
	struct evidence *e = l->e;

	for (unsigned w = 1; w <= most && e->num_sweep < DOCTOR_SWEEP_MAX;
	     w *= 2) {
		struct sweep_point *p = &e->sweep[e->num_sweep++];

		p->workers = w;
		if (w != l->workers)
			add(l, &p->figure, 2)->plan.workers = w;
	}
}

static struct trials_job *add_edited(struct ladder *l, enum variant v,
				     char *text)
{
	struct trials_job *j = add(l, &l->e->variants[v], 2);

	j->pipeline = text;
	j->plan.pipeline = text;
	return j;
}

static void add_pipelines(struct ladder *l)
{
	const char *pipeline = l->options->pipeline;
	char cache[64];
	char *text;
	double size;

	if (!edit_with_first(pipeline, "decode(draft)", false, &text))
		add_edited(l, VARIANT_DRAFT, text);
	/* A buffer for all samples of a run, with a reserve. */
	size = 2 * 3 * l->e->width * l->e->height * (double)l->place.samples;
	if (size < 0.2 * (double)l->e->memory.size.available && size > 0 &&
	    l->e->jpegs > 0) {
		snprintf(cache, sizeof(cache), "cache(decoded, %.0f)",
			 fmax(size, 1 << 20));
		if (!edit_with_first(pipeline, cache, true, &text))
			add_edited(l, VARIANT_CACHED, text)->plan.samples =
				l->batch * 4;
	}
	if (l->e->num_gpus && !edit_has(pipeline, "cuda") &&
	    !edit_with_before(pipeline, "cuda(0)", "normalize", &text))
		add_edited(l, VARIANT_GPU, text);
}

static void add_variants(struct ladder *l, struct variant_source *source)
{
	struct evidence *e = l->e;
	/* If a slow disk has taken all the time, these runs matter most. */
	int64_t latest = clock_ns() + (int64_t)(3e8 * l->options->seconds);

	for (enum variant v = 0; v <= VARIANT_QUALITY; v++) {
		struct trials_job *j;
		int fd;

		if (is_stopped(l) || clock_ns() > latest)
			return;
		progress(l, "variants");
		/* The file has no name, so that it disappears when the process
		   ends. */
		fd = memfd_create("beton-variant", MFD_CLOEXEC);
		if (fd < 0)
			return;
		if (variant_write(source, v, e, fd)) {
			close(fd);
			continue;
		}
		j = add(l, &e->variants[v], 2);
		j->fd = fd;
		snprintf(j->path, sizeof(j->path), "/proc/self/fd/%d", fd);
		j->plan.path = j->path;
		e->variants[v].bytes = variant_bytes(source);
	}
}

/* --- running ------------------------------------------------------------- */

static double median_of(const double *values, unsigned n)
{
	double v[TURNS];

	memcpy(v, values, n * sizeof(*v));
	sort_reals(v, n);
	return sort_median(v, n);
}

static double spread(const double *values, unsigned n)
{
	double low = INFINITY, high = 0;

	for (unsigned i = 0; i < n; i++) {
		low = fmin(low, values[i]);
		high = fmax(high, values[i]);
	}
	return high - low;
}

static double lowest(const double *values, unsigned n)
{
	double low = values[0];

	for (unsigned i = 1; i < n; i++)
		low = fmin(low, values[i]);
	return low;
}

static void take_figures(const struct trials_job *j)
{
	struct figure *f = j->to;

	f->known = true;
	f->rate = median_of(j->rates, j->done);
	/* Take the minimum, because disturbances can only add CPU time. */
	f->cpu_us = lowest(j->cpus, j->done);
	f->runs = j->done;
	f->spread = spread(j->rates, j->done);
	if (j->last.bytes > 0 && !j->plan.path)
		f->bytes = j->last.bytes;
}

/* Returns the place of a job. A variant has few samples and therefore smaller
   batches. */
static struct run_place place_of(const struct ladder *l,
				 const struct trials_job *j, char *spec,
				 size_t size)
{
	struct run_place place = l->place;

	if (!j->plan.path)
		return place;
	spec_with_batch("order=random", 8, spec, size);
	place.spec = spec;
	place.subset = NULL;
	place.delivery = NULL;
	place.daemon = 0;
	place.samples = 0;
	return place;
}

/*
 * Returns the cores that other processes and guests took from the pipeline's
 * threads: at most the cores that these threads could have used in addition.
 * Both counts together may exceed that, because they are read one after the
 * other.
 */
static double taken(const struct ladder *l, const struct run_figures *f)
{
	double cores = machine_cpu_cores(&l->e->cpu);

	/* If a quota limits this process, CPUs may be left for others. */
	return fmax(fmin(f->others + f->stolen - (l->e->cpu.allowed - cores),
			 fmin(cores, f->workers) - f->cores),
		    0);
}

static int run_job(struct ladder *l, struct trials_job *j)
{
	char spec[64];
	struct run_place place = place_of(l, j, spec, sizeof(spec));
	int r = run_measure(&place, &j->plan, &j->last, j->why);

	if (r == -ECANCELED)
		return r;
	/* If the pipeline does not resize, images of another size than the
	   first fail. */
	if (r || j->last.failed > FAILED_MOST) {
		j->failed = true;
		j->to->known = false;
		return 0;
	}
	j->rates[j->done] = j->last.rate;
	j->cpus[j->done++] = j->last.cpu_us;
	if (j->to == &l->e->ladder[RUNG_ALL]) {
		l->others[l->num_others] = j->last.others;
		l->stolen[l->num_others] = j->last.stolen;
		l->taken[l->num_others] = taken(l, &j->last);
		l->throttled[l->num_others++] = j->last.throttled;
	}
	if (j->plan.path)
		l->taken_in_memory =
			fmin(l->taken_in_memory, taken(l, &j->last));
	take_figures(j);
	return 0;
}

static int run_whole(struct ladder *l)
{
	struct trials_job *j = &l->jobs[RUNG_ALL];

	if (j->failed || j->done >= TURNS - ROUNDS || clock_ns() > l->end_ns)
		return 0;
	return run_job(l, j);
}

/* Run as many rounds as time permits. The first round matters most. */
static int run_jobs(struct ladder *l)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < l->num_jobs; i++) {
			struct trials_job *j = &l->jobs[i];
			int r;

			if (j->failed || round >= j->rounds)
				continue;
			/* Jobs on data in memory take little time: run them in
			   any case. */
			if (clock_ns() > l->end_ns &&
			    (round || (i >= l->num_needed && !j->plan.path)))
				continue;
			progress(l, "runs");
			r = run_job(l, j);
			if (!r && i % EVERY == EVERY - 1)
				r = run_whole(l);
			if (r)
				return r;
		}
	}
	return 0;
}

static const struct trials_job *job_of(const struct ladder *l, enum rung rung)
{
	for (size_t i = 0; i < l->num_jobs; i++) {
		if (l->jobs[i].to == &l->e->ladder[rung])
			return &l->jobs[i];
	}
	return NULL;
}

static void take_whole(struct ladder *l, const struct run_figures *f)
{
	struct evidence *e = l->e;
	struct model *m = &e->model;

	snprintf(e->delivery, sizeof(e->delivery), "%s", f->delivery);
	snprintf(e->jit, sizeof(e->jit), "%s", f->jit);
	e->on_gpu = f->on_gpu;
	e->others = median_of(l->others, l->num_others);
	e->stolen = median_of(l->stolen, l->num_others);
	/* While the pipeline waits for a disk, CPU use of others costs it
	   nothing: limit the figure by that of runs in memory. */
	m->others =
		fmin(median_of(l->taken, l->num_others), l->taken_in_memory);
	e->throttled = median_of(l->throttled, l->num_others);
	m->workers = f->workers;
	/* Most JPEGs have luma and a quarter of each chroma. */
	e->cached_bytes = 1.5 * e->width * e->height;
	m->moved_bytes = 2 * (f->bytes + f->output);
	/* Queueing work for a GPU takes no time; its bandwidth does. */
	if (e->upload.known) {
		m->upload_bytes = f->uploaded;
		m->upload_rate = e->upload.rate * f->uploaded;
	}
	if (f->on_gpu)
		e->pinned = (uint64_t)(3 * f->batch * f->output);
	for (size_t i = 0; i < e->num_sweep; i++) {
		if (e->sweep[i].workers == f->workers)
			e->sweep[i].figure = e->ladder[RUNG_ALL];
	}
}

static int check_whole(struct ladder *l)
{
	const struct trials_job *all = job_of(l, RUNG_ALL);

	if (all && all->done) {
		take_whole(l, &all->last);
		return 0;
	}
	log_error(l->options->log, "%s",
		  all ? all->why : "no time for a single run: raise --seconds");
	return -EIO;
}

static void close_jobs(struct ladder *l)
{
	for (size_t i = 0; i < l->num_jobs; i++) {
		if (l->jobs[i].fd >= 0)
			close(l->jobs[i].fd);
		free(l->jobs[i].pipeline);
	}
	if (l->copy_fd >= 0)
		close(l->copy_fd);
}

/* --- datasets behind URLs ------------------------------------------------ */

/* Reads samples that the cache does not have, in the order of the training, and
   if that is random, in large pieces, too. */
static int measure_network(struct ladder *l, char *why)
{
	struct run_place place = l->place;
	struct network_plan plan = { .place = &place };
	const char *spec = l->base_spec;
	struct evidence *e = l->e;
	char large[576];
	int r;

	plan.seconds = fmin(fmax(0.1 * l->options->seconds, NETWORK_LEAST_S),
			    NETWORK_S);
	spec_with_batch(spec, NETWORK_BATCH, l->spec, sizeof(l->spec));
	place.spec = l->spec;
	progress(l, "network");
	r = network_measure(&plan, e, why);
	e->large = e->small;
	if (r || strcmp(e->order, "random") != 0 || strstr(spec, "order="))
		return r;
	snprintf(large, sizeof(large), "order=quasi_random,%s", l->spec);
	place.spec = large;
	plan.is_large = true;
	return network_measure(&plan, e, why);
}

/* The stages run on samples in memory, because the cache of a loader ends with
   it, and each run would read the network. */
static int copy_samples(struct ladder *l, struct variant_source *source)
{
	struct evidence *e = l->e;
	int r;

	l->copy_fd = memfd_create("beton-samples", MFD_CLOEXEC);
	if (l->copy_fd < 0)
		return -errno;
	r = variant_write(source, VARIANT_SAME, e, l->copy_fd);
	if (r)
		return r;
	snprintf(l->copy_path, sizeof(l->copy_path), "/proc/self/fd/%d",
		 l->copy_fd);
	l->place.path = l->copy_path;
	l->place.subset = NULL;
	l->base_spec = "order=random";
	e->network.is_copied = true;
	doctor_note(
		e,
		"the stages were measured with %zu samples in memory, the network by itself",
		variant_samples(source));
	return 0;
}

static int prepare_remote(struct ladder *l, struct variant_source **source)
{
	bool is_url = paths_is_url(l->place.path);
	const char *path = is_url ? l->place.path : l->e->backing;
	char why[RUN_WHY_SIZE] = "";
	struct evidence *e = l->e;
	int r = measure_network(l, why);

	if (r) {
		if (r != -ECANCELED)
			log_error(l->options->log, "%s", why);
		return r;
	}
	if (!e->network.known)
		doctor_note(
			e,
			"the network was not measured, because a cache or the disk tier had all samples that were read");
	progress(l, "samples");
	r = variant_source_open(path, VARIANT_SAMPLES,
				is_url ? l->options->log : NULL, e, source);
	if (r && !is_url)
		doctor_note(
			e,
			"the gain of other encodings was not measured: cannot read samples of %.100s",
			path);
	if (is_url)
		r = r ? r : copy_samples(l, *source);
	else
		r = 0;
	if (r)
		return r;
	return choose_samples(l);
}

/* Sizes in a file follow from those of a batch. */
static void size_remote(struct ladder *l)
{
	struct evidence *e = l->e;
	double bytes = e->ladder[RUNG_READ].bytes * e->model.samples;

	e->file_size = (uint64_t)fmin(bytes, 1e18);
	e->disk.size = e->file_size;
	e->disk.resident =
		bytes > 0 ? fmin(e->network.tier_stored / bytes, 1) : 0;
}

static int prepare(struct ladder *l, struct variant_source **source)
{
	struct evidence *e = l->e;
	int r = ladder_look_at_dataset(l->options, e);

	if (r)
		return r;
	if (e->network.is_remote)
		return prepare_remote(l, source);
	/* Compare pixels only if that is quick. */
	ladder_probe_disk(e, (double)e->file_size / e->model.samples);
	if (samples_from_disk(e, 2) >= 8 &&
	    variant_source_open(
		    e->backing,
		    (size_t)fmin(samples_from_disk(e, 2), VARIANT_SAMPLES),
		    NULL, e, source))
		doctor_note(
			e,
			"the gain of other encodings was not measured: cannot encode samples of this dataset");
	return choose_samples(l);
}

int ladder_run(const struct ladder_options *o, struct evidence *e)
{
	struct ladder *l = calloc(1, sizeof(*l));
	struct variant_source *source = NULL;
	int r = l ? 0 : -ENOMEM;

	if (r)
		return r;
	l->options = o;
	l->e = e;
	l->place = o->place;
	l->base_spec = o->place.spec ? o->place.spec : "";
	l->copy_fd = -1;
	l->taken_in_memory = INFINITY;
	l->started_ns = clock_ns();
	l->end_ns = l->started_ns + (int64_t)(1e9 * o->seconds);
	l->run_s = o->seconds / 90;
	progress(l, "dataset");
	r = prepare(l, &source);
	if (!r) {
		e->resize_to = 0;
		add_rungs(l);
		add_upload(l);
		l->num_needed = l->num_jobs;
		add_sweep(l);
		add_ops(l);
		add_pipelines(l);
		r = run_job(l, &l->jobs[RUNG_ALL]);
		l->jobs[RUNG_ALL].done = 0;
		l->num_others = 0;
		e->resize_to = l->jobs[RUNG_ALL].last.side;
	}
	if (!r && source)
		add_variants(l, source);
	variant_source_close(source);
	r = r ? r : run_jobs(l);
	r = r ? r : check_whole(l);
	close_jobs(l);
	if (!r && e->network.is_remote)
		size_remote(l);
	if (!r)
		ladder_model(e);
	e->seconds = seconds_since(l->started_ns);
	free(l);
	return r;
}
