/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/doctor/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"

/*
 * Thresholds. A main thread that works 85 % of the time hardly ever waits for
 * batches. Batches that can come 15 % faster than the trainer takes them are
 * ready when it asks.
 */
#define PYTHON_BUSY 0.85
#define GPU_BUSY 90
#define ENOUGH 1.15
#define THROTTLED 0.1
/* If large reads are faster than small ones by this factor, the number of
   requests determines the speed. */
#define REQUESTS 3.0
/* Least share of the time that a trainer must wait for makers. */
#define MAKERS_WAIT 0.05

/* Returns how close a term is to the limit of the data, 0 to 1. The limit
   itself is 1. */
static double nearness(const struct evidence *e, enum term term)
{
	double t = model_term(&e->model, term);

	return isinf(t) ? 0 : model_data_rate(&e->model) / t;
}

/* Returns whether data can arrive clearly faster than the trainer uses it. */
static bool trainer_is_slower(const struct evidence *e)
{
	const struct model *m = &e->model;

	return m->trainer_rate > 0 &&
	       model_data_rate(m) >= ENOUGH * m->trainer_rate;
}

static bool python_is_busy(const struct evidence *e)
{
	return e->watch.known && e->watch.main_busy >= PYTHON_BUSY;
}

/* Lowers the score of a bottleneck in the data if the trainer is slower. */
static double of_data(const struct evidence *e, double score)
{
	if (trainer_is_slower(e) || python_is_busy(e))
		return 0.3 * score;
	return score;
}

static double cpus(const struct evidence *e)
{
	return fmax(nearness(e, TERM_CPU), nearness(e, TERM_WORKERS));
}

/* Returns the share of one stage in the CPU time of a sample. */
static double cpu_share(const struct evidence *e, double us)
{
	double all = model_cpu_us(&e->model);

	return all > 0 ? us / all : 0;
}

static double largest_share(const struct evidence *e)
{
	const struct model *m = &e->model;

	return cpu_share(e,
			 fmax(m->read_us, fmax(m->decode_us, m->transform_us)));
}

/* The stage with the most CPU time gets the whole score of the CPUs. */
static double stage_score(const struct evidence *e, double us)
{
	double s = cpus(e) * cpu_share(e, us) / fmax(largest_share(e), 1e-9);

	return of_data(e, model_is_noisy(&e->model) ? 0.6 * s : s);
}

static bool many_requests(const struct evidence *e)
{
	return !e->network.is_remote && e->small.reads > 0 &&
	       e->large.bytes > 0 &&
	       e->large.bytes >= REQUESTS * e->small.bytes;
}

/* --- scores -------------------------------------------------------------- */

static double disk(const struct evidence *e)
{
	return of_data(e, e->disk.network ? 0 : nearness(e, TERM_DISK));
}

static double network(const struct evidence *e)
{
	if (!e->disk.network || many_requests(e))
		return 0;
	return of_data(e, nearness(e, TERM_DISK));
}

static double api_rate(const struct evidence *e)
{
	if (!e->disk.network || !many_requests(e))
		return 0;
	return of_data(e, nearness(e, TERM_DISK));
}

static double decode(const struct evidence *e)
{
	return stage_score(e, e->model.decode_us);
}

static double transforms(const struct evidence *e)
{
	return stage_score(e, e->model.transform_us);
}

static double delivery(const struct evidence *e)
{
	double s = stage_score(e, e->model.read_us);

	return fmax(s, of_data(e, fmax(nearness(e, TERM_DELIVERY),
				       nearness(e, TERM_MEMORY))));
}

static double memory(const struct evidence *e)
{
	return strcmp(e->source, "mount") ? delivery(e) : 0;
}

static double ipc(const struct evidence *e)
{
	return strcmp(e->source, "mount") ? 0 : delivery(e);
}

static double noisy(const struct evidence *e)
{
	return model_is_noisy(&e->model) ? of_data(e, cpus(e)) : 0;
}

