/* SPDX-License-Identifier: Apache-2.0 */
/* beton bench: measures how fast a dataset loads, and its cost in CPU time and
   memory. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "beton/loader.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "loader/tools/beton/command.h"
#include "loader/tools/beton/defaults.h"
#include "loader/tools/beton/delivery.h"
#include "loader/tools/machine/process.h"
#include "loader/tools/ui/no_batches.h"
#include "loader/tools/ui/progress.h"
#include "loader/tools/ui/sort.h"

enum {
	EPOCHS_MAX = 1 << 20,
	STAGES_MAX = 8,
	PATH_SIZE = 4096,
	WHY_SIZE = 1024,
};

struct bench_options {
	const char *spec;
	const char *subset;
	const char *pipeline;
	const char *source;
	const char *trace;
	struct reading reading;
	uint64_t jobs;
	uint64_t epochs;
	uint64_t prefetch;
	unsigned until;
	bool json;
};

#define AT(member) .offset = offsetof(struct bench_options, member)

static const struct option_row rows[] = {
	SPEC_ROWS,
	JOBS_ROW,
	PREFETCH_ROW,
	{ "epochs", .kind = OPTION_NUMBER, AT(epochs), .min = 2,
	  .max = EPOCHS_MAX, .argument = "N",
	  .help = "Warm up, then measure N - 1 epochs (default: 4)" },
	{ "until", .kind = OPTION_CHOICE, AT(until),
	  .argument = "all|read|decode|transform|upload",
	  .help = "Stop after this stage, to find the slow one (default: "
		  "all)" },
	{ "source", .kind = OPTION_TEXT, AT(source), .argument = "SOURCE",
	  .help = "Load synthetic data instead: constant, memory or "
		  "synthetic(...), beton-synthetic(7)" },
	READING_ROWS,
	{ "trace", .kind = OPTION_TEXT, AT(trace), .argument = "FILE",
	  .help = "Record a per-thread timeline to FILE, as JSON for "
		  "Perfetto" },
	{ "json", .kind = OPTION_FLAG, AT(json),
	  .help = "Print the figures as JSON" },
};

static const struct bench_options defaults = { .epochs = 4 };

/* Index in the words of --until. */
enum { UNTIL_UPLOAD = 4 };

/*
 * The state and the results of a measurement. The loader has no last epoch, so
 * that as many batches are prefetched when the last measured epoch ends as when
 * the first one begins.
 */
struct bench {
	const struct bench_options *options;
	struct log *log;
	const char *path;
	const char *spec;     /* the user's, or a default; NULL: none */
	const char *pipeline; /* the same */
	struct command_defaults chosen;
	struct beton_loader *loader;
	struct beton_loader_info info;
	pid_t daemon; /* of a mount, or 0 */
	double first_batch_s;
	double *rates; /* images per second, per epoch after the first */
	size_t num_rates;
	uint64_t images; /* in the epochs of `rates` */
	uint64_t bytes;	 /* of the batch files read */
	double seconds;
	uint64_t cpu_us;
	uint64_t peak_rss;
};

static double now_s(void)
{
	return 1e-9 * (double)clock_ns();
}

/* Finds the daemon's process id among the options of its mount. */
static pid_t find_daemon(const char *mount)
{
	char path[PATH_SIZE], line[1024];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/.betonfs/options", mount);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "pid=%d", &pid) == 1)
			break;
	}
	if (f)
		fclose(f);
	return pid;
}

static struct usage total_usage(const struct bench *b)
{
	struct usage own = { 0, 0 }, daemon = { 0, 0 };

	process_usage(getpid(), &own);
	if (b->daemon)
		process_usage(b->daemon, &daemon);
	return (struct usage){ own.cpu_us + daemon.cpu_us,
			       own.peak_rss + daemon.peak_rss };
}

static uint64_t bytes_read(const struct bench *b)
{
	struct beton_stage_stats stats[STAGES_MAX];

	beton_loader_stats(b->loader, stats, STAGES_MAX);
	return stats[0].bytes;
}

/* Runs one epoch and returns the number of its images. */
static int run_epoch(struct bench *b, uint64_t *images)
{
	const struct beton_batch *batch;
	int r;

	*images = 0;
	while (!(r = beton_loader_next(b->loader, &batch))) {
		if (b->first_batch_s == 0)
			b->first_batch_s = 1e-6 * (double)process_age_us();
		*images += batch->num_samples;
		beton_loader_release(b->loader, batch);
	}
	return r == -ENODATA ? 0 : r;
}

/* Runs one epoch, or several if it is short: until every buffer that batches
   can occupy was used twice. The first use of memory is the slowest. */
