/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements beton_loader_open(), _stop() and _close(): takes the options, and
 * creates the data source, the pipelines, the GPU's state and the ring.
 */
#include "loader/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/memory/memory.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/crc32c.h"
#include "fs/base/util/float_mode.h"
#include "fs/base/util/thread.h"
#include "fs/base/util/typed.h"
#include "loader/defaults.h"
#include "loader/run/feed/feed_table.h"
#include "loader/run/jit/jit.h"
#include "loader/util/footprint.h"

enum {
	PREFETCH_DEFAULT = 2,
	/* By default, the loader completes one batch and begins another one, by
	   two items of work for each worker, or by HEAD_MEMORY. */
	HEAD_ROWS = 2 * RING_ROWS,
	/* Prefetch of a trainer: two batches for each of eight makers and for
	   its own workers, but at least some, in PREFETCH_MEMORY. */
	PREFETCH_MAKERS = 18,
	PREFETCH_LEAST = 4,
	/* Time that beton_loader_stop() waits for running reads. */
	STOP_MS = 500,
};

enum {
	/* Entry points may take these parts of the dataset's size and of the
	   available memory. The whole of a dataset needs a thirtieth. */
	ENTRIES_PART = 16,
};

static const uint64_t PINNED_DEFAULT = (uint64_t)4 << 30;
static const uint64_t PREFETCH_MEMORY = (uint64_t)2 << 30;
static const uint64_t HEAD_MEMORY = (uint64_t)16 << 20;

/* Stores the last error for beton_loader_options.error, and calls the user's
   log callback. */
static void on_log(void *arg, enum beton_log_level level, const char *message)
{
	struct beton_loader *l = arg;

	if (level == BETON_LOG_ERROR)
		snprintf(l->last_logged, sizeof(l->last_logged), "%s", message);
	if (l->user_log)
		l->user_log(l->user_log_arg, level, message);
}

static int parse_pipeline(struct beton_loader *l,
			  const struct beton_loader_options *o,
			  struct phases **out)
{
	char why[LOADER_ERROR_SIZE];
	int gpu, r = phases_parse(o->pipeline, l->feed->fields,
				  l->feed->num_fields, out, why, sizeof(why));

	if (r && *why)
		log_error(&l->log, "%s", why);
	if (!r && options_device(o->device, &gpu) && gpu >= 0)
		phases_put_on(*out, gpu);
	return r;
}

static int compile_pipeline(struct beton_loader *l, struct phases *phases)
{
	const struct jit_options options = {
		.log = &l->log,
		.interrupted = l->interrupted.asked,
		.interrupted_arg = l->interrupted.arg,
	};
	char why[LOADER_ERROR_SIZE];
	int r = phases_compile(phases, &options, why, sizeof(why));

	if (r && *why)
		log_error(&l->log, "%s", why);
	return r;
}

/* Returns the number of the GPU that has outputs, or -1. */
static int find_gpu(struct beton_loader *l, int *out)
{
	const struct pipeline *p = phases_row(l->phases, 0);
	const struct pipeline_output *o;

	*out = -1;
	for (size_t i = 0; (o = pipeline_output_at(p, i)); i++) {
		if (o->device < 0 || o->device == *out)
			continue;
		if (*out >= 0) {
			log_error(&l->log,
				  "`%s' is for GPU %d, another output for %d; "
				  "a loader serves one",
				  o->name, o->device, *out);
			return -EINVAL;
		}
		*out = o->device;
	}
	return 0;
}

static int open_gpu(struct beton_loader *l, int gpu, uint64_t pinned)
{
	return device_open(gpu, pinned ? pinned : PINNED_DEFAULT, &l->log,
			   &l->device);
}

/* Splits the pipelines between CPU and GPU and compiles both parts. Without
   `autos` the part after cuda(N, auto) stays on the CPU. */