static double upload(const struct evidence *e)
{
	return of_data(e, e->on_gpu ? nearness(e, TERM_UPLOAD) : 0);
}

/* The GPU is busy all the time, or runs at a reduced clock. */
static double gpu(const struct evidence *e)
{
	double s = 0;

	if (python_is_busy(e))
		return 0;
	if (e->watch.known && e->watch.gpu_busy >= GPU_BUSY)
		s = 0.01 * e->watch.gpu_busy;
	for (size_t i = 0; i < e->num_gpus && trainer_is_slower(e); i++) {
		if (machine_gpu_is_slowed(&e->gpus[i]))
			s = 1;
	}
	return s;
}

/* Returns the rank that waits most for makers and their batches, or NULL. */
static const struct rank_seen *most_for_makers(const struct evidence *e)
{
	const struct rank_seen *most = NULL;

	for (size_t i = 0; i < e->num_ranks; i++) {
		const struct rank_seen *r = &e->ranks[i];

		if (r->makers + r->network >=
		    (most ? most->makers + most->network : MAKERS_WAIT))
			most = r;
	}
	return most;
}

/* A trainer that waits mostly for other machines is limited by them, whatever
   this machine could do. */
static double makers(const struct evidence *e)
{
	const struct rank_seen *r = most_for_makers(e);

	return r && r->makers + r->network >= 0.5 * (1 - r->ready);
}

static double python(const struct evidence *e)
{
	return python_is_busy(e) ? fmin(e->watch.main_busy, 1) : 0;
}

static double not_data(const struct evidence *e)
{
	if (!trainer_is_slower(e) || python_is_busy(e))
		return 0;
	return gpu(e) > 0 ? 0.5 : 1;
}

/* --- sentences ----------------------------------------------------------- */

static double rate_of(const struct evidence *e)
{
	return model_data_rate(&e->model);
}

static void describe_disk(const struct evidence *e, char *out, size_t size)
{
	const struct model *m = &e->model;

	snprintf(
		out, size,
		"%.0f %% of the reads miss in memory, and %s (%s) reads %.1f MB/s in this order; the limit is %.0f samples/s",
		100 * model_misses(m), e->disk.source, e->disk.type,
		1e-6 * m->disk_rate, model_term(m, TERM_DISK));
}

/* Appends the share of the time in which the trainer waits for data. */
static void add_wait(const struct evidence *e, char *out, size_t size)
{
	double ready = 1;
	size_t n = strlen(out);

	for (size_t i = 0; i < e->num_ranks; i++)
		ready = fmin(ready, e->ranks[i].ready);
	if (ready < 1 && n < size)
		snprintf(out + n, size - n,
			 "; the trainer waits for data %.0f %% of the time",
			 100 * (1 - ready));
}

static void describe_network(const struct evidence *e, char *out, size_t size)
{
	const struct network_seen *n = &e->network;
	double limit = model_term(&e->model, TERM_DISK);

	if (!n->is_remote || !n->known) {
		describe_disk(e, out, size);
		return;
	}
	if (network_is_throttled(n))
		snprintf(
			out, size,
			"the server asks for fewer requests in %.0f of %.0f answers (429 or 503), and %.1f MB/s arrive; the limit is %.0f samples/s",
			n->throttled, n->requests, 1e-6 * n->rate, limit);
	else if (network_is_late(n))
		snprintf(
			out, size,
			"an answer takes %.0f ms to begin, and %.0f requests of %.0f KB in flight bring %.1f MB/s; the limit is %.0f samples/s",
			1e3 * n->latency_s, n->in_flight,
			1e-3 * n->request_bytes, 1e-6 * n->rate, limit);
	else
		snprintf(
			out, size,
			"%.1f MB/s arrive with %.0f requests in flight, so the connection or the server carries no more; the limit is %.0f samples/s",
			1e-6 * n->rate, n->in_flight, limit);
	add_wait(e, out, size);
}

