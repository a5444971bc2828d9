/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "fs/base/util/cleanup.h"
#include "fs/data/writer/rewrite.h"
#include "tests/unit/made.h"

enum { SAMPLES = 500, THREADS = 6, LARGE = 1800 << 10 };

static char folder[] = "/tmp/test_rewrite.XXXXXX";
static char first_path[64], second_path[64], target[64];

/* The last message of the log, and the number of messages. */
struct heard {
	struct log log;
	unsigned messages;
	char last[256];
};

static void on_log(void *arg, enum beton_log_level level, const char *message)
{
	struct heard *h = arg;

	(void)level;
	h->messages++;
	snprintf(h->last, sizeof(h->last), "%s", message);
}

/* A run into `target`, with what its callbacks count. */
struct scene {
	struct heard heard;
	struct dataset *dataset;
	struct dataset *second;
	struct writer *writer;
	struct worker {
		struct scene *scene;
		atomic_uint calls;
	} workers[THREADS];
	struct rewrite run;
	uint64_t done;
	uint64_t bad; /* the sample that a callback refuses */
};

static void open_scene(struct scene *s)
{
	*s = (struct scene){ .bad = UINT64_MAX };
	log_init(&s->heard.log, on_log, &s->heard);
	CHECK(!dataset_open(first_path, NULL, &s->heard.log, &s->dataset));
	CHECK(!dataset_open(second_path, NULL, &s->heard.log, &s->second));
	for (unsigned i = 0; i < THREADS; i++)
		s->workers[i].scene = s;
	s->run = (struct rewrite){
		.count = SAMPLES,
		.dataset = s->dataset,
		.log = &s->heard.log,
		.workers = s->workers,
		.worker_size = sizeof(*s->workers),
		.threads = THREADS,
		.arg = s,
	};
}

static void open_writer(struct scene *s, uint64_t samples)
{
	cleanup_free struct writer_field *fields = NULL;

	CHECK(!rewrite_fields(s->dataset, &fields));
	CHECK(!writer_open(target, fields, MADE_FIELDS, samples, MADE_PAGE,
			   &s->heard.log, &s->writer));
	s->run.writer = s->writer;
}

static void close_scene(struct scene *s)
{
	writer_abort(&s->writer);
	dataset_close(s->dataset);
	dataset_close(s->second);
	log_fini(&s->heard.log);
}

static unsigned calls(const struct scene *s)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < THREADS; i++)
		sum += atomic_load(&s->workers[i].calls);
	return sum;
}

static uint8_t *contents(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes;

	CHECK(f && !fseek(f, 0, SEEK_END));
	*size = (size_t)ftell(f);
	rewind(f);
	bytes = malloc(*size + 1);
	CHECK(bytes && fread(bytes, 1, *size, f) == *size);
	fclose(f);
	return bytes;
}

static bool is_same_file(const char *a, const char *b)
{
	size_t n, m;
	cleanup_free uint8_t *x = contents(a, &n);
	cleanup_free uint8_t *y = contents(b, &m);

	return n == m && !memcmp(x, y, n);
}

/* The value of a sample of the new file has these bytes. */
static void check_value(struct dataset *ds, uint64_t sample,
			enum made_field field, const void *bytes, size_t size)
{
	struct rewrite_sample *s;

	CHECK(!rewrite_read(ds, sample, &s));
	CHECK(s->values[field].read.size == size);
	CHECK(!size || !memcmp(s->values[field].bytes, bytes, size));
	rewrite_free(s);
}

/* --- callbacks ----------------------------------------------------------- */

static int keep(void *arg, struct rewrite_sample *s, size_t i)
{
	struct worker *w = arg;

	atomic_fetch_add(&w->calls, 1);
	if (s->number == w->scene->bad && i == MADE_JPG)
		return -EPERM;
	return 0;
}

/* Every value of `bytes` becomes so large that it only just fits a page, or
   does not beside the others, in every other sample. */
static int enlarge(void *arg, struct rewrite_sample *s, size_t i)
{
	size_t size = s->number % 2 ? MADE_PAGE : LARGE;
	void *bytes;

	if (keep(arg, s, i))
		return -EPERM;
	if (i != MADE_BYTES)
		return 0;
	bytes = calloc(1, size);
	CHECK(bytes);
	rewrite_replace(s, i, bytes, size);
	s->values[i].note = 7;
	return 0;
}

