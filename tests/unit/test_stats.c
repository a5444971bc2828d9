/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/namespace/stats.h"

#include <jansson.h>
#include <sched.h>
#include <stdlib.h>

#include "fs/base/util/cleanup.h"
#include "tests/unit/made.h"

enum { SAMPLES = 64, BATCH = 8, BATCHES = SAMPLES / BATCH };

static const struct stats_subject whole = { 0, NULL };

struct fixture {
	struct dataset *ds;
	struct engine *engine;
	struct jobs *jobs;
	struct stats stats;
	const char *directory;
};

static const char *directory_of(const void *arg, const struct dataset *ds)
{
	const struct fixture *f = arg;

	CHECK(ds == f->ds);
	return f->directory;
}

static void set_up(struct fixture *f, enum cache_mode mode)
{
	const struct engine_options options = {
		.choice = { .mode = mode, .cache_size = 64 << 20 },
		.datasets = &f->ds,
		.num_datasets = 1,
	};

	f->ds = made_open(SAMPLES, NULL);
	f->directory = "";
	CHECK(!engine_open(&options, &f->engine));
	CHECK(!engine_start(f->engine));
	CHECK(!jobs_open(1, &f->jobs));
	f->stats = (struct stats){
		.engine = f->engine,
		.jobs = f->jobs,
		.mountpoint = "/mnt/a",
		.started = stats_now() - 5,
		.directory_of = directory_of,
		.arg = f,
	};
}

static void tear_down(struct fixture *f)
{
	jobs_close(f->jobs);
	engine_close(f->engine);
	dataset_close(f->ds);
}

/* Some batches of an epoch, from the first on, with none ahead. */
static void read_batches(struct fixture *f, uint64_t epoch, uint64_t n)
{
	const struct spec spec = { .order = BETON_ORDER_RANDOM,
				   .batch = BATCH,
				   .drop_last = 1,
				   .end = SAMPLES };
	struct stream *stream;
	struct batch *batch;
	struct slot *slot;

	CHECK(!stream_open(f->engine, f->ds, &spec, epoch, &stream));
	for (uint64_t i = 0; i < n; i++) {
		CHECK(!stream_batch(stream, i, false, &batch));
		stream_note(stream, i);
		CHECK(!stream_ready(stream, batch));
		CHECK(!stream_slot(stream, batch, &slot));
		CHECK(stream_ready(stream, batch));
		slot_put(&slot);
		batch_put(&batch);
	}
	stream_close(stream);
}

static json_t *parsed(char *text)
{
	json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

	CHECK(json);
	CHECK(text[strlen(text) - 1] == '\n');
	free(text);
	return json;
}

static json_t *json_of(struct fixture *f)
{
	char *text = NULL;

	CHECK(!stats_json(&f->stats, &whole, &text));
	return parsed(text);
}

/* A number of an object; it must be there. */
static uint64_t number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	CHECK(json_is_integer(value));
	return (uint64_t)json_integer_value(value);
}

static bool is_text(const json_t *object, const char *key, const char *text)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value && !strcmp(value, text);
}

/* Whether a line of the metrics begins so: a whole sample, or its name. */
static bool tells(struct fixture *f, const char *begin)
{
	size_t size = strlen(begin);
	char *text = NULL, *line;
	bool found = false;

	CHECK(!stats_metrics(&f->stats, &whole, &text));
	CHECK(strlen(text) > 6);
	CHECK(!strcmp(text + strlen(text) - 6, "# EOF\n"));
	for (line = text; line && !found; line = strchr(line, '\n')) {
		line += *line == '\n';
		found = !strncmp(line, begin, size) &&
			(begin[size - 1] != '\n' || line[size - 1] == '\n');
	}
	free(text);
	return found;
}

static void test_nothing_yet(void)
{
	struct fixture f;
	json_t *json;

	set_up(&f, CACHE_OS);
	json = json_of(&f);
	CHECK(number(json, "version") == 1);
	CHECK(number(json, "uptime_s") >= 5 && number(json, "uptime_s") < 65);
	CHECK(is_text(json_object_get(json, "cache"), "mode", "os"));
	CHECK(!json_array_size(json_object_get(json, "streams")));
	CHECK(!json_array_size(json_object_get(json, "jobs")));
	CHECK(json_object_size(json_object_get(json, "delivery")) == JOBS_WAYS);
	json_decref(json);
	CHECK(tells(&f, "betonfs_build_info{mountpoint=\"/mnt/a\",version=\""));
	CHECK(tells(&f, "betonfs_cache_hits_total{mountpoint=\"/mnt/a\"} 0\n"));
	CHECK(!tells(&f, "betonfs_stream_"));
	CHECK(!tells(&f, "betonfs_job_"));
	tear_down(&f);
}

static void check_stages(const json_t *stages, const json_t *cache)
{
	const json_t *source = json_object_get(stages, "source");
	const json_t *values = json_object_get(stages, "cache");
	const json_t *collation = json_object_get(stages, "collation");

	CHECK(number(source, "bytes") >= number(cache, "read_bytes"));
	CHECK(number(values, "items") == number(cache, "hits") +
						 number(cache, "stalled") +
						 number(cache, "misses"));
	CHECK(number(collation, "items") == BATCHES);
	CHECK(json_real_value(json_object_get(collation, "busy_s")) > 0);
	CHECK(json_real_value(json_object_get(collation, "p50_s")) > 0);
}

/* Once what is read ahead has come: a read counts when it is begun, an item of
   the source when it is done. */
