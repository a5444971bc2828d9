/* SPDX-License-Identifier: Apache-2.0 */
/* From evidence to verdicts and fixes, without a machine. */
#include <math.h>
#include <string.h>

#include "loader/tools/doctor/estimate.h"
#include "loader/tools/doctor/fix.h"
#include "loader/tools/doctor/verdict.h"
#include "tests/unit/t.h"

/* Four cores, JPEGs that fit into memory, decoding and transforms alike. */
static struct evidence ordinary(void)
{
	struct evidence e = {
		.path = "/data/train.beton",
		.pipeline = "random_resized_crop(224) | normalize(imagenet)",
		.spec = "order=random,batch=256",
		.source = "file",
		.delivery = "in-process",
		.order = "random",
		.backing = "/data/train.beton",
		.images = 1,
		.jpegs = 1,
		.width = 500,
		.height = 375,
		.cpu = { .online = 4, .allowed = 4, .nodes = 1 },
		.disk = { .type = "ext4", .source = "/dev/sda1" },
		.small = { .bytes = 400e6, .reads = 4000 },
		.large = { .bytes = 500e6, .reads = 60 },
		.watch = { .gpu_busy = -1 },
		.model = {
			.samples = 1e6,
			.disk_bytes = 100e3,
			.room = 200e9,
			.disk_rate = 400e6,
			.batch_bytes = 100e3,
			.delivery_rate = 5e9,
			.read_us = 20,
			.decode_us = 400,
			.transform_us = 200,
			.cores = 4,
			.workers = 4,
			.moved_bytes = 1e6,
			.memory_rate = 2e10,
		},
	};

	e.memory.size.available = (uint64_t)200e9;
	e.ladder[RUNG_ALL] =
		(struct figure){ .known = true, .rate = 6400, .cpu_us = 620 };
	return e;
}

static void check(const struct evidence *e, const char *name, const char *cause)
{
	struct verdict v;

	verdict_find(e, &v);
	if (strcmp(v.name, name) || strcmp(v.cause, cause))
		fprintf(stderr, "%s (%s): %s\n", v.name, v.cause, v.text);
	CHECK(!strcmp(v.name, name) && !strcmp(v.cause, cause));
	CHECK(strlen(v.text) > 20 && v.score > 0 && v.score <= 1);
}

static void the_model_is_the_least_of_its_terms(void)
{
	struct model m = ordinary().model;
	enum term which;

	CHECK(fabs(model_rate(&m, &which) - 4e6 / 620) < 1e-6);
	CHECK(which == TERM_CPU);
	CHECK(isinf(model_term(&m, TERM_DISK)));
	CHECK(isinf(model_term(&m, TERM_TRAINER)));
	CHECK(isinf(model_term(&m, TERM_WORKERS)));
	/* Half of the file is not there: half of the reads miss. */
	m.room = 50e9;
	CHECK(fabs(model_misses(&m) - 0.5) < 1e-9);
	CHECK(fabs(model_term(&m, TERM_DISK) - 8000) < 1e-6);
	m.others = 3;
	CHECK(fabs(model_rate(&m, &which) - 1e6 / 620) < 1e-6);
	m.others = 4;
	CHECK(model_rate(&m, NULL) > 0);
	m.trainer_rate = 10;
	CHECK(model_rate(&m, &which) == 10 && which == TERM_TRAINER);
	CHECK(model_data_rate(&m) > 10);
}

static void cpu_cases(void)
{
	struct evidence e = ordinary();

	check(&e, "cpu decode", "");
	e.model.transform_us = 500;
	check(&e, "cpu transforms", "");
	e = ordinary();
	e.model.workers = 1;
	check(&e, "cpu decode", "workers");
	e = ordinary();
	e.cpu.quota = 1;
	e.model.cores = 1;
	check(&e, "cpu decode", "quota");
	e = ordinary();
	e.cpu.allowed = 1;
	e.model.cores = 1;
	check(&e, "cpu decode", "affinity");
	e = ordinary();
	e.model.others = 2;
	check(&e, "noisy neighbor", "processes");
	e.stolen = 1.9;
	check(&e, "noisy neighbor", "host");
	/* A little noise is no reason. */
	e = ordinary();
	e.model.others = 0.5;
	check(&e, "cpu decode", "");
}

static void makers(void)
{
	struct evidence e = ordinary();

	e.num_ranks = 2;
	e.ranks[0] = (struct rank_seen){ .rate = 10, .ready = 0.98 };
	e.ranks[1] = (struct rank_seen){ .rank = 1,
					 .rate = 10,
					 .ready = 0.5,
					 .makers = 0.3,
					 .network = 0.1 };
	check(&e, "makers", "too few");
	e.ranks[1].network = 0.35;
	check(&e, "makers", "network");
	/* The trainer waits mostly for its own workers. */
	e.ranks[1].makers = e.ranks[1].network = 0.1;
	check(&e, "cpu decode", "");
	/* It hardly waits. */
	e.ranks[1].ready = 0.97;
	e.ranks[1].makers = 0.03;
	e.ranks[1].network = 0;
	check(&e, "cpu decode", "");
}