static void describe_api(const struct evidence *e, char *out, size_t size)
{
	snprintf(
		out, size,
		"%s (%s) answers %.0f requests/s of one sample each, in %.1f ms each; they read %.1f MB/s, large requests %.1f MB/s",
		e->disk.source, e->disk.type, e->small.reads,
		1e3 * e->small.latency_s, 1e-6 * e->small.bytes,
		1e-6 * e->large.bytes);
}

static void describe_cores(const struct evidence *e, char *out, size_t size)
{
	const struct model *m = &e->model;

	if (m->workers < m->cores)
		snprintf(out, size, "%.0f worker%s on %.1f cores", m->workers,
			 m->workers == 1 ? "" : "s", m->cores);
	else if (e->cpu.quota > 0 && e->cpu.quota < e->cpu.allowed)
		snprintf(out, size, "a quota of %.1f cores", e->cpu.quota);
	else if (e->cpu.allowed < e->cpu.online)
		snprintf(out, size, "%u of %u CPUs allowed", e->cpu.allowed,
			 e->cpu.online);
	else
		snprintf(out, size, "%.1f cores", model_cores(m));
}

static void describe_decode(const struct evidence *e, char *out, size_t size)
{
	char cores[64];

	describe_cores(e, cores, sizeof(cores));
	snprintf(
		out, size,
		"decoding takes %.0f of %.0f us of CPU time per sample (%.0f x %.0f pixels); with %s, the limit is %.0f samples/s",
		e->model.decode_us, model_cpu_us(&e->model), e->width,
		e->height, cores, rate_of(e));
}

/* The operation that saves most if it is left out. */
static const struct left_out *dearest(const struct evidence *e)
{
	const struct left_out *best = NULL;

	for (size_t i = 0; i < e->num_ops; i++) {
		const struct left_out *o = &e->ops[i];

		if (o->possible && o->without.known &&
		    (!best || o->without.cpu_us < best->without.cpu_us))
			best = o;
	}
	return best;
}

static void describe_transforms(const struct evidence *e, char *out,
				size_t size)
{
	const struct left_out *o = dearest(e);
	double all = e->ladder[RUNG_ALL].cpu_us;
	char cores[64];
	int n;

	describe_cores(e, cores, sizeof(cores));
	n = snprintf(
		out, size,
		"the operations after decoding take %.0f of %.0f us of CPU time per sample; with %s, the limit is %.0f samples/s",
		e->model.transform_us, model_cpu_us(&e->model), cores,
		rate_of(e));
	if (o && n > 0 && (size_t)n < size && all - o->without.cpu_us > 1)
		snprintf(out + n, size - (size_t)n,
			 "; %.60s alone takes %.0f us", o->written,
			 all - o->without.cpu_us);
}

static void describe_memory(const struct evidence *e, char *out, size_t size)
{
	const struct model *m = &e->model;

	snprintf(
		out, size,
		"the delivery of batches from memory takes %.0f of %.0f us of CPU time per sample, at %.0f MB/s; this machine copies memory at %.1f GB/s",
		m->read_us, model_cpu_us(m), 1e-6 * m->batch_bytes * rate_of(e),
		1e-9 * m->memory_rate);
}

static void describe_ipc(const struct evidence *e, char *out, size_t size)
{
	const struct model *m = &e->model;

	snprintf(
		out, size,
		"the delivery of batches from the mount (%s) takes %.0f of %.0f us of CPU time per sample; the limit is %.0f samples/s",
		e->delivery, m->read_us, model_cpu_us(m),
		fmin(model_term(m, TERM_DELIVERY), rate_of(e)));
}

