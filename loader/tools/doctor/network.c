/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/doctor/network.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "loader/util/read_file.h"

enum {
	STATS_MAX = 8 << 20,
	TICK_MS = 50, /* between two samples of the figures */
};

/* Connections open and the depth grows in the first part of a run. */
#define WARM_SHARE 0.3
#define LONG_S 1.0
#define NEW_SHARE 0.5

/* Sums over the samples of a run. */
struct network_sums {
	unsigned n;
	double in_flight, depth, waiting;
};

struct network_look {
	const struct network_plan *plan;
	struct beton_loader *loader;
	bool is_mount;
	struct beton_network_stats first, last;
	int64_t first_ns, last_ns;
	uint64_t first_bytes, last_bytes; /* delivered by the loader */
	struct network_sums sums;
};

/* --- the figures of a daemon --- */

static double number_at(json_t *o, const char *key)
{
	double v = json_number_value(json_object_get(o, key));

	return v > 0 && v < 1e18 ? v : 0;
}

static void add_network(json_t *o, struct beton_network_stats *to)
{
	json_t *tier = json_object_get(o, "tier");

	to->rate += (uint64_t)number_at(o, "rate");
	to->latency_ns = max_u64(to->latency_ns,
				 (uint64_t)(1e9 * number_at(o, "latency_s")));
	to->p50_ns = max_u64(
		to->p50_ns, (uint64_t)(1e9 * number_at(o, "first_byte_p50_s")));
	to->p99_ns = max_u64(
		to->p99_ns, (uint64_t)(1e9 * number_at(o, "first_byte_p99_s")));
	to->in_flight += (uint64_t)number_at(o, "in_flight");
	to->waiting += (uint64_t)number_at(o, "waiting");
	to->depth += (uint64_t)number_at(o, "depth");
	to->requests += (uint64_t)number_at(o, "requests");
	to->retries += (uint64_t)number_at(o, "retries");
	to->throttled += (uint64_t)number_at(o, "throttled");
	to->payload_bytes += (uint64_t)number_at(o, "payload_bytes");
	to->is_out |= number_at(o, "is_out") > 0;
	to->tier_size += (uint64_t)number_at(tier, "size_bytes");
	to->tier_stored += (uint64_t)number_at(tier, "stored_bytes");
}

/* The statistics in the directory of a dataset are those of this dataset. */
static int read_mount(const char *mount, struct beton_network_stats *out)
{
	cleanup_free char *text = NULL;
	cleanup_fd int fd = -1;
	char path[PATH_MAX];
	json_t *stats, *o;
	size_t n, i;

	snprintf(path, sizeof(path), "%.4000s/.betonfs/stats.json", mount);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read_file_fd(fd, STATS_MAX - 1, &text, &n))
		return -ENODATA;
	stats = json_loadb(text, n, 0, NULL);
	*out = (struct beton_network_stats){ .size = sizeof(*out) };
	json_array_foreach(json_object_get(stats, "network"), i, o)
		add_network(o, out);
	json_decref(stats);
	return i ? 0 : -ENODATA;
}

/* --- a run --- */

static int read_figures(const struct network_look *look,
			struct beton_network_stats *out)
{
	if (look->is_mount)
		return read_mount(look->plan->place->path, out);
	out->size = sizeof(*out);
	return beton_loader_network(look->loader, out);
}

static void sample(struct network_look *look)
{
	const struct beton_network_stats *s = &look->last;

	if (read_figures(look, &look->last))
		return;
	look->last_ns = clock_ns();
	look->sums.n++;
	look->sums.in_flight += (double)s->in_flight;
	look->sums.depth += (double)s->depth;
	look->sums.waiting += (double)s->waiting;
}

/* Begins to measure. */
static void begin(struct network_look *look)
{
	look->sums = (struct network_sums){ 0 };
	sample(look);
	look->first = look->last;
	look->first_ns = look->last_ns;
	look->first_bytes = look->last_bytes;
}