/* The mode of an image may change with its bytes. */
static int to_raw(void *arg, struct rewrite_sample *s, size_t i)
{
	struct writer_value *v = &s->written[i];
	size_t size = (size_t)3 * v->width * v->height;
	uint8_t *bytes;

	if (keep(arg, s, i))
		return -EPERM;
	if (i != MADE_JPG)
		return 0;
	bytes = malloc(size);
	CHECK(bytes);
	memset(bytes, (int)(s->number % 200), size);
	rewrite_replace(s, i, bytes, size);
	v->mode = BETON_MODE_RAW;
	return 0;
}

static void count_done(void *arg, const struct rewrite_sample *s)
{
	struct scene *scene = arg;

	CHECK(s->number == scene->done);
	scene->done++;
}

/* Backwards, in turns from two datasets. */
static struct rewrite_place backwards(void *arg, uint64_t i)
{
	struct scene *s = arg;

	return (struct rewrite_place){ i % 2 ? s->second : s->dataset,
				       SAMPLES - 1 - i };
}

/* --- tests --------------------------------------------------------------- */

static void unchanged_it_is_the_same_file(void)
{
	for (unsigned threads = 1; threads <= THREADS; threads++) {
		struct scene s;

		open_scene(&s);
		open_writer(&s, SAMPLES);
		s.run.change = keep;
		s.run.done = count_done;
		s.run.threads = threads;
		CHECK(!rewrite_run(&s.run));
		CHECK(!writer_finish(&s.writer));
		CHECK(s.done == SAMPLES && calls(&s) == SAMPLES * MADE_FIELDS);
		close_scene(&s);
		CHECK(is_same_file(first_path, target));
	}
}

static void samples_may_only_be_looked_at(void)
{
	struct scene s;

	open_scene(&s);
	s.run.change = keep;
	s.run.done = count_done;
	s.run.count = SAMPLES / 2;
	CHECK(!rewrite_run(&s.run));
	CHECK(s.done == SAMPLES / 2 && calls(&s) == SAMPLES / 2 * MADE_FIELDS);
	s.run.count = 0;
	CHECK(!rewrite_run(&s.run));
	close_scene(&s);
}

static void samples_come_from_the_given_places(void)
{
	uint8_t value[MADE_VALUE_MAX];
	struct dataset *ds;
	struct scene s;

	open_scene(&s);
	open_writer(&s, SAMPLES);
	s.run.change = keep;
	s.run.place = backwards;
	CHECK(!rewrite_run(&s.run));
	CHECK(!writer_finish(&s.writer));
	close_scene(&s);
	CHECK(!dataset_open(target, NULL, NULL, &ds));
	for (uint64_t i = 0; i < SAMPLES; i++) {
		/* Sample k of the second dataset is sample k + 1 of the first.
		 */
		uint64_t number = SAMPLES - 1 - i + i % 2;
		uint64_t size = made_value(MADE_JPG, number, value);

		check_value(ds, i, MADE_JPG, value, size);
	}
	dataset_close(ds);
}

static void values_may_be_replaced(void)
{
	struct dataset *ds;
	struct scene s;

	open_scene(&s);
	open_writer(&s, SAMPLES);
	s.run.change = to_raw;
	CHECK(!rewrite_run(&s.run));
	CHECK(!writer_finish(&s.writer));
	close_scene(&s);
	CHECK(!dataset_open(target, NULL, NULL, &ds));
	for (uint64_t i = 0; i < SAMPLES; i++) {
		size_t size = (size_t)3 * 7 * (10 + i % 3);
		uint8_t value[MADE_VALUE_MAX];

		memset(value, (int)(i % 200), size);
		check_value(ds, i, MADE_JPG, value, size);
		size = made_value(MADE_RAW, i, value);
		check_value(ds, i, MADE_RAW, value, size);
	}
	dataset_close(ds);
}

static void a_sample_too_large_may_stay(void)
{
	cleanup_free void *zeros = calloc(1, LARGE);
	uint8_t value[MADE_VALUE_MAX];
	struct dataset *ds;
	struct scene s;

	open_scene(&s);
	open_writer(&s, 6);
	s.run.count = 6;
	s.run.change = enlarge;
	s.run.undo_too_large = true;
	CHECK(!rewrite_run(&s.run));
	CHECK(!writer_finish(&s.writer));
	CHECK(!s.heard.messages);
	close_scene(&s);
	CHECK(!dataset_open(target, NULL, NULL, &ds));
	for (uint64_t i = 0; i < 6; i++) {
		size_t size = made_value(MADE_BYTES, i, value);

		if (i % 2)
			check_value(ds, i, MADE_BYTES, value, size);
		else
			check_value(ds, i, MADE_BYTES, zeros, LARGE);
	}
	dataset_close(ds);
}