static void describe_noisy(const struct evidence *e, char *out, size_t size)
{
	snprintf(
		out, size,
		"other processes%s use %.1f of %.1f cores; without them, the limit would be %.0f samples/s instead of %.0f",
		e->stolen >= 0.1 ? " or guests of the host" : "",
		e->model.others, e->model.cores,
		1e6 * e->model.cores / model_cpu_us(&e->model), rate_of(e));
}

static void describe_upload(const struct evidence *e, char *out, size_t size)
{
	const struct model *m = &e->model;

	snprintf(
		out, size,
		"the loader copies %.0f KB per sample to the GPU at %.2f GB/s; the limit is %.0f samples/s",
		1e-3 * m->upload_bytes, 1e-9 * m->upload_rate,
		model_term(m, TERM_UPLOAD));
}

static void describe_gpu(const struct evidence *e, char *out, size_t size)
{
	const struct machine_gpu *g = &e->gpus[0];

	for (size_t i = 0; i < e->num_gpus; i++)
		if (machine_gpu_is_slowed(&e->gpus[i]))
			g = &e->gpus[i];
	if (machine_gpu_is_slowed(g))
		snprintf(
			out, size,
			"heat or power limits %s to %d of %d MHz, and the loader can deliver %.0f samples/s",
			g->name, g->clock, g->clock_max, rate_of(e));
	else
		snprintf(
			out, size,
			"the GPU is busy %d %% of the time, and the loader can deliver %.0f samples/s",
			e->watch.gpu_busy, rate_of(e));
}

static bool is_for_network(const struct rank_seen *r)
{
	return r->network > r->makers;
}

static void describe_makers(const struct evidence *e, char *out, size_t size)
{
	const struct rank_seen *r = most_for_makers(e);

	if (r && is_for_network(r))
		snprintf(
			out, size,
			"rank %u waits %.0f %% of the time for batches to arrive from its makers, and %.0f %% for makers to make them: the network carries no more",
			r->rank, 100 * r->network, 100 * r->makers);
	else if (r)
		snprintf(
			out, size,
			"rank %u waits %.0f %% of the time for its makers to make batches, and %.0f %% for batches to arrive: more makers would help",
			r->rank, 100 * r->makers, 100 * r->network);
}

static void describe_python(const struct evidence *e, char *out, size_t size)
{
	snprintf(
		out, size,
		"the trainer's main thread is busy %.0f %% of the time%s; its loader uses %.1f of %.1f cores",
		100 * e->watch.main_busy,
		e->watch.own_rate > 0 ? ", also with synthetic batches" : "",
		e->watch.loader_cores, e->model.cores);
}

static void describe_not_data(const struct evidence *e, char *out, size_t size)
{
	snprintf(out, size,
		 "the loader can deliver %.0f samples/s, and the %s%s%.0f",
		 rate_of(e), e->watch.known ? "trainer takes " : "target is ",
		 e->watch.rate_is_guess ? "about " : "", e->model.trainer_rate);
}

/* --- ranks --------------------------------------------------------------- */

/* A rank below this share of the fastest rank's rate delays the job. */
#define STRAGGLES 0.8
/* Shorter waits for data, as a share of the time, are not reported. */
#define WAITS 0.1

static void describe_straggler(const struct rank_seen *slow,
			       const struct rank_seen *fast, char *out,
			       size_t size)
{
	double waits = 1 - slow->ready;

	if (waits >= WAITS)
		snprintf(
			out, size,
			"rank %u is slow because it waits for data %.0f %% of the time: it takes %.1f batches/s, other ranks up to %.1f",
			slow->rank, 100 * waits, slow->rate, fast->rate);
	else
		snprintf(
			out, size,
			"rank %u is slow, but not because of data: it takes %.1f batches/s, other ranks up to %.1f, and its batches are ready",
			slow->rank, slow->rate, fast->rate);
}

