/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/doctor/look.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fs/base/files/paths.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/typed.h"
#include "loader/tools/ui/no_batches.h"

enum {
	/* Readers at once: fewer than the loader may have, as many as most
	   devices need. */
	PROBE_THREADS = 8,
	PROBE_MS = 400,
	MEMORY_MS = 150,
	IDLE_MS = 300,
	LARGE = 8 << 20,
};

static void look_at_disk(const struct ladder_options *o, struct evidence *e)
{
	struct stat st;

	snprintf(e->backing, sizeof(e->backing), "%.511s", o->place.path);
	if (!stat(o->place.path, &st) && S_ISDIR(st.st_mode) &&
	    machine_disk_backing(o->place.root, o->place.path, e->backing,
				 sizeof(e->backing)))
		doctor_note(
			e,
			"the disk was not measured: the doctor cannot find the file of this mount's dataset");
	if (machine_disk_read(o->place.root, e->backing, &e->disk))
		doctor_note(
			e,
			"the disk was not measured: cannot find the device of %.100s",
			e->backing);
	e->file_size = e->disk.size;
}

/* Each option of a mount is a line of this file. */
static bool mount_option(const char *mount, const char *name, char *out,
			 size_t size)
{
	cleanup_free char *line = NULL;
	size_t n = strlen(name), room = 0;
	char path[4096];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%.4000s/.betonfs/options", mount);
	f = fopen(path, "re");
	while (f && !found && getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		found = !strncmp(line, name, n) && line[n] == '=';
	}
	if (f)
		fclose(f);
	if (found)
		snprintf(out, size, "%.*s", (int)size - 1, line + n + 1);
	return found;
}

/* Describes a dataset behind a URL, or a mount of one, without secrets. Returns
   false if it is neither. */
static bool look_at_url(const struct ladder_options *o, struct evidence *e)
{
	cleanup_free char *url = NULL;
	size_t n;

	if (paths_is_url(o->place.path))
		url = paths_public(o->place.path);
	else if (mount_option(o->place.path, "dataset", e->backing,
			      sizeof(e->backing)) &&
		 paths_is_url(e->backing))
		url = paths_public(e->backing);
	if (!url)
		return false;
	snprintf(e->backing, sizeof(e->backing), "%s", url);
	n = strcspn(url, ":");
	snprintf(e->disk.type, sizeof(e->disk.type), "%.*s", (int)n, url);
	n = min_u64(n + 3, strlen(url));
	snprintf(e->disk.source, sizeof(e->disk.source), "%.*s",
		 (int)strcspn(url + n, "/"), url + n);
	e->disk.network = true;
	e->network.is_remote = true;
	return true;
}

/* Returns the size of the process cache; 0: the kernel's cache is used. */
static void look_at_cache(const struct ladder_options *o, struct evidence *e)
{
	static const struct typed any_size = TYPED_SIZE_FROM(0);
	const char *cache = o->place.cache;
	uint64_t size = o->place.cache_size;
	char mode[32] = "", text[64] = "";

	if (mount_option(o->place.path, "cache", mode, sizeof(mode)))
		cache = mode;
	if (mount_option(o->place.path, "cache_size", text, sizeof(text)))
		typed_parse_string(&any_size, text, &size);
	/* The kernel caches no URLs. */
	if (!e->network.is_remote && (!cache || strcmp(cache, "process") != 0))
		return;
	e->cache_size = size ? size : e->memory.size.available / 2;
}

static void note_limits(struct evidence *e)
{
	const struct machine_memory *m = &e->memory;

	if (m->files < 1024)
		doctor_note(
			e,
			"RLIMIT_NOFILE is %llu: to open more files at once, raise it to 1024 or more (ulimit -n)",
			(unsigned long long)m->files);
	if (m->address != UINT64_MAX)
		doctor_note(
			e,
			"RLIMIT_AS is %llu MB, and mapped files count towards this limit",
			(unsigned long long)(m->address >> 20));
	if (e->cpu.nodes > 1)
		doctor_note(
			e,
			"the machine has %u NUMA nodes, and uses CPUs of %u: memory of another node is slower",
			e->cpu.nodes, e->cpu.nodes_used);
	if (e->cpu.mhz > 0 && e->cpu.mhz_max > 0 &&
	    e->cpu.mhz < 0.6 * e->cpu.mhz_max)
		doctor_note(
			e,
			"the CPU runs at %.0f of %.0f MHz; its frequency governor is %s",
			e->cpu.mhz, e->cpu.mhz_max, e->cpu.governor);
}