static json_t *settled_json_of(struct fixture *f)
{
	const json_t *source;
	json_t *json;
	bool is_settled;

	do {
		json = json_of(f);
		source = json_object_get(json_object_get(json, "stages"),
					 "source");
		is_settled = number(source, "items") ==
			     number(json_object_get(json, "cache"), "reads");
		if (!is_settled) {
			json_decref(json);
			sched_yield();
		}
	} while (!is_settled);
	return json;
}

static void test_the_cache_and_its_stream(void)
{
	const json_t *cache, *stream;
	struct fixture f;
	json_t *json;

	set_up(&f, CACHE_PROCESS);
	read_batches(&f, 0, BATCHES);
	json = settled_json_of(&f);
	cache = json_object_get(json, "cache");
	stream = json_array_get(json_object_get(json, "streams"), 0);
	CHECK(is_text(cache, "mode", "process"));
	CHECK(is_text(stream, "dataset", ""));
	CHECK(is_text(stream, "spec",
		      "order=random,batch=8,seed=0,drop_last=1"));
	CHECK(number(stream, "opened") == BATCHES);
	CHECK(number(stream, "number") == BATCHES - 1);
	CHECK(number(stream, "delivered_bytes") > 0);
	CHECK(number(cache, "delivered_bytes") ==
	      number(stream, "delivered_bytes"));
	CHECK(number(cache, "hits") == number(stream, "hits"));
	CHECK(number(cache, "stalled") == number(stream, "stalled"));
	CHECK(number(cache, "misses") == number(stream, "misses"));
	CHECK(number(stream, "misses") > 0);
	CHECK(number(json_object_get(json, "slots"), "collated") == BATCHES);
	check_stages(json_object_get(json, "stages"), cache);
	json_decref(json);
	CHECK(tells(
		&f,
		"betonfs_stage_duration_seconds_bucket{mountpoint=\"/mnt/a\",stage=\"collation\",le=\"+Inf\"} 8\n"));
	CHECK(tells(
		&f,
		"betonfs_stage_duration_seconds_bucket{mountpoint=\"/mnt/a\",stage=\"collation\",le=\"1.6384e-05\"} "));
	CHECK(tells(
		&f,
		"betonfs_stage_duration_seconds_count{mountpoint=\"/mnt/a\",stage=\"delivery\"} 0\n"));
	tear_down(&f);
}

/* A job that starts again has the same reader; labels have to be different. */
static void test_readers_of_one_spec_are_one_metric(void)
{
	struct fixture f;
	json_t *json;

	set_up(&f, CACHE_OS);
	read_batches(&f, 0, 3);
	read_batches(&f, 70, 4);
	json = json_of(&f);
	CHECK(json_array_size(json_object_get(json, "streams")) == 2);
	json_decref(json);
	CHECK(tells(
		&f,
		"betonfs_stream_batches_total{mountpoint=\"/mnt/a\",dataset=\"\",spec=\"order=random,batch=8,seed=0,drop_last=1\"} 7\n"));
	tear_down(&f);
}

static void test_names_are_escaped(void)
{
	struct job *job;
	struct fixture f;
	json_t *json;

	set_up(&f, CACHE_OS);
	f.stats.mountpoint = "/m\\n\"t\n";
	f.directory = "\xff-\xc3\xa9";
	read_batches(&f, 0, 1);
	job = jobs_get(f.jobs, 0, "a\"b\\");
	job_add(job, JOBS_ZEROCOPY, 2, 5);
	job_stalled(job, JOBS_ZEROCOPY);
	CHECK(tells(
		&f,
		"betonfs_job_bytes_total{mountpoint=\"/m\\\\n\\\"t\\n\",job=\"a\\\"b\\\\\"} 5\n"));
	CHECK(tells(
		&f,
		"betonfs_delivered_stalled_total{mountpoint=\"/m\\\\n\\\"t\\n\",way=\"zero_copy\"} 1\n"));
	json = json_of(&f);
	CHECK(is_text(json_array_get(json_object_get(json, "jobs"), 0), "name",
		      "a\"b\\"));
	/* Bytes that are not UTF-8 are all written as in file names. */
	CHECK(is_text(json_array_get(json_object_get(json, "streams"), 0),
		      "dataset", "%FF-%C3%A9"));
	json_decref(json);
	jobs_put(&job);
	tear_down(&f);
}

static void test_one_job(void)
{
	struct jobs_entry entry;
	struct fixture f;
	struct job *job;
	char *text = NULL;
	json_t *json;

	set_up(&f, CACHE_OS);
	job = jobs_get(f.jobs, 0, "a");
	job_connect(job);
	job_add(job, JOBS_DIRECT, 3, 100);
	CHECK(jobs_list(f.jobs, 0, 0, &entry, 1) == 1);
	CHECK(!stats_job(&f.stats, &whole, entry.number, &text));
	json = parsed(steal(text));
	CHECK(is_text(json, "name", "a") && number(json, "batches") == 3);
	CHECK(number(json, "bytes") == 100 && number(json, "stalled") == 0);
	CHECK(number(json, "connections") == 1 && number(json, "idle_s") < 60);
	json_decref(json);
	CHECK(stats_job(&f.stats, &whole, entry.number + 1, &text) == -ESTALE);
	CHECK(stats_job(&f.stats, &whole, 0, &text) == -ESTALE && !text);
	job_disconnect(job);
	jobs_put(&job);
	tear_down(&f);
}

int main(void)
{
	test_nothing_yet();
	test_the_cache_and_its_stream();
	test_readers_of_one_spec_are_one_metric();
	test_names_are_escaped();
	test_one_job();
	return 0;
}