static int split_pipeline(struct beton_loader *l, struct phases *phases,
			  bool autos)
{
	const struct pipeline *p;
	int r = phases_split(phases, autos);

	if (!r && l->role == BETON_ROLE_TRAINER)
		r = phases_plan_finish(phases);
	if (!r)
		r = compile_pipeline(l, phases);
	for (size_t i = 0; !r && (p = phases_row(phases, i)); i++)
		r = device_add(l->device, p);
	return r;
}

/* Splits the pipelines. For cuda(N, auto), also prepares them for the CPU. */
static int split_pipelines(struct beton_loader *l,
			   const struct beton_loader_options *o)
{
	int r = split_pipeline(l, l->phases, true);

	if (r || !pipeline_has_choice(phases_row(l->phases, 0)))
		return r;
	r = parse_pipeline(l, o, &l->whole);
	return r ? r : split_pipeline(l, l->whole, false);
}

static void close_pipelines(struct beton_loader *l)
{
	/* `whole` uses the cache of `phases`: close it first. */
	phases_close(l->whole);
	phases_close(l->phases);
	l->whole = l->phases = NULL;
}

/* Compiles a pipeline that the CPU runs. */
static int start_on_cpu(struct beton_loader *l)
{
	int r = 0;

	if (l->role == BETON_ROLE_MAKER)
		r = phases_cut(l->phases);
	else if (l->role == BETON_ROLE_TRAINER)
		r = phases_plan_finish(l->phases);
	return r ? r : compile_pipeline(l, l->phases);
}

/* If there is no compiler for the GPU, the CPU runs the whole pipeline. */
static int start_on_gpu(struct beton_loader *l, int gpu,
			const struct beton_loader_options *o)
{
	int r = open_gpu(l, gpu, o->pinned);

	if (!r)
		r = split_pipelines(l, o);
	if (r != -ENOSYS || !l->device)
		return r;
	log_warning(&l->log, "operations after cuda() run on the CPU");
	device_close(l->device);
	l->device = NULL;
	close_pipelines(l);
	r = open_gpu(l, gpu, o->pinned);
	if (!r)
		r = parse_pipeline(l, o, &l->phases);
	return r ? r : start_on_cpu(l);
}

/* Returns the number of processes of this machine that torchrun has started, of
   which each opens its own loader. */
static uint32_t local_processes(void)
{
	static const struct typed number =
		TYPED_STRICT_IN(1, OPTIONS_THREADS_MAX);
	const char *text = secure_getenv("LOCAL_WORLD_SIZE");
	uint64_t n = 1;

	return text && typed_parse_string(&number, text, &n) ? (uint32_t)n : 1;
}

/* Keeps entry points of JPEGs from the first epoch to later ones. Without memory
   for them, decoding is only slower. */
static void keep_entries(struct beton_loader *l,
			 const struct beton_loader_options *o)
{
	struct entry_store_options options = {
		.size = l->feed->facts.data_bytes / ENTRIES_PART,
		.take = feed_take_entries,
		.arg = l->feed,
	};
	struct memory memory;

	if (o->epochs == 1 || memory_read("", &memory))
		return;
	options.size = min_u64(options.size, memory.available / ENTRIES_PART /
						     local_processes());
	if (entry_store_open(&options, &l->entries))
		return;
	phases_keep_entries(l->phases, l->entries);
	if (l->whole)
		phases_keep_entries(l->whole, l->entries);
}

static int start_pipeline(struct beton_loader *l,
			  const struct beton_loader_options *o)
{
	int gpu = -1, r = parse_pipeline(l, o, &l->phases);

	if (!r && l->role != BETON_ROLE_MAKER)
		r = find_gpu(l, &gpu);
	if (!r)
		r = gpu >= 0 && o->until == BETON_STAGE_ALL
			    ? start_on_gpu(l, gpu, o)
			    : start_on_cpu(l);
	if (!r)
		r = phases_cache(l->phases, &l->log);
	if (!r && l->whole)
		phases_cache_with(l->whole, l->phases);
	if (!r)
		keep_entries(l, o);
	return r;
}