static void disks(void)
{
	struct evidence e = ordinary();

	e.model.disk_rate = 30e6;
	check(&e, "cpu decode", "");
	e.model.first_epoch = true;
	check(&e, "disk", "");
	e.model.first_epoch = false;
	e.model.room = 10e9;
	check(&e, "disk", "");
	e.disk.network = true;
	e.small.bytes = 30e6;
	e.large.bytes = 40e6;
	check(&e, "network", "");
	e.large.bytes = 300e6;
	check(&e, "API rate", "");
	/* Noise does not make a slow disk faster. */
	e.model.others = 3;
	check(&e, "API rate", "");
}

static struct evidence behind_a_url(void)
{
	struct evidence e = ordinary();

	e.disk.network = true;
	e.model.room = 10e9;
	e.model.disk_rate = 30e6;
	e.cache_size = 10000000000;
	e.small = (struct disk_rate){ .bytes = 30e6, .reads = 300 };
	e.large = (struct disk_rate){ .bytes = 300e6, .reads = 300 };
	e.network = (struct network_seen){
		.is_remote = true,
		.known = true,
		.rate = 30e6,
		.latency_s = 0.1,
		.in_flight = 30,
		.depth = 64,
		.request_bytes = 1e5,
		.requests = 1000,
	};
	return e;
}

static bool has_fix(const struct evidence *e, const char *text)
{
	struct fix fixes[FIXES_MAX];
	size_t n = fix_list(e, fixes, FIXES_MAX);

	for (size_t i = 0; i < n; i++) {
		if (strstr(fixes[i].option, text))
			return true;
	}
	return false;
}

static void urls(void)
{
	struct evidence e = behind_a_url();
	struct verdict v;

	/* 3 MB are in flight, as many as arrive in 0.1 s. */
	check(&e, "network", "latency");
	CHECK(has_fix(&e, "--cache process --cache-size 18GiB"));
	CHECK(has_fix(&e, "BETON_STORAGE_OPTIONS=disk=DIR"));
	CHECK(has_fix(&e, "order=quasi_random"));
	CHECK(!has_fix(&e, "--cache os") && !has_fix(&e, "connections="));
	e.network.in_flight = 63;
	e.network.request_bytes = 5e4;
	CHECK(has_fix(&e, "BETON_STORAGE_OPTIONS=connections=128"));
	e.network.in_flight = 100;
	e.network.request_bytes = 1e5;
	check(&e, "network", "bandwidth");
	CHECK(!has_fix(&e, "connections="));
	e.network.throttled = 9;
	check(&e, "network", "bandwidth");
	e.network.throttled = 10;
	check(&e, "network", "throttled by the server");
	CHECK(has_fix(&e, "connections=50, and spread"));
	strcpy(e.source, "mount");
	CHECK(has_fix(&e, "betonfs -o connections=50"));
	CHECK(has_fix(&e, "betonfs -o disk=DIR"));
	e.network.tier_size = 1;
	CHECK(!has_fix(&e, "disk=DIR"));
	e.num_ranks = 1;
	e.ranks[0] = (struct rank_seen){ .ready = 0.25 };
	verdict_find(&e, &v);
	CHECK(strstr(v.text, "waits for data 75 % of the time"));
	/* Memory has everything. */
	e.model.room = 1e12;
	check(&e, "cpu decode", "");
	e.num_ranks = 0;
	e.network.known = false;
	e.model.room = 0;
	check(&e, "network", "");
}

static void waits_in_a_first_epoch(void)
{
	struct evidence e = behind_a_url();

	e.model.room = 1e12;
	e.watch.known = true;
	e.watch.rate = 300;
	e.num_ranks = 1;
	e.ranks[0] = (struct rank_seen){ .ready = 0.95 };
	watch_model(&e);
	CHECK(!e.model.first_epoch);
	e.ranks[0].ready = 0.5;
	watch_model(&e);
	CHECK(e.model.first_epoch);
	check(&e, "network", "latency");
}

static void delivery(void)
{
	struct evidence e = ordinary();

	e.model.read_us = 900;
	check(&e, "memory bandwidth", "");
	snprintf(e.source, sizeof(e.source), "mount");
	check(&e, "ipc", "");
	e = ordinary();
	e.model.delivery_rate = 100e6;
	check(&e, "memory bandwidth", "");
	e = ordinary();
	e.model.memory_rate = 1e9;
	check(&e, "memory bandwidth", "");
}