/* Reads until the time is over or the epoch ends. */
static int read_samples(struct network_look *look)
{
	const volatile sig_atomic_t *stop = look->plan->place->stop;
	double seconds = look->plan->seconds;
	int64_t start = clock_ns(), next = start;
	int64_t warm = start + (int64_t)(1e9 * WARM_SHARE * seconds);
	int64_t end = start + (int64_t)(1e9 * seconds);
	const struct beton_batch *batch;
	bool is_warm = false;
	int r = 0;

	begin(look);
	for (int64_t now = start; now < end && !r; now = clock_ns()) {
		if (*stop)
			return -ECANCELED;
		if (!is_warm && now >= warm) {
			is_warm = true;
			begin(look);
		}
		if (now >= next) {
			sample(look);
			next = now + TICK_MS * INT64_C(1000000);
		}
		r = beton_loader_wait(look->loader, TICK_MS);
		if (r == -EAGAIN) {
			r = 0;
			continue;
		}
		r = r ? r : beton_loader_next(look->loader, &batch);
		if (!r) {
			for (uint32_t i = 0; i < batch->num_outputs; i++)
				look->last_bytes += batch->outputs[i].size;
			beton_loader_release(look->loader, batch);
		}
	}
	/* The end of the epoch. */
	r = r == -ENODATA ? 0 : r;
	if (!r)
		sample(look);
	return r;
}

/* Bytes per second. In a short run, or if a cache delivered most bytes, the
   highest rate of the last seconds is closer to the link. */
static double rate_of(const struct network_look *look, double payload,
		      double seconds)
{
	double delivered = (double)(look->last_bytes - look->first_bytes);

	if (seconds >= LONG_S && payload >= NEW_SHARE * delivered)
		return payload / seconds;
	return fmax(payload / seconds, (double)look->last.rate);
}

static void take_figures(const struct network_look *look, struct evidence *e)
{
	const struct beton_network_stats *a = &look->first, *b = &look->last;
	double s = 1e-9 * (double)(look->last_ns - look->first_ns);
	double payload = (double)(b->payload_bytes - a->payload_bytes);
	double n = fmax(look->sums.n, 1);
	struct network_seen *to = &e->network;
	double requests = (double)(b->requests - a->requests);
	struct disk_rate *rate = look->plan->is_large ? &e->large : &e->small;

	to->tier_size = (double)b->tier_size;
	to->tier_stored = (double)b->tier_stored;
	to->is_out = b->is_out;
	if (s <= 0 || requests < 1 || payload <= 0)
		return;
	*rate = (struct disk_rate){
		.bytes = rate_of(look, payload, s),
		.reads = requests / s,
		.latency_s = 1e-9 * (double)b->p50_ns,
		.direct = true,
	};
	if (look->plan->is_large) {
		e->large_piece = payload / requests;
		return;
	}
	to->known = true;
	to->rate = rate->bytes;
	to->latency_s = 1e-9 * (double)b->latency_ns;
	to->p50_s = 1e-9 * (double)b->p50_ns;
	to->p99_s = 1e-9 * (double)b->p99_ns;
	to->in_flight = look->sums.in_flight / n;
	to->depth = look->sums.depth / n;
	to->waiting = look->sums.waiting / n;
	to->request_bytes = payload / requests;
	to->requests = requests;
	to->retries = (double)(b->retries - a->retries);
	to->throttled = (double)(b->throttled - a->throttled);
}

int network_measure(const struct network_plan *plan, struct evidence *e,
		    char *why)
{
	struct network_look look = { .plan = plan };
	struct beton_loader_options options = {
		.size = sizeof(options),
		.spec = plan->place->spec,
		.subset = plan->place->subset,
		.delivery = plan->place->delivery,
		.cache = plan->place->cache,
		.cache_size = plan->place->cache_size,
		.prefetch = plan->place->prefetch,
		.until = BETON_STAGE_READ,
		.job = "doctor",
		.on_error = BETON_ON_ERROR_SKIP,
		.error = why,
		.error_size = RUN_WHY_SIZE,
	};
	struct beton_loader_info info;
	int r = beton_loader_open(plan->place->path, &options, &look.loader);

	if (r)
		return r;
	beton_loader_info(look.loader, &info);
	look.is_mount = !strcmp(info.source, "mount");
	r = read_samples(&look);
	if (r && r != -ECANCELED)
		snprintf(why, RUN_WHY_SIZE, "%s",
			 beton_loader_error(look.loader));
	beton_loader_close(look.loader);
	if (!r)
		take_figures(&look, e);
	return r;
}