static void check_memory(struct beton_loader *l,
			 const struct ring_options *ring)
{
	const struct footprint f = {
		.row_size = phases_row_size(l->phases),
		.rows = spec_batch_samples(&l->feed->spec, 0),
		.complete = ring->complete,
		.head_rows =
			ring->complete < ring->prefetch ? ring->head_rows : 0,
	};

	footprint_check(&f, "", &l->log);
}

/* Returns the number of batches to prefetch. By default, makers get more of
   them, as far as memory allows. */
static uint32_t prefetch_of(const struct beton_loader *l,
			    const struct beton_loader_options *o)
{
	uint64_t size = phases_row_size(l->phases), n;

	if (o->prefetch)
		return o->prefetch;
	if (l->role != BETON_ROLE_TRAINER)
		return PREFETCH_DEFAULT;
	if (!mul_ok(size, spec_batch_samples(&l->feed->spec, 0), &size))
		return PREFETCH_DEFAULT;
	n = PREFETCH_MEMORY / (size + 1);
	return (uint32_t)max_u64(PREFETCH_LEAST, min_u64(n, PREFETCH_MAKERS));
}

/* Returns ring_options.head_rows. Small batches, and those in memory of a GPU or
   of makers, get all their memory at once. */
static uint32_t head_rows_of(const struct beton_loader *l,
			     const struct beton_loader_options *o)
{
	uint64_t size = phases_row_size(l->phases), rows;

	if (l->role || l->on_demand || l->device || l->synthetic.replay ||
	    o->until == BETON_STAGE_READ)
		return 0;
	rows = max_u64((uint64_t)HEAD_ROWS * l->workers,
		       HEAD_MEMORY / (size + 1));
	return rows < spec_batch_samples(&l->feed->spec, 0) ? (uint32_t)rows
							    : 0;
}

static void choose_prefetch(const struct beton_loader *l,
			    const struct beton_loader_options *o,
			    struct ring_options *out)
{
	out->prefetch = prefetch_of(l, o);
	out->head_rows = head_rows_of(l, o);
	out->complete = out->head_rows && !o->prefetch ? out->prefetch - 1
						       : out->prefetch;
}

static int start_ring(struct beton_loader *l,
		      const struct beton_loader_options *o)
{
	struct ring_options options = {
		.feed = l->feed,
		.log = &l->log,
		.trace = l->trace,
		.plan = { .phases = l->phases,
			  .on_error = o->on_error,
			  .until = o->until,
			  .device = l->device,
			  .whole = l->whole,
			  .keeps_errors = l->role == BETON_ROLE_MAKER },
		.start = { .spec = &l->feed->spec,
			   .rank = o->rank,
			   .world_size = o->world_size ? o->world_size : 1,
			   .no_padding = o->no_padding,
			   .epoch = o->epoch },
		.epochs_end = UINT64_MAX,
		.on_demand = l->on_demand,
		.has_makers = l->role == BETON_ROLE_TRAINER,
		.spares_workers = o->spare_workers,
		.workers = l->workers,
		.entries = l->entries,
		.balance = l->balance,
	};
	int r;

	choose_prefetch(l, o, &options);
	r = l->role ? 0
		    : replay_open(&l->synthetic, &l->feed->spec, l->phases,
				  options.prefetch, &l->replay);
	if (o->until == BETON_STAGE_ALL || o->until == BETON_STAGE_TRANSFORM)
		check_memory(l, &options);
	if (!r && o->callback && l->role != BETON_ROLE_MAKER)
		r = callback_open(&l->callback);
	if (r)
		return r;
	options.replay = l->replay;
	/* Batches that are replayed, or sent to a trainer, stay for long. */
	if (!l->replay && !l->role)
		options.plan.keeper = l->feed;
	/* The callback gets complete tensors only. */
	if (o->until == BETON_STAGE_ALL || o->until == BETON_STAGE_TRANSFORM)
		options.callback = l->callback;
	if (o->epochs && o->epochs < UINT64_MAX - o->epoch)
		options.epochs_end = o->epoch + o->epochs;
	return ring_open(&options, &l->ring);
}