static int warm_up(struct bench *b)
{
	uint64_t prefetch = b->options->prefetch ? b->options->prefetch : 2;
	uint64_t images, batches = 0;
	int r = 0;

	while (!r && batches < 2 * (prefetch + 1)) {
		r = run_epoch(b, &images);
		batches += b->info.steps;
	}
	return r;
}

static int run_epochs(struct bench *b)
{
	struct usage before;
	struct progress progress;
	uint64_t images, bytes;
	double start, epoch;
	int r;

	progress_init(&progress, b->options->epochs, b->log);
	r = warm_up(b);
	before = total_usage(b);
	bytes = bytes_read(b);
	start = now_s();
	for (uint64_t e = 1; e < b->options->epochs && !r; e++) {
		progress_show(&progress, e);
		epoch = now_s();
		r = run_epoch(b, &images);
		if (!r) {
			b->rates[b->num_rates++] =
				(double)images / (now_s() - epoch);
			b->images += images;
		}
	}
	progress_hide(&progress);
	b->seconds = now_s() - start;
	b->bytes = bytes_read(b) - bytes;
	b->cpu_us = total_usage(b).cpu_us - before.cpu_us;
	b->peak_rss = total_usage(b).peak_rss;
	return r;
}

/* 0: not measured. */
static double cpu_per_image(const struct bench *b)
{
	return b->images ? (double)b->cpu_us / (double)b->images : 0;
}

static void print_cpu(const struct bench *b)
{
	double us = cpu_per_image(b);

	if (us > 0)
		printf("CPU us/image   %.*f%s\n", us < 10 ? 2 : 0, us,
		       b->daemon ? " (loader and daemon)" : "");
	else
		printf("CPU us/image   - (not measured: %llu images in %.6f s)\n",
		       (unsigned long long)b->images, b->seconds);
}

static void print_stages(const struct bench *b)
{
	struct beton_stage_stats s[STAGES_MAX];
	size_t n = beton_loader_stats(b->loader, s, STAGES_MAX);

	printf("stage          items   busy s   input wait s   room wait s"
	       "   delay s     p50 us     p99 us\n");
	for (size_t i = 0; i < n; i++)
		printf("%-10s %9llu %8.3f %14.3f %13.3f %9.3f %10.1f %10.1f\n",
		       s[i].name, (unsigned long long)s[i].items,
		       1e-9 * (double)s[i].busy_ns,
		       1e-9 * (double)s[i].input_wait_ns,
		       1e-9 * (double)s[i].room_wait_ns,
		       1e-9 * (double)s[i].delay_ns, 1e-3 * (double)s[i].p50_ns,
		       1e-3 * (double)s[i].p99_ns);
}

static struct beton_throughput_stats throughput_of(const struct bench *b)
{
	struct beton_throughput_stats throughput = { .size = sizeof(
							     throughput) };

	beton_loader_throughput(b->loader, &throughput);
	return throughput;
}

static double queue_fill(const struct beton_throughput_stats *throughput)
{
	uint64_t places = throughput->batches * throughput->queue_capacity;

	return places ? (double)throughput->queue_ready / (double)places : 0;
}

static void print_throughput(const struct bench *b)
{
	struct beton_throughput_stats throughput = throughput_of(b);

	printf("queue          %.0f %% full; the consumer waited for %llu of %llu batches, %.3f s\n",
	       100 * queue_fill(&throughput),
	       (unsigned long long)throughput.waits,
	       (unsigned long long)throughput.batches,
	       1e-9 * (double)throughput.wait_ns);
}

/* A line about samples in memory; `decimals` of the MiB in use. */
static void print_kept(const char *what, uint64_t samples, uint64_t used,
		       int decimals, uint64_t size, uint64_t hits)
{
	printf("%-14s %llu samples in %.*f of %.0f MiB, %llu hits\n", what,
	       (unsigned long long)samples, decimals, (double)used / (1 << 20),
	       (double)size / (1 << 20), (unsigned long long)hits);
}

static void print_cached(const struct bench *b)
{
	struct beton_image_cache_stats s;

	beton_loader_image_cache(b->loader, &s);
	if (s.size)
		print_kept("image cache", s.samples, s.used, 0, s.size, s.hits);
}

static struct beton_entry_points_stats entries_of(const struct bench *b)
{
	struct beton_entry_points_stats s = { .size = sizeof(s) };

	beton_loader_entry_points(b->loader, &s);
	return s;
}

static void print_entries(const struct bench *b)
{
	struct beton_entry_points_stats s = entries_of(b);

	if (s.samples)
		print_kept("entry points", s.samples, s.used, 1, s.capacity,
			   s.hits);
}

