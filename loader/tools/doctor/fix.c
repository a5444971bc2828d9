/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/doctor/fix.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/pipeline/graph/edit.h"

/* A cache leaves this share of the available memory to the rest of the
   machine. */
#define LEFT_FREE 0.25
/* Models that share a GPU, at most. */
#define MODELS_MAX 8

static void format_text(char *out, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void format_text(char *out, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(out, size, format, args);
	va_end(args);
}

#define OPTION(fix, ...)                                                       \
	format_text((fix)->option, FIX_OPTION_SIZE, __VA_ARGS__)
#define WHY(fix, ...) format_text((fix)->why, FIX_WHY_SIZE, __VA_ARGS__)

/* Rounds a number of bytes down to the form that options accept: "12GiB". */
static void size_text(double bytes, char out[32])
{
	if (bytes >= 10.0 * (1 << 30))
		format_text(out, 32, "%.0fGiB", floor(bytes / (1 << 30)));
	else
		format_text(out, 32, "%.0fMiB",
			    fmax(floor(bytes / (1 << 20)), 1));
}

static bool is_mount(const struct evidence *e)
{
	return !strcmp(e->source, "mount");
}

/* --- threads and CPUs ---------------------------------------------------- */

static const struct sweep_point *best_of_sweep(const struct evidence *e)
{
	const struct sweep_point *best = NULL;

	for (size_t i = 0; i < e->num_sweep; i++) {
		const struct sweep_point *p = &e->sweep[i];

		/* More threads must be clearly faster to be worth it. */
		if (p->figure.known &&
		    (!best ||
		     p->figure.rate > FIX_GAIN_LEAST * best->figure.rate))
			best = p;
	}
	return best;
}

static bool workers(const struct evidence *e, struct model *m, struct fix *f)
{
	const struct sweep_point *best = best_of_sweep(e);
	double now = e->ladder[RUNG_ALL].rate;

	/* On a noisy machine the runs differ because of other processes. */
	if (!best || best->workers == (unsigned)m->workers || now <= 0 ||
	    best->figure.rate < FIX_GAIN_LEAST * now ||
	    model_is_noisy(&e->model))
		return false;
	OPTION(f, "--jobs %u", best->workers);
	WHY(f,
	    "measured: %.0f samples/s with %.0f workers, %.0f samples/s with %u",
	    now, m->workers, best->figure.rate, best->workers);
	format_text(f->setting, sizeof(f->setting), "workers=%u",
		    best->workers);
	/* The measured gain counts, up to the rate of the trainer. */
	f->gain = best->figure.rate / now;
	if (m->trainer_rate > 0)
		f->gain = fmin(f->gain, fmax(m->trainer_rate / now, 1));
	m->workers = best->workers;
	return true;
}

static bool quota(const struct evidence *e, struct model *m, struct fix *f)
{
	if (e->cpu.quota <= 0 || e->cpu.quota >= e->cpu.allowed)
		return false;
	m->cores = e->cpu.allowed;
	m->workers = fmax(m->workers, m->cores);
	OPTION(f,
	       "set a CPU quota of %u cores instead of %.1f for %s (cpu.max, docker --cpus)",
	       e->cpu.allowed, e->cpu.quota, e->cpu.quota_of);
	WHY(f, "the quota throttled the group in %.0f %% of its periods",
	    100 * e->throttled);
	return true;
}

static bool affinity(const struct evidence *e, struct model *m, struct fix *f)
{
	if (e->cpu.allowed >= e->cpu.online)
		return false;
	m->cores = e->cpu.quota > 0 ? fmin(e->cpu.quota, e->cpu.online)
				    : e->cpu.online;
	m->workers = fmax(m->workers, m->cores);
	OPTION(f, "taskset --cpu-list 0-%u", e->cpu.online - 1);
	WHY(f, "the process may use %u of %u CPUs", e->cpu.allowed,
	    e->cpu.online);
	return true;
}

static bool neighbors(const struct evidence *e, struct model *m, struct fix *f)
{
	if (e->model.others < 0.1 * e->model.cores)
		return false;
	OPTION(f,
	       "move other work to other CPUs, or lower its priority (nice -n 19, cpu.weight)");
	WHY(f, "other processes use %.1f of %.1f cores while the pipeline runs",
	    m->others, m->cores);
	m->others = 0;
	return true;
}

/* --- decoding ------------------------------------------------------------ */

/* Subtracts the CPU time that a variant saves from the model. Returns false if
   it was not measured. */
static bool take_variant(const struct evidence *e, enum variant v,
			 const struct figure *same, struct model *m)
{
	const struct figure *f = &e->variants[v];
	double saved;

	if (!f->known || !same->known || same->cpu_us <= 0)
		return false;
	/* Uses the ratio of costs: the few samples of a variant, in small
	   batches, cost more each than those of a full run. */
	saved = model_cpu_us(m) * (1 - f->cpu_us / same->cpu_us);
	saved = fmin(saved, m->decode_us + m->transform_us);
	m->decode_us -= saved;
	if (m->decode_us < 0) {
		m->transform_us += m->decode_us;
		m->decode_us = 0;
	}
	return true;
}

/* Gives the model the sample size of a variant, for the share `of_all` of the
   samples. */
static void take_bytes(const struct evidence *e, enum variant v, double of_all,
		       struct model *m)
{
	double before = e->variants[VARIANT_SAME].bytes;
	double ratio = before > 0 ? e->variants[v].bytes / before : 1;

	ratio = 1 + of_all * (ratio - 1);
	m->disk_bytes *= ratio;
	m->batch_bytes *= ratio;
	m->moved_bytes += 2 * (1 - 1 / ratio) * m->batch_bytes;
}

/* Returns the mean kilobytes of a sample, if `share` of the samples are stored
   as in a variant. The size of the file would include unused parts of pages. */
static double sample_kb(const struct evidence *e, enum variant v, double share)
{
	double before = e->variants[VARIANT_SAME].bytes;

	return 1e-3 * (before + share * (e->variants[v].bytes - before));
}

static bool draft(const struct evidence *e, struct model *m, struct fix *f)
{
	if (edit_has(e->pipeline, "cache"))
		return false;
	OPTION(f, "use decode(draft) as the first operation");
	format_text(f->setting, sizeof(f->setting), "decode=draft");
	f->changes = FIX_CHANGES_PIXELS;
	WHY(f, "measured: %.0f us of CPU time per sample instead of %.0f",
	    e->variants[VARIANT_DRAFT].cpu_us, e->ladder[RUNG_ALL].cpu_us);
	return take_variant(e, VARIANT_DRAFT, &e->ladder[RUNG_ALL], m);
}

/* Cached images cost decoding once; the others cost it in every epoch. */
static bool cache_decoded(const struct evidence *e, struct model *m,
			  struct fix *f)
{
	double all = e->cached_bytes * m->samples;
	double room = (1 - LEFT_FREE) * (double)e->memory.size.available;
	double kept = all > 0 ? fmin(1, room / all) : 0, cpu = model_cpu_us(m);
	char size[32];

	if (kept < 0.05 || edit_has(e->pipeline, "cache") ||
	    !take_variant(e, VARIANT_CACHED, &e->ladder[RUNG_ALL], m))
		return false;
	size_text(fmax(1.05 * kept * all, 65536), size);
	OPTION(f, "add cache(decoded, %s) before the first random operation",
	       size);
	format_text(f->setting, sizeof(f->setting), "cache_decoded=%s", size);
	WHY(f,
	    "%.0f %% of the images fit; from the second epoch on, each of them saves %.0f of %.0f us of CPU time",
	    100 * kept, cpu - model_cpu_us(m), cpu);
	m->decode_us =
		e->model.decode_us - kept * (e->model.decode_us - m->decode_us);
	m->transform_us = e->model.transform_us -
			  kept * (e->model.transform_us - m->transform_us);
	m->room -= fmin(m->room, kept * all);
	return true;
}

static bool optimize(const struct evidence *e, struct model *m, struct fix *f)
{
	const struct figure *v = &e->variants[VARIANT_OPTIMIZED];

	if (!take_variant(e, VARIANT_OPTIMIZED, &e->variants[VARIANT_SAME], m))
		return false;
	take_bytes(e, VARIANT_OPTIMIZED, 1, m);
	OPTION(f, "beton optimize %s NEWFILE", e->backing);
	WHY(f,
	    "measured: %.0f us of CPU time per sample instead of %.0f, and the same pixels",
	    v->cpu_us, e->variants[VARIANT_SAME].cpu_us);
	return true;
}

/* Tries storing shares of the images as raw pixels. Picks the share with the
   best rate, or the smallest share that is as good. */
static bool raw(const struct evidence *e, struct model *m, struct fix *f)
{
	const struct model before = *m;
	struct model best = before;
	double rate = model_rate(&before, NULL), share = 0;

	if (e->jpegs <= 0)
		return false;
	for (double p = 0.1; p < 1.05; p += 0.1) {
		struct model all = before, some = before;

		if (!take_variant(e, VARIANT_RAW, &e->variants[VARIANT_SAME],
				  &all))
			return false;
		some.decode_us += p * (all.decode_us - before.decode_us);
		some.transform_us +=
			p * (all.transform_us - before.transform_us);
		take_bytes(e, VARIANT_RAW, p, &some);
		if (model_rate(&some, NULL) <= 1.01 * rate)
			continue;
		rate = model_rate(&some, NULL);
		best = some;
		share = p;
	}
	if (share <= 0)
		return false;
	*m = best;
	OPTION(f, "mkfs.beton --mode proportion=%.1f", share);
	WHY(f,
	    "if %.0f %% of the images are stored as pixels, decoding takes %.0f us per sample on average, and a sample has %.0f KB",
	    100 * share, m->decode_us, sample_kb(e, VARIANT_RAW, share));
	return true;
}

static bool resized(const struct evidence *e, struct model *m, struct fix *f)
{
	if (!e->resized_to ||
	    !take_variant(e, VARIANT_RESIZED, &e->variants[VARIANT_SAME], m))
		return false;
	take_bytes(e, VARIANT_RESIZED, 1, m);
	OPTION(f, "mkfs.beton --max-resolution %u", e->resized_to);
	WHY(f,
	    "images have %.0f x %.0f pixels, and the pipeline needs a longer side of %.0f; measured: %.0f us of CPU time per sample instead of %.0f",
	    e->width, e->height, e->resize_to,
	    e->variants[VARIANT_RESIZED].cpu_us,
	    e->variants[VARIANT_SAME].cpu_us);
	return true;
}

static bool as_jpeg(const struct evidence *e, struct model *m, struct fix *f)
{
	if (e->jpegs > 0 || e->images <= 0 ||
	    !take_variant(e, VARIANT_QUALITY, &e->variants[VARIANT_SAME], m))
		return false;
	take_bytes(e, VARIANT_QUALITY, 1, m);
	OPTION(f, "mkfs.beton --mode jpg --quality 90");
	WHY(f, "a sample would have %.0f KB instead of %.0f",
	    sample_kb(e, VARIANT_QUALITY, 1), sample_kb(e, VARIANT_QUALITY, 0));
	return true;
}

static bool fewer_bytes(const struct evidence *e, struct model *m,
			struct fix *f)
{
	if (e->jpegs <= 0 ||
	    !take_variant(e, VARIANT_QUALITY, &e->variants[VARIANT_SAME], m))
		return false;
	take_bytes(e, VARIANT_QUALITY, 1, m);
	OPTION(f, "mkfs.beton --quality 75");
	WHY(f, "a sample would have %.0f KB instead of %.0f",
	    sample_kb(e, VARIANT_QUALITY, 1), sample_kb(e, VARIANT_QUALITY, 0));
	return true;
}

/* --- transforms ---------------------------------------------------------- */

static bool to_the_gpu(const struct evidence *e, struct model *m, struct fix *f)
{
	if (!take_variant(e, VARIANT_GPU, &e->ladder[RUNG_ALL], m))
		return false;
	OPTION(f, "%scuda(0, auto) before normalize",
	       e->on_gpu ? "move cuda(): " : "");
	WHY(f, "measured: %.0f us of CPU time per sample instead of %.0f",
	    e->variants[VARIANT_GPU].cpu_us, e->ladder[RUNG_ALL].cpu_us);
	m->upload_bytes /= 4;
	return true;
}

/* Returns the operation that costs most. Resizing has no cheaper substitute. */
static bool cheaper_op(const struct evidence *e, struct model *m, struct fix *f)
{
	const struct left_out *best = NULL;
	double all = e->ladder[RUNG_ALL].cpu_us, saved;

	for (size_t i = 0; i < e->num_ops; i++) {
		const struct left_out *o = &e->ops[i];

		if (o->possible && o->without.known &&
		    (!best || o->without.cpu_us < best->without.cpu_us))
			best = o;
	}
	saved = best ? all - best->without.cpu_us : 0;
	if (!best || saved < 0.1 * all)
		return false;
	saved = fmin(saved, m->transform_us);
	m->transform_us -= saved;
	OPTION(f, "replace or remove %.200s", best->written);
	WHY(f,
	    "measured: without it, %.0f us of CPU time per sample instead of %.0f",
	    best->without.cpu_us, all);
	return true;
}

static bool smaller_upload(const struct evidence *e, struct model *m,
			   struct fix *f)
{
	if (!e->on_gpu || m->upload_bytes <= 0 ||
	    !edit_has(e->pipeline, "float"))
		return false;
	m->upload_bytes /= 2;
	OPTION(f, "use half instead of float, or cuda(0) before normalize");
	WHY(f,
	    "the loader copies %.0f KB per sample to the GPU; half copies one half of that, cuda(0) one quarter",
	    1e-3 * e->model.upload_bytes);
	return true;
}

static bool wider_link(const struct evidence *e, struct model *m, struct fix *f)
{
	const struct machine_gpu *g = &e->gpus[0];

	if (!e->on_gpu || !e->num_gpus || g->width <= 0 ||
	    g->width >= g->width_max)
		return false;
	m->upload_rate *= (double)g->width_max / g->width;
	OPTION(f, "try another slot, riser or BIOS setting for %s", g->name);
	WHY(f, "its PCIe link uses %d of %d lanes", g->width, g->width_max);
	return true;
}

/* --- the disk ------------------------------------------------------------ */

static bool quasi_random(const struct evidence *e, struct model *m,
			 struct fix *f)
{
	double window = 0.5 * m->room;
	char size[32];

	if (strcmp(e->order, "random") != 0 || e->large.bytes <= m->disk_rate)
		return false;
	size_text(fmin(fmax(window, 16 << 20), 1 << 30), size);
	m->disk_rate = e->large.bytes;
	/* Through the kernel's page cache, samples are read one by one in any
	   order. */
	OPTION(f, "--spec order=quasi_random,window=%s%s", size,
	       is_mount(e)     ? " on a mount with cache=process"
	       : e->cache_size ? ""
			       : " --cache process");
	WHY(f,
	    "measured: reads of %.1f MB give %.1f MB/s, reads of one sample %.1f MB/s",
	    1e-6 * e->large_piece, 1e-6 * e->large.bytes,
	    1e-6 * e->small.bytes);
	format_text(f->setting, sizeof(f->setting),
		    "order=quasi_random,window=%s%s", size,
		    e->cache_size ? "" : ",cache=process");
	f->changes = FIX_CHANGES_ORDER;
	return true;
}

/* The kernel reads on demand. The process's own cache prefetches, with as many
   concurrent reads as the device takes. */
static bool parallel_reads(const struct evidence *e, struct model *m,
			   struct fix *f)
{
	if (e->network.is_remote || e->cache_size ||
	    e->small.bytes <= m->disk_rate || model_misses(m) <= 0)
		return false;
	m->disk_rate = e->small.bytes;
	OPTION(f, is_mount(e) ? "betonfs -o cache=process" : "--cache process");
	WHY(f,
	    "measured: parallel reads of one sample each give %.1f MB/s, the kernel's page cache %.1f MB/s",
	    1e-6 * e->small.bytes, 1e-6 * e->model.disk_rate);
	format_text(f->setting, sizeof(f->setting), "cache=process");
	return true;
}

/* Returns the largest cache that the available memory permits. */
static bool own_cache(const struct evidence *e, struct model *m, struct fix *f)
{
	double room = (1 - LEFT_FREE) * (double)e->memory.size.available;
	double all = m->samples * m->disk_bytes;
	char size[32];

	room = fmin(room, 1.05 * all + (64 << 20));
	if (!e->cache_size || room <= m->room || m->first_epoch)
		return false;
	m->room = room;
	size_text(room, size);
	if (is_mount(e))
		OPTION(f, "betonfs -o cache=process,cache_size=%s", size);
	else
		OPTION(f, "--cache process --cache-size %s", size);
	WHY(f, "%.0f %% of the file stays in memory instead of %.0f %%",
	    100 * (1 - model_misses(m)), 100 * (1 - model_misses(&e->model)));
	format_text(f->setting, sizeof(f->setting),
		    "cache=process,cache_size=%s", size);
	return true;
}

static bool page_cache(const struct evidence *e, struct model *m, struct fix *f)
{
	double all = m->samples * m->disk_bytes;

	if (!e->cache_size || m->first_epoch || e->network.is_remote ||
	    all > (1 - LEFT_FREE) * (double)e->memory.size.available)
		return false;
	m->room = all;
	OPTION(f, is_mount(e) ? "betonfs -o cache=os" : "--cache os");
	WHY(f, "the whole file fits into free memory");
	format_text(f->setting, sizeof(f->setting), "cache=os");
	return true;
}

/* If memory is scarce, a cache that does not evict its pages hits more
   often. */
static bool larger_cache(const struct evidence *e, struct model *m,
			 struct fix *f)
{
	double misses = model_misses(m);
	char size[32];

	if (e->cache_size || misses <= 0 || m->first_epoch || m->room <= 0)
		return false;
	/* The kernel evicts the least recently used pages. An epoch needs
	   exactly these pages next, so the hit rate falls faster than the
	   memory. */
	size_text((1 - LEFT_FREE) * m->room, size);
	m->room *= 1 - LEFT_FREE;
	if (is_mount(e))
		OPTION(f, "betonfs -o cache=process,cache_size=%s", size);
	else
		OPTION(f, "--cache process --cache-size %s", size);
	WHY(f,
	    "the file is larger than memory: the kernel evicts the pages that are needed first, the process cache those that are needed last");
	format_text(f->setting, sizeof(f->setting),
		    "cache=process,cache_size=%s", size);
	f->gain = misses > 0 ? 1 / fmax(model_misses(m), 0.05) : 1;
	return true;
}

static bool nearer(const struct evidence *e, struct model *m, struct fix *f)
{
	if (!e->disk.network)
		return false;
	if (e->network.is_remote) {
		/* Zones of one region have about this rate per machine. */
		m->disk_rate = fmax(m->disk_rate, 400e6);
		OPTION(f,
		       "train in the region of %s, or copy it to a local disk",
		       e->backing);
		WHY(f,
		    "machines near a server, and local disks, read 400 MB/s or more");
		return true;
	}
	/* The slowest solid-state disks reach this rate. */
	m->disk_rate = fmax(m->disk_rate, 400e6);
	OPTION(f, "copy %s to a local disk", e->backing);
	WHY(f, "%s is on the network; a local disk reads 400 MB/s or more",
	    e->disk.source);
	return true;
}

/* --- the network --------------------------------------------------------- */

static bool disk_tier(const struct evidence *e, struct model *m, struct fix *f)
{
	double all = m->samples * m->disk_bytes;

	if (!e->network.is_remote || e->network.tier_size > 0)
		return false;
	m->disk_rate = fmax(m->disk_rate, 400e6);
	OPTION(f,
	       is_mount(e)
		       ? "betonfs -o disk=DIR, on a local disk with %.1f %s free"
		       : "BETON_STORAGE_OPTIONS=disk=DIR, on a local disk with %.1f %s free",
	       all < 1e9 ? 1e-6 * all : 1e-9 * all, all < 1e9 ? "MB" : "GB");
	WHY(f,
	    "from the second epoch on, samples come from the disk, also after a restart");
	return true;
}

/* Requests that are answered at once: twice as many bring twice the bytes. */
static bool more_in_flight(const struct evidence *e, struct model *m,
			   struct fix *f)
{
	const struct network_seen *n = &e->network;
	bool is_full = n->in_flight > 0.9 * n->depth;
	char size[32];

	if (!n->is_remote || !network_is_late(n) || network_is_throttled(n))
		return false;
	m->disk_rate *= 2;
	size_text(2 * (double)e->cache_size, size);
	if (is_full)
		OPTION(f,
		       is_mount(e) ? "betonfs -o connections=%.0f"
				   : "BETON_STORAGE_OPTIONS=connections=%.0f",
		       fmin(2 * ceil(n->depth), 256));
	else if (is_mount(e))
		OPTION(f, "betonfs -o cache_size=%s", size);
	else
		OPTION(f, "--cache process --cache-size %s", size);
	if (!is_full)
		format_text(f->setting, sizeof(f->setting),
			    "cache=process,cache_size=%s", size);
	WHY(f,
	    "estimated: %.0f requests are in flight (at most %.0f), and each waits %.0f ms for its first byte",
	    n->in_flight, n->depth, 1e3 * n->latency_s);
	return true;
}

static bool fewer_requests(const struct evidence *e, struct model *m,
			   struct fix *f)
{
	const struct network_seen *n = &e->network;

	(void)m;
	if (!n->is_remote || !network_is_throttled(n))
		return false;
	OPTION(f,
	       is_mount(e)
		       ? "betonfs -o connections=%.0f, and spread the datasets over several prefixes or buckets"
		       : "BETON_STORAGE_OPTIONS=connections=%.0f, and spread the datasets over several prefixes or buckets",
	       fmax(floor(n->in_flight / 2), 1));
	WHY(f,
	    "the server refused %.0f of %.0f requests; each refusal costs a pause",
	    n->throttled, n->requests);
	f->gain = 1;
	return true;
}

/* Several ranks or jobs share one read of the file. */
static bool share_mount(const struct evidence *e, struct model *m,
			struct fix *f)
{
	if (is_mount(e) || (model_misses(m) <= 0 && e->num_ranks < 2))
		return false;
	(void)m;
	OPTION(f, "betonfs %s MNT, and open MNT in all ranks", e->backing);
	WHY(f,
	    "ranks and jobs on one mount read each byte once and share one cache");
	f->gain = 1;
	return true;
}

static bool zerocopy(const struct evidence *e, struct model *m, struct fix *f)
{
	if (!is_mount(e) || strcmp(e->delivery, "direct") != 0)
		return false;
	/* Zero-copy delivery saves two copies. contrib/bench measures the
	   ratio. */
	m->read_us *= 0.5;
	m->delivery_rate *= 2;
	OPTION(f, "--delivery zero-copy");
	WHY(f,
	    "the loader maps the memory of the daemon, so the kernel copies nothing");
	format_text(f->setting, sizeof(f->setting), "delivery=zero-copy");
	return true;
}

/* --- the trainer --------------------------------------------------------- */

static bool python(const struct evidence *e, struct model *m, struct fix *f)
{
	if (!e->watch.known || e->watch.main_busy < 0.5)
		return false;
	OPTION(f,
	       "profile the trainer (py-spy record --pid PID), and do less per batch in the main thread, for example no copies to NumPy");
	WHY(f,
	    "the main thread is busy %.0f %% of the time, and requests no batch meanwhile",
	    100 * e->watch.main_busy);
	m->trainer_rate = 0;
	f->gain = fmin(model_rate(m, NULL) / model_rate(&e->model, NULL),
		       1 / fmax(1 - e->watch.main_busy, 0.1));
	return true;
}

static bool model_itself(const struct evidence *e, struct model *m,
			 struct fix *f)
{
	if (m->trainer_rate <= 0 ||
	    model_data_rate(m) < 1.15 * m->trainer_rate ||
	    (e->watch.known && e->watch.main_busy > 0.85))
		return false;
	OPTION(f,
	       "speed up the model: mixed precision, a larger batch, torch.compile, a profiler");
	WHY(f,
	    "the loader can deliver %.1f times as many samples as the trainer takes",
	    model_data_rate(m) / m->trainer_rate);
	f->gain = model_data_rate(m) / m->trainer_rate;
	return true;
}

/* The GPU has time and memory left, and data arrives fast enough for several
   models. */
static bool several_models(const struct evidence *e, struct model *m,
			   struct fix *f)
{
	const struct machine_gpu *g = &e->gpus[0];
	double n, data;

	if (!e->num_gpus || !e->watch.known || e->watch.gpu_busy < 0 ||
	    e->watch.main_busy > 0.85 || m->trainer_rate <= 0)
		return false;
	data = model_data_rate(m) / m->trainer_rate;
	n = fmin(data, 100 / fmax(e->watch.gpu_busy, 1));
	if (g->memory_used > 0)
		n = fmin(n, 100.0 / g->memory_used);
	n = floor(fmin(n, MODELS_MAX));
	if (n < 2)
		return false;
	OPTION(f,
	       "train %.0f models on this GPU at once, each in a process of its own (NVIDIA MPS), on one mount",
	       n);
	WHY(f,
	    "the GPU is busy %d %% of the time, its memory is %d %% full, and the loader can deliver %.1f times as many samples; the gain is that of all models together",
	    e->watch.gpu_busy, g->memory_used, data);
	f->gain = n;
	return true;
}

/* The fewest workers that keep the trainer busy, with a reserve. */
static bool fewer_workers(const struct evidence *e, struct model *m,
			  struct fix *f)
{
	double need, rate = model_data_rate(m);

	if (m->trainer_rate <= 0 || rate < 2 * m->trainer_rate ||
	    e->model.workers < 2)
		return false;
	need = ceil(1.3 * m->workers * m->trainer_rate / rate);
	if (need >= m->workers)
		return false;
	OPTION(f, "--jobs %.0f", need);
	WHY(f,
	    "fewer threads are enough, and leave more CPU time to the trainer");
	format_text(f->setting, sizeof(f->setting), "workers=%.0f", need);
	f->gain = 1;
	return true;
}

/* --- the table ----------------------------------------------------------- */

static const struct row {
	bool (*apply)(const struct evidence *e, struct model *m, struct fix *f);
	const char *cost;
	bool always; /* listed even without a gain */
} rows[] = {
	{ workers, "none", false },
	{ quota, "a change of the container's limits", false },
	{ affinity, "none", false },
	{ neighbors, "the other work runs slower or elsewhere", false },
	{ draft, "slightly different pixels, see beton-resize(7)", false },
	{ cache_decoded, "memory, and a slower first epoch", false },
	{ optimize, "you write the dataset once; no pixel changes", false },
	{ raw, "you write the dataset again, and it is larger", false },
	{ resized, "you write the dataset again; pixels change", false },
	{ as_jpeg,
	  "you write the dataset again; pixels change, and loaders have to decode",
	  false },
	{ fewer_bytes, "you write the dataset again; pixels change", false },
	{ to_the_gpu, "some of the GPU's time", false },
	{ cheaper_op, "the content of batches changes", false },
	{ smaller_upload, "less precision, or some of the GPU's time", false },
	{ wider_link, "work on the hardware", false },
	{ quasi_random, "a slightly worse shuffle, see beton-orders(7)",
	  false },
	{ parallel_reads, "memory", false },
	{ own_cache, "memory", false },
	{ page_cache, "none", false },
	{ larger_cache, "memory", false },
	{ nearer, "disk space for the copy", false },
	{ disk_tier, "disk space", false },
	{ more_in_flight, "memory, or load of the server", false },
	{ fewer_requests, "none", true },
	{ share_mount, "a daemon that runs on this machine", true },
	{ zerocopy, "none", false },
	{ python, "changes of the trainer", false },
	{ model_itself, "changes of the model", false },
	{ several_models, "the models share the GPU's memory", false },
	{ fewer_workers, "none", true },
};

static int by_gain(const void *a, const void *b)
{
	double x = ((const struct fix *)a)->gain;
	double y = ((const struct fix *)b)->gain;

	return x < y ? 1 : x > y ? -1 : 0;
}

size_t fix_list(const struct evidence *e, struct fix *out, size_t max)
{
	double now = model_rate(&e->model, NULL);
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows) && n < max; i++) {
		struct model m = e->model;
		struct fix f = { .cost = rows[i].cost };

		if (!rows[i].apply(e, &m, &f))
			continue;
		if (f.gain <= 0 && isfinite(now))
			f.gain = model_rate(&m, NULL) / now;
		if (!isfinite(f.gain) ||
		    (f.gain < FIX_GAIN_LEAST && !rows[i].always))
			continue;
		out[n++] = f;
	}
	qsort(out, n, sizeof(*out), by_gain);
	return n;
}