/* Chooses the execution device of the operations after cuda(N, auto). */
static int read_balance(struct beton_loader *l)
{
	const char *word = secure_getenv("BETON_PLACEMENT");

	l->balance = OFFLOAD_BY_COST;
	if (!word || !*word || offload_parse(word, &l->balance))
		return 0;
	log_error(&l->log,
		  "BETON_PLACEMENT is `%.40s'; there are auto, gpu, cpu and "
		  "turns",
		  word);
	return -EINVAL;
}

/* The environment of a set-user-ID program may come from another user, so it
   must not name a file to write. */
static int open_trace(struct beton_loader *l,
		      const struct beton_loader_options *o)
{
	const char *path =
		o->trace && *o->trace ? o->trace : secure_getenv("BETON_TRACE");

	return path && *path ? trace_open(path, &l->log, &l->trace) : 0;
}

static bool is_canceled(void *cancel)
{
	return cancel_is_asked(cancel);
}

/* Copies at most size - 1 bytes of a text. The rest becomes NUL. */
static void put_text(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text);
}

static void prepare_hello(struct beton_loader *l,
			  const struct beton_loader_options *o)
{
	const char *pipeline = o->pipeline ? o->pipeline : "";
	struct wire_hello *h = &l->hello;

	*h = (struct wire_hello){
		.version = WIRE_VERSION,
		.pipeline = crc32c(0, pipeline, strlen(pipeline)),
		.on_error = o->on_error,
	};
	memcpy(h->magic, WIRE_MAGIC, sizeof(h->magic));
	put_text(h->library, sizeof(h->library), beton_version());
	put_text(h->fingerprint, sizeof(h->fingerprint), l->feed->fingerprint);
	put_text(h->spec, sizeof(h->spec), l->feed->spec_text);
}

static int start_loader(struct beton_loader *l, const char *path,
			const struct beton_loader_options *o)
{
	struct feed_options options = {
		.log = &l->log,
		.interrupted = &l->interrupted,
		.synthetic = &l->synthetic,
		.delivery = o->delivery,
		.job = options_job(o),
		.choice = { .cache_size = o->cache_size,
			    .processes = local_processes(),
			    .cold_size = o->cold_size ? o->cold_size
						      : CACHE_COLD_AUTO },
		.workers = l->workers,
		.verify = o->verify,
		.rank = o->rank,
		.world_size = o->world_size ? o->world_size : 1,
	};
	struct source_options storage;
	int r;

	if (o->cache)
		cache_parse_mode(o->cache, &options.choice.mode);
	r = source_options_read(o->storage_options, &l->log, &storage);
	storage.memory = source_table_memory(o->cache_size);
	storage.interrupted = is_canceled;
	storage.interrupted_arg = &l->interrupted;
	options.storage = &storage;
	if (!r)
		r = read_balance(l);
	if (!r)
		r = open_trace(l, o);
	options.trace = l->trace;
	if (!r)
		r = synthetic_open(o->source, &l->log, o->log != NULL,
				   &l->synthetic);
	if (!r)
		r = feed_open(path, &options, &l->feed);
	source_options_fini(&storage);
	if (!r)
		r = feed_start(l->feed, o->spec, o->subset);
	if (!r && l->role)
		prepare_hello(l, o);
	if (!r)
		r = start_pipeline(l, o);
	return r ? r : start_ring(l, o);
}