static void print_human(struct bench *b)
{
	sort_reals(b->rates, b->num_rates);
	printf("%s, %s, %u workers, %s, code %s\n", b->info.spec,
	       b->info.source, b->info.workers, b->info.delivery, b->info.jit);
	printf("images/s       %.0f (%.0f to %.0f, %zu epoch%s after the first)\n",
	       sort_median(b->rates, b->num_rates), b->rates[0],
	       b->rates[b->num_rates - 1], b->num_rates,
	       b->num_rates == 1 ? "" : "s");
	print_cpu(b);
	printf("bytes/s        %.0f\n", (double)b->bytes / b->seconds);
	printf("first batch    %.3f s after the start\n", b->first_batch_s);
	printf("peak RSS       %.0f MB\n", (double)b->peak_rss / 1e6);
	if (strcmp(b->info.placement, "none") != 0)
		printf("after cuda()   on the %s\n", b->info.placement);
	print_cached(b);
	print_entries(b);
	print_throughput(b);
	print_stages(b);
}

static json_t *stage_json(const struct beton_stage_stats *s)
{
	return json_pack(
		"{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "items",
		(json_int_t)s->items, "bytes", (json_int_t)s->bytes, "busy_s",
		1e-9 * (double)s->busy_ns, "input_wait_s",
		1e-9 * (double)s->input_wait_ns, "room_wait_s",
		1e-9 * (double)s->room_wait_ns, "delay_s",
		1e-9 * (double)s->delay_ns, "p50_us", 1e-3 * (double)s->p50_ns,
		"p90_us", 1e-3 * (double)s->p90_ns, "p99_us",
		1e-3 * (double)s->p99_ns);
}

static json_t *stages_json(const struct bench *b)
{
	struct beton_stage_stats s[STAGES_MAX];
	size_t n = beton_loader_stats(b->loader, s, STAGES_MAX);
	json_t *o = json_object();

	for (size_t i = 0; i < n; i++)
		json_object_set_new(o, s[i].name, stage_json(&s[i]));
	return o;
}

static json_t *throughput_json(const struct bench *b)
{
	struct beton_throughput_stats p = throughput_of(b);

	return json_pack("{s:I, s:I, s:f, s:f, s:f, s:I, s:I, s:I}", "batches",
			 (json_int_t)p.batches, "waits", (json_int_t)p.waits,
			 "wait_s", 1e-9 * (double)p.wait_ns, "trainer_s",
			 1e-9 * (double)p.trainer_ns, "queue_fill",
			 queue_fill(&p), "queue_capacity",
			 (json_int_t)p.queue_capacity, "queue_empty",
			 (json_int_t)p.queue_empty, "queue_full",
			 (json_int_t)p.queue_full);
}

/* null: the pipeline has no cache(). */
static json_t *cached_json(const struct bench *b)
{
	struct beton_image_cache_stats cache;

	beton_loader_image_cache(b->loader, &cache);
	if (!cache.size)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I}", "samples",
			 (json_int_t)cache.samples, "used",
			 (json_int_t)cache.used, "size", (json_int_t)cache.size,
			 "hits", (json_int_t)cache.hits);
}

static json_t *entries_json(const struct bench *b)
{
	struct beton_entry_points_stats s = entries_of(b);

	return json_pack("{s:I, s:I, s:I, s:I}", "samples",
			 (json_int_t)s.samples, "used", (json_int_t)s.used,
			 "capacity", (json_int_t)s.capacity, "hits",
			 (json_int_t)s.hits);
}