static void note_gpus(struct evidence *e)
{
	for (size_t i = 0; i < e->num_gpus; i++) {
		const struct machine_gpu *g = &e->gpus[i];

		if (g->width > 0 && g->width < g->width_max)
			doctor_note(
				e,
				"GPU %zu, %.60s: its PCIe link uses %d of %d lanes",
				i, g->name, g->width, g->width_max);
		if (machine_gpu_is_slowed(g))
			doctor_note(
				e,
				"GPU %zu, %.60s: heat or power limits it to %d of %d MHz, P%d",
				i, g->name, g->clock, g->clock_max, g->state);
	}
}

/* Measures the CPU use of other processes while the doctor is idle. */
static void look_at_others(const struct ladder_options *o, struct evidence *e)
{
	struct timespec pause = { .tv_nsec = IDLE_MS * 1000000L };
	struct machine_times a, b;

	if (machine_times_read(o->place.root, &a))
		return;
	nanosleep(&pause, NULL);
	if (!machine_times_read(o->place.root, &b))
		e->others_idle = (b.busy_s - a.busy_s) / (1e-3 * IDLE_MS);
}

int ladder_look(const struct ladder_options *o, struct evidence *e)
{
	int r = machine_cpu_read(o->place.root, &e->cpu);

	if (!look_at_url(o, e))
		look_at_disk(o, e);
	e->path = paths_is_url(o->place.path) ? e->backing : o->place.path;
	e->pipeline = o->pipeline;
	e->watch.gpu_busy = -1;
	r = r ? r : machine_memory_read(o->place.root, &e->memory);
	if (r) {
		log_error(o->log, "%s/proc: %s", o->place.root, strerror(-r));
		return r;
	}
	look_at_cache(o, e);
	e->num_gpus = machine_gpu_read(e->gpus, MACHINE_GPUS_MAX);
	look_at_others(o, e);
	e->memory_rate = machine_memory_rate(
		(unsigned)ceil(machine_cpu_cores(&e->cpu)), MEMORY_MS);
	note_limits(e);
	note_gpus(e);
	return 0;
}

/* If a read takes no longer than this, a larger one is tried. */
#define LARGE_S 0.25

/* Grows step by step: the largest could take minutes of a slow device. */
static void probe_larger(struct evidence *e, struct disk_probe *probe)
{
	struct disk_rate rate = e->small;

	e->large = e->small;
	e->large_piece = (double)probe->piece;
	probe->milliseconds = PROBE_MS / 2;
	while (probe->piece < LARGE && rate.latency_s < LARGE_S) {
		probe->piece = min_u64(probe->piece * 8, LARGE);
		probe->seed++;
		if (machine_disk_probe(e->backing, probe, &rate))
			break;
		if (rate.bytes <= e->large.bytes)
			continue;
		e->large = rate;
		e->large_piece = (double)probe->piece;
	}
}

void ladder_probe_disk(struct evidence *e, double sample_bytes)
{
	struct disk_probe probe = {
		.piece = (uint64_t)fmax(sample_bytes, 4096),
		.threads = PROBE_THREADS,
		.milliseconds = PROBE_MS,
		.seed = 1,
	};
	int r = machine_disk_probe(e->backing, &probe, &e->small);

	if (r) {
		doctor_note(e,
			    "the disk was not measured: cannot read %.100s: %s",
			    e->backing, strerror(-r));
		return;
	}
	if (!e->small.direct)
		doctor_note(
			e,
			"%.20s has no direct reads, so the page cache answered some: the disk may be slower than measured",
			e->disk.type);
	probe_larger(e, &probe);
}

int ladder_look_at_dataset(const struct ladder_options *options,
			   struct evidence *e)
{
	struct beton_loader_options o = {
		.size = sizeof(o),
		.spec = options->place.spec,
		.subset = options->place.subset,
		.pipeline = options->pipeline,
		.delivery = options->place.delivery,
		.cache = options->place.cache,
		.cache_size = options->place.cache_size,
		.job = "doctor",
		.workers = options->workers,
	};
	struct beton_loader *loader;
	struct beton_loader_info info;
	char error[RUN_WHY_SIZE], why[NO_BATCHES_SIZE];
	const char *order;
	int r;

	o.error = error;
	o.error_size = sizeof(error);
	r = beton_loader_open(options->place.path, &o, &loader);
	if (r) {
		log_error(options->log, "%s", error);
		return r;
	}
	beton_loader_info(loader, &info);
	snprintf(e->spec, sizeof(e->spec), "%s", info.spec);
	snprintf(e->source, sizeof(e->source), "%s", info.source);
	order = strstr(info.spec, "order=");
	if (order)
		snprintf(e->order, sizeof(e->order), "%.*s",
			 (int)strcspn(order + 6, ","), order + 6);
	e->model.samples = (double)info.samples;
	beton_loader_close(loader);
	if (info.samples && info.batches)
		return 0;
	r = no_batches_text(&info, why);
	log_error(options->log, "%s: %s", options->place.path, why);
	return r;
}