static struct beton_loader *create_loader(const struct beton_loader_options *o)
{
	struct beton_loader *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	atomic_init(&l->owners, 1);
	log_init(&l->log, on_log, l);
	l->user_log = o->log;
	l->user_log_arg = o->log_arg;
	l->interrupted = (struct cancel){ .fd = -1,
					  .asked = o->interrupted,
					  .arg = o->interrupted_arg };
	l->workers = o->workers ? o->workers : thread_usable_cpus();
	l->role = (enum beton_role)o->role;
	l->on_demand = o->on_demand || l->role == BETON_ROLE_MAKER;
	return l;
}

/* Replace defaults by the settings of $BETON_SETTINGS. */
static int start_with_defaults(struct beton_loader *l, const char *path,
			       const struct beton_loader_options *o)
{
	struct defaults d;
	int r = defaults_open(o, &l->log, &d);

	if (r)
		return r;
	if (d.options.workers)
		l->workers = d.options.workers;
	r = start_loader(l, path, &d.options);
	defaults_fini(&d);
	return r;
}

static int open_loader(const char *path,
		       const struct beton_loader_options *options,
		       struct beton_loader **out)
{
	struct beton_loader_options own;
	const struct beton_loader_options *o = &own;
	char why[LOADER_ERROR_SIZE];
	struct beton_loader *l = NULL;
	int r = options_take(options, &own, why);

	if (!r)
		r = options_check(o, why);
	if (!r) {
		l = create_loader(o);
		r = l ? start_with_defaults(l, path, o) : -ENOMEM;
		if (r)
			snprintf(why, sizeof(why), "%s",
				 l && l->last_logged[0] ? l->last_logged
							: strerror(-r));
	}
	if (!r) {
		telemetry_open(o->rank, o->world_size ? o->world_size : 1,
			       &l->telemetry);
		*out = l;
		return 0;
	}
	if (o->error && o->error_size)
		snprintf(o->error, o->error_size, "%s", why);
	beton_loader_close(l);
	return r;
}

int beton_loader_open(const char *path,
		      const struct beton_loader_options *options,
		      struct beton_loader **out)
{
	fenv_t mode;
	int r;

	float_mode_begin(&mode);
	r = open_loader(path, options, out);
	float_mode_end(&mode);
	return r;
}

static void free_loader(struct beton_loader *l)
{
	ring_close(l->ring);
	telemetry_close(&l->telemetry);
	replay_close(l->replay);
	callback_close(l->callback);
	device_close(l->device);
	close_pipelines(l);
	entry_store_close(l->entries);
	feed_close(l->feed);
	trace_close(l->trace);
	synthetic_fini(&l->synthetic);
	log_fini(&l->log);
	free(l);
}

static void put_loader(struct beton_loader *l)
{
	if (atomic_fetch_sub(&l->owners, 1) == 1)
		free_loader(l);
}

/* Waits for threads that read data, and closes the objects that they use. */
static void finish_stop(struct beton_loader *l)
{
	ring_stop(l->ring);
	phases_stop(l->whole);
	phases_stop(l->phases);
	feed_stop(l->feed);
}

static void *run_stopper(void *arg)
{
	finish_stop(arg);
	put_loader(arg);
	return NULL;
}

void beton_loader_stop(struct beton_loader *l)
{
	if (l->is_stopped)
		return;
	l->is_stopped = true;
	ring_halt(l->ring);
	atomic_fetch_add(&l->owners, 1);
	if (!thread_start(&l->stopper, run_stopper, l)) {
		l->has_stopper = !thread_joins_in(l->stopper, STOP_MS);
		return;
	}
	atomic_fetch_sub(&l->owners, 1);
	finish_stop(l);
}

/* After the close, neither the user's log callback nor its argument may be
   used. */
static void forget_user(struct beton_loader *l)
{
	scoped_lock(&l->log.lock);
	l->user_log = NULL;
}

void beton_loader_close(struct beton_loader *l)
{
	if (!l)
		return;
	if (l->ring)
		beton_loader_stop(l);
	forget_user(l);
	if (l->has_stopper)
		pthread_detach(l->stopper);
	put_loader(l);
}