/* All ranks have one rate: a rank that waits for data delays the others. */
static void describe_throughput(const struct rank_seen *least,
				const struct rank_seen *most, char *out,
				size_t size)
{
	double waits = 1 - least->ready;

	if (waits < WAITS)
		snprintf(out, size,
			 "data does not limit scaling: no rank waits for it");
	else if (1 - most->ready < waits / 2)
		snprintf(
			out, size,
			"rank %u limits all ranks, because it waits for data %.0f %% of the time",
			least->rank, 100 * waits);
	else
		snprintf(
			out, size,
			"data limits scaling: ranks wait for it %.0f to %.0f %% of the time",
			100 * (1 - most->ready), 100 * waits);
}

void verdict_ranks(const struct evidence *e, char *out, size_t size)
{
	const struct rank_seen *r = e->ranks;
	size_t slow = 0, fast = 0, least = 0, most = 0;

	out[0] = '\0';
	if (e->num_ranks < 2)
		return;
	for (size_t i = 1; i < e->num_ranks; i++) {
		slow = r[i].rate < r[slow].rate ? i : slow;
		fast = r[i].rate > r[fast].rate ? i : fast;
		least = r[i].ready < r[least].ready ? i : least;
		most = r[i].ready > r[most].ready ? i : most;
	}
	if (r[slow].rate < STRAGGLES * r[fast].rate)
		describe_straggler(&r[slow], &r[fast], out, size);
	else
		describe_throughput(&r[least], &r[most], out, size);
}

/* --- the table ----------------------------------------------------------- */

static const struct row {
	const char *name;
	double (*score)(const struct evidence *e);
	void (*describe)(const struct evidence *e, char *out, size_t size);
} rows[] = {
	{ "makers", makers, describe_makers },
	{ "disk", disk, describe_disk },
	{ "network", network, describe_network },
	{ "API rate", api_rate, describe_api },
	{ "cpu decode", decode, describe_decode },
	{ "cpu transforms", transforms, describe_transforms },
	{ "memory bandwidth", memory, describe_memory },
	{ "ipc", ipc, describe_ipc },
	{ "noisy neighbor", noisy, describe_noisy },
	{ "upload", upload, describe_upload },
	{ "gpu", gpu, describe_gpu },
	{ "trainer's Python", python, describe_python },
	{ "not data", not_data, describe_not_data },
};

static bool is_about_cpu(const char *name)
{
	return !strncmp(name, "cpu ", 4);
}

static const char *cause_of_network(const struct network_seen *n)
{
	if (!n->is_remote || !n->known)
		return "";
	if (network_is_throttled(n))
		return "throttled by the server";
	return network_is_late(n) ? "latency" : "bandwidth";
}

static const char *cause_of(const struct evidence *e, const char *name)
{
	if (!strcmp(name, "noisy neighbor"))
		return e->stolen > 0.5 * e->model.others ? "host" : "processes";
	if (!strcmp(name, "network"))
		return cause_of_network(&e->network);
	if (!strcmp(name, "makers"))
		return is_for_network(most_for_makers(e)) ? "network"
							  : "too few";
	if (!is_about_cpu(name))
		return "";
	if (nearness(e, TERM_WORKERS) >= 1)
		return "workers";
	if (e->throttled >= THROTTLED ||
	    (e->cpu.quota > 0 && e->cpu.quota < e->cpu.allowed))
		return "quota";
	if (e->cpu.allowed < e->cpu.online)
		return "affinity";
	return "";
}

const char *verdict_row(const struct evidence *e, size_t i, double *score)
{
	if (i >= ARRAY_LEN(rows))
		return NULL;
	*score = rows[i].score(e);
	return rows[i].name;
}

void verdict_find(const struct evidence *e, struct verdict *out)
{
	const struct row *best = &rows[0];
	double score = -1;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		double s = rows[i].score(e);

		if (s <= score)
			continue;
		score = s;
		best = &rows[i];
	}
	*out = (struct verdict){
		.name = best->name,
		.cause = cause_of(e, best->name),
		.score = score,
	};
	best->describe(e, out->text, sizeof(out->text));
}