static void print_json(const struct bench *b)
{
	json_t *rates = json_array(), *o;

	for (size_t i = 0; i < b->num_rates; i++)
		json_array_append_new(rates, json_real(b->rates[i]));
	o = json_pack(
		"{s:o, s:o, s:f, s:f, s:f, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o}",
		"images_per_s", rates, "cpu_us_per_image",
		cpu_per_image(b) > 0 ? json_real(cpu_per_image(b))
				     : json_null(),
		"first_batch_s", b->first_batch_s, "peak_rss_mb",
		(double)b->peak_rss / 1e6, "bytes_per_s",
		(double)b->bytes / b->seconds, "delivery", b->info.delivery,
		"decoder", b->info.decoder, "jit", b->info.jit, "placement",
		b->info.placement, "spec", b->info.spec, "source",
		b->info.source, "workers", (json_int_t)b->info.workers,
		"image_cache", cached_json(b), "entry_points", entries_json(b),
		"stages", stages_json(b), "throughput", throughput_json(b));
	json_dumpf(o, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(o);
}

static bool has_gpu(const struct bench *b)
{
	struct beton_output out;

	for (uint32_t i = 0; !beton_loader_output(b->loader, i, &out); i++) {
		if (out.device_type == BETON_DEVICE_CUDA)
			return true;
	}
	return false;
}

static int check_stages(const struct bench *b)
{
	if (b->options->until != UNTIL_UPLOAD || has_gpu(b))
		return 0;
	log_error(b->log, "--until=upload: no output goes to a GPU: add cuda() "
			  "to --pipeline, beton-gpu(7)");
	return -EINVAL;
}

static int open_loader(struct bench *b)
{
	static const enum beton_stage until[] = {
		BETON_STAGE_ALL, BETON_STAGE_READ, BETON_STAGE_DECODE,
		BETON_STAGE_TRANSFORM, BETON_STAGE_ALL
	};
	const struct bench_options *o = b->options;
	char error[WHY_SIZE];
	struct beton_loader_options options = {
		.size = sizeof(options),
		.spec = b->spec,
		.subset = o->subset,
		.pipeline = b->pipeline,
		.source = o->source,
		.trace = o->trace,
		.workers = (uint32_t)o->jobs,
		.prefetch = (uint32_t)o->prefetch,
		.until = until[o->until],
		.error = error,
		.error_size = sizeof(error),
	};
	struct usage daemon;
	int r;

	reading_apply(&o->reading, b->log, &options);
	r = beton_loader_open(b->path, &options, &b->loader);
	if (r) {
		log_error(b->log, "%s", error);
		return r;
	}
	beton_loader_info(b->loader, &b->info);
	b->daemon = strcmp(b->info.source, "mount") ? 0 : find_daemon(b->path);
	/* If the daemon is in another PID namespace, its figures are not
	   visible. */
	if (b->daemon && process_usage(b->daemon, &daemon))
		b->daemon = 0;
	return check_stages(b);
}

/* Opens a loader that has batches. */
static int open_batches(struct bench *b)
{
	char why[NO_BATCHES_SIZE];
	int r = open_loader(b);

	if (r || b->info.steps)
		return r;
	if (defaults_spec(&b->info, b->spec, b->log, &b->chosen)) {
		beton_loader_close(b->loader);
		b->loader = NULL;
		b->spec = b->chosen.spec;
		r = open_loader(b);
		if (r || b->info.steps)
			return r;
	}
	r = no_batches_text(&b->info, why);
	log_error(b->log, "%s: %s", b->path, why);
	return r;
}

/* Runs again with images of one size, after a run that failed with `r`. */
static int run_cropped(struct bench *b, int r)
{
	struct log *log = b->log;
	char why[WHY_SIZE];
	int again = -EINVAL;

	snprintf(why, sizeof(why), "%s", beton_loader_error(b->loader));
	if (!b->pipeline && defaults_pipeline(b->loader, &b->chosen)) {
		beton_loader_close(b->loader);
		b->loader = NULL;
		b->pipeline = b->chosen.pipeline;
		b->num_rates = 0;
		b->images = 0;
		/* The first failure is the one to report. */
		b->log = NULL;
		again = open_loader(b);
		again = again ? again : run_epochs(b);
		b->log = log;
	}
	if (again)
		log_error(log, "%s", why);
	else
		defaults_log_pipeline(&b->chosen, log);
	return again ? r : 0;
}

static int run_bench(struct bench *b)
{
	int r;

	b->rates = calloc(b->options->epochs, sizeof(*b->rates));
	r = b->rates ? open_batches(b) : -ENOMEM;
	if (r)
		return r;
	r = run_epochs(b);
	return r ? run_cropped(b, r) : 0;
}

static int bench(const struct invocation *call)
{
	const struct bench_options *o = call->options;
	struct bench *b = calloc(1, sizeof(*b));
	int r = b ? 0 : -ENOMEM;

	if (!r) {
		b->options = o;
		b->log = call->log;
		b->path = call->operands[0];
		b->spec = o->spec;
		b->pipeline = o->pipeline;
		r = run_bench(b);
	}
	/* Finds how the batches were delivered in the end. */
	if (!r)
		beton_loader_info(b->loader, &b->info);
	if (!r && o->json)
		print_json(b);
	else if (!r)
		print_human(b);
	if (b) {
		beton_loader_close(b->loader);
		free(b->rates);
	}
	free(b);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

const struct command command_bench = {
	.name = "bench",
	.operands = "FILE|MOUNT",
	.min_operands = 1,
	.max_operands = 1,
	.summary = "Measure how fast a dataset loads, and what it costs",
	.examples =
		"  beton bench train.beton\n"
		"  beton bench train.beton --pipeline 'random_resized_crop(224) | \\\n"
		"      flip | normalize(imagenet) | float | chw'\n"
		"  beton bench mnt --until read --json\n",
	.rows = rows,
	.num_rows = ARRAY_LEN(rows),
	.options_size = sizeof(struct bench_options),
	.defaults = &defaults,
	.run = bench,
};