static void a_sample_too_large_ends_the_run(void)
{
	struct scene s;

	open_scene(&s);
	open_writer(&s, 6);
	s.run.count = 6;
	s.run.change = enlarge;
	s.run.done = count_done;
	CHECK(rewrite_run(&s.run) == -BETON_ETOOLARGE);
	CHECK(s.done == 1 && s.heard.messages == 1);
	CHECK(strstr(s.heard.last, first_path));
	CHECK(strstr(s.heard.last, "sample 1 does not fit into a page"));
	close_scene(&s);
}

static void a_file_too_large_is_no_sample_too_large(void)
{
	struct rlimit limit, small;
	struct scene s;

	open_scene(&s);
	open_writer(&s, SAMPLES);
	s.run.change = enlarge;
	s.run.undo_too_large = true;
	CHECK(!getrlimit(RLIMIT_FSIZE, &limit));
	small = limit;
	small.rlim_cur = 8 * MADE_PAGE;
	CHECK(!setrlimit(RLIMIT_FSIZE, &small));
	CHECK(rewrite_run(&s.run) == -EFBIG);
	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	CHECK(s.heard.messages == 1);
	CHECK(strstr(s.heard.last, target));
	CHECK(strstr(s.heard.last, strerror(EFBIG)));
	close_scene(&s);
}

static void an_error_reports_its_place(void)
{
	struct scene s;

	open_scene(&s);
	open_writer(&s, SAMPLES);
	s.bad = 300;
	s.run.change = keep;
	s.run.done = count_done;
	CHECK(rewrite_run(&s.run) == -EPERM);
	CHECK(s.done <= 300 && s.heard.messages == 1);
	CHECK(strstr(s.heard.last, first_path));
	CHECK(strstr(s.heard.last, "sample 300 field jpg: "));
	close_scene(&s);
}

static void a_place_outside_ends_the_run(void)
{
	struct scene s;

	open_scene(&s);
	open_writer(&s, SAMPLES + 1);
	s.run.count = SAMPLES + 1;
	s.run.change = keep;
	CHECK(rewrite_run(&s.run) == -EINVAL);
	CHECK(s.heard.messages == 1 && strstr(s.heard.last, "sample 500"));
	close_scene(&s);
}

static void changes_can_be_undone(void)
{
	uint8_t value[MADE_VALUE_MAX];
	struct rewrite_sample *sample;
	struct scene s;

	open_scene(&s);
	rewrite_free(NULL);
	CHECK(!rewrite_read(s.dataset, 8, &sample));
	CHECK(sample->number == 8 && sample->num_values == MADE_FIELDS);
	CHECK(sample->values[MADE_INT].read.integer == 59);
	CHECK(sample->values[MADE_FLOAT].read.real == 2);
	CHECK(!enlarge(&s.workers[0], sample, MADE_BYTES));
	CHECK(!enlarge(&s.workers[0], sample, MADE_BYTES));
	CHECK(sample->written[MADE_BYTES].size == LARGE);
	CHECK(sample->values[MADE_BYTES].replaced);
	CHECK(sample->values[MADE_BYTES].note == 7);
	rewrite_undo(sample);
	CHECK(!sample->values[MADE_BYTES].replaced);
	CHECK(sample->written[MADE_BYTES].size ==
	      made_value(MADE_BYTES, 8, value));
	CHECK(!memcmp(sample->written[MADE_BYTES].bytes, value, 3));
	rewrite_free(sample);
	close_scene(&s);
}

/* Contains samples 1 to SAMPLES of the first dataset. */
static void write_second(void)
{
	struct writer *w;

	CHECK(!writer_open(second_path, made_fields, MADE_FIELDS, SAMPLES,
			   MADE_PAGE, NULL, &w));
	for (uint64_t i = 0; i < SAMPLES; i++)
		made_append(w, i + 1);
	CHECK(!writer_finish(&w));
}

int main(void)
{
	CHECK(mkdtemp(folder));
	CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	snprintf(first_path, sizeof(first_path), "%s/first.beton", folder);
	snprintf(second_path, sizeof(second_path), "%s/second.beton", folder);
	snprintf(target, sizeof(target), "%s/target.beton", folder);
	made_write(first_path, SAMPLES);
	write_second();
	unchanged_it_is_the_same_file();
	samples_may_only_be_looked_at();
	samples_come_from_the_given_places();
	values_may_be_replaced();
	a_sample_too_large_may_stay();
	a_sample_too_large_ends_the_run();
	a_file_too_large_is_no_sample_too_large();
	an_error_reports_its_place();
	a_place_outside_ends_the_run();
	changes_can_be_undone();
	CHECK(!unlink(first_path) && !unlink(second_path) && !unlink(target));
	CHECK(!rmdir(folder));
	return 0;
}