static void gpus(void)
{
	struct evidence e = ordinary();

	e.on_gpu = true;
	e.num_gpus = 1;
	e.model.upload_bytes = 600e3;
	e.model.upload_rate = 1e9;
	check(&e, "upload", "");
	e.model.upload_rate = 20e9;
	check(&e, "cpu decode", "");
	e.watch.known = true;
	e.watch.gpu_busy = 98;
	e.model.trainer_rate = 3000;
	check(&e, "gpu", "");
	e.watch.gpu_busy = 40;
	check(&e, "not data", "");
	e.gpus[0].slowed = 0x40;
	check(&e, "gpu", "");
}

static void trainers(void)
{
	struct evidence e = ordinary();

	e.model.trainer_rate = 1000;
	check(&e, "not data", "");
	e.model.trainer_rate = 6300;
	check(&e, "cpu decode", "");
	e.model.trainer_rate = 1000;
	e.watch.known = true;
	e.watch.main_busy = 0.1;
	check(&e, "not data", "");
	e.watch.main_busy = 0.97;
	check(&e, "trainer's Python", "");
	/* A slow disk does not limit a trainer that takes less than it reads.
	 */
	e = ordinary();
	e.model.room = 10e9;
	e.model.trainer_rate = 1000;
	check(&e, "not data", "");
}

static const struct fix *find(const struct fix *fixes, size_t n,
			      const char *text)
{
	for (size_t i = 0; i < n; i++) {
		if (strstr(fixes[i].option, text))
			return &fixes[i];
	}
	return NULL;
}

static void fixes_change_the_model(void)
{
	struct evidence e = ordinary();
	struct fix fixes[FIXES_MAX];
	const struct fix *f;
	size_t n;

	/* A quarter of the pixels: 300 us less of 620. */
	e.resized_to = 250;
	e.variants[VARIANT_SAME] =
		(struct figure){ .known = true, .cpu_us = 620, .bytes = 1e5 };
	e.variants[VARIANT_RESIZED] =
		(struct figure){ .known = true, .cpu_us = 320, .bytes = 3e4 };
	e.variants[VARIANT_OPTIMIZED] =
		(struct figure){ .known = true, .cpu_us = 610, .bytes = 1e5 };
	n = fix_list(&e, fixes, FIXES_MAX);
	f = find(fixes, n, "--max-resolution 250");
	CHECK(f && fabs(f->gain - 620.0 / 320) < 1e-6 && f == &fixes[0]);
	/* Gains within the noise are not reported. */
	CHECK(!find(fixes, n, "beton optimize"));
	CHECK(!find(fixes, n, "quasi_random"));
	/* Nothing about data helps a slow trainer. */
	e.model.trainer_rate = 100;
	n = fix_list(&e, fixes, FIXES_MAX);
	CHECK(!find(fixes, n, "--max-resolution"));
	CHECK(find(fixes, n, "the model"));
	f = find(fixes, n, "--jobs 1");
	CHECK(f && f->gain == 1);
}

static void fixes_of_disks(void)
{
	struct evidence e = ordinary();
	struct fix fixes[FIXES_MAX];
	const struct fix *f;
	size_t n;

	e.model.room = 10e9;
	e.memory.size.available = (uint64_t)10e9;
	e.model.disk_rate = 10e6;
	e.small.bytes = 10e6;
	e.large.bytes = 100e6;
	n = fix_list(&e, fixes, FIXES_MAX);
	f = find(fixes, n, "order=quasi_random");
	CHECK(f && fabs(f->gain - 10) < 0.01);
	/* 60 KB instead of 100: of 40 instead of 90 GB missing. */
	e.variants[VARIANT_SAME] =
		(struct figure){ .known = true, .cpu_us = 620, .bytes = 1e5 };
	e.variants[VARIANT_QUALITY] =
		(struct figure){ .known = true, .cpu_us = 620, .bytes = 5e4 };
	n = fix_list(&e, fixes, FIXES_MAX);
	f = find(fixes, n, "--quality 75");
	CHECK(f && fabs(f->gain - 90.0 / 40) < 0.01);
	/* Pixels would need more of what is missing. */
	e.variants[VARIANT_RAW] =
		(struct figure){ .known = true, .cpu_us = 220, .bytes = 5e5 };
	n = fix_list(&e, fixes, FIXES_MAX);
	CHECK(!find(fixes, n, "proportion"));
	e.model.disk_rate = 100e9;
	e.small.bytes = e.large.bytes = 100e9;
	/* More than this share could not be delivered. */
	n = fix_list(&e, fixes, FIXES_MAX);
	CHECK(find(fixes, n, "proportion=0.8"));
	e.model.delivery_rate = 0;
	e.model.memory_rate = 0;
	/* Half of the file is unused, which is no part of a sample. */
	e.model.disk_bytes = 2e5;
	n = fix_list(&e, fixes, FIXES_MAX);
	f = find(fixes, n, "proportion=1.0");
	CHECK(f && strstr(f->why, "a sample has 500 KB"));
}

static void workers_by_the_sweep(void)
{
	struct evidence e = ordinary();
	struct fix fixes[FIXES_MAX];
	const struct fix *f;
	size_t n;

	e.model.workers = 1;
	e.num_sweep = 3;
	e.ladder[RUNG_ALL].rate = 1600;
	for (size_t i = 0; i < 3; i++)
		e.sweep[i] = (struct sweep_point){
			.workers = 1u << i,
			.figure = { .known = true,
				    .rate = 1600.0 * (1 << (i < 2 ? i : 1)) },
		};
	n = fix_list(&e, fixes, FIXES_MAX);
	f = find(fixes, n, "--jobs 2");
	CHECK(f && fabs(f->gain - 2) < 1e-9);
	CHECK(!strcmp(f->setting, "workers=2"));
}

static void check_ranks(const struct evidence *e, const char *text)
{
	char out[VERDICT_TEXT_SIZE];

	verdict_ranks(e, out, sizeof(out));
	if (!strstr(out, text))
		fprintf(stderr, "%s\n", out);
	CHECK(strstr(out, text) && !*text == !*out);
}

static void ranks(void)
{
	struct evidence e = ordinary();

	check_ranks(&e, "");
	e.num_ranks = 1;
	e.ranks[0] = (struct rank_seen){ 3, 10, 0.5, 0, 0 };
	check_ranks(&e, "");
	e.num_ranks = 3;
	e.ranks[1] = (struct rank_seen){ 4, 4, 1, 0, 0 };
	e.ranks[2] = (struct rank_seen){ 5, 10, 1, 0, 0 };
	check_ranks(&e, "rank 4 is slow, but not because of data");
	e.ranks[1].ready = 0.3;
	check_ranks(&e, "rank 4 is slow because it waits for data 70 %");
	/* They wait for each other, so all have one rate. */
	e.ranks[0] = (struct rank_seen){ 3, 10, 0.97, 0, 0 };
	e.ranks[1].rate = 9.9;
	check_ranks(&e,
		    "rank 4 limits all ranks, because it waits for data 70");
	e.ranks[0].ready = e.ranks[2].ready = 0.5;
	check_ranks(&e, "data limits scaling: ranks wait for it 50 to");
	e.ranks[0].ready = e.ranks[1].ready = e.ranks[2].ready = 0.95;
	check_ranks(&e, "data does not limit scaling");
}

static void several_models_on_one_gpu(void)
{
	struct evidence e = ordinary();
	struct fix fixes[FIXES_MAX];
	const struct fix *f;

	e.num_gpus = 1;
	e.gpus[0].memory_used = 20;
	e.watch = (struct watch){ .known = true, .gpu_busy = 30 };
	e.model.trainer_rate = 1000;
	f = find(fixes, fix_list(&e, fixes, FIXES_MAX), "models on this GPU");
	CHECK(f && f->gain == 3 && !*f->setting);
	e.gpus[0].memory_used = 50;
	f = find(fixes, fix_list(&e, fixes, FIXES_MAX), "models on this GPU");
	CHECK(f && f->gain == 2);
	e.gpus[0].memory_used = 60;
	CHECK(!find(fixes, fix_list(&e, fixes, FIXES_MAX), "models on"));
	e.gpus[0].memory_used = 20;
	e.watch.gpu_busy = 60;
	CHECK(!find(fixes, fix_list(&e, fixes, FIXES_MAX), "models on"));
	/* The loader delivers data for one model only. */
	e.watch.gpu_busy = 30;
	e.model.trainer_rate = 5000;
	CHECK(!find(fixes, fix_list(&e, fixes, FIXES_MAX), "models on"));
}

static void a_run_without_cpu_time(void)
{
	struct evidence e = ordinary();
	struct fix fixes[FIXES_MAX];

	e.ladder[RUNG_ALL].cpu_us = 0;
	CHECK(!find(fixes, fix_list(&e, fixes, FIXES_MAX),
		    "replace or remove"));
}

int main(void)
{
	the_model_is_the_least_of_its_terms();
	cpu_cases();
	makers();
	disks();
	urls();
	waits_in_a_first_epoch();
	delivery();
	gpus();
	trainers();
	fixes_change_the_model();
	fixes_of_disks();
	workers_by_the_sweep();
	ranks();
	several_models_on_one_gpu();
	a_run_without_cpu_time();
	return 0;
}
