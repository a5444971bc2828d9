/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "fs/base/util/cleanup.h"
#include "loader/tools/top/draw.h"
#include "loader/tools/top/json.h"
#include "tests/unit/t.h"

#define S INT64_C(1000000000)

/* --- readings --- */

struct rank_made {
	unsigned rank, loaders, idle_s, batches, failed;
	double open_s, wait_s, trainer_s, decode_s; /* the rest is reading */
};

static char *text_of(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static char *text_of(const char *format, ...)
{
	char *text;
	va_list args;

	va_start(args, format);
	CHECK(vasprintf(&text, format, args) >= 0);
	va_end(args);
	return text;
}

static struct top_reading *parsed(const char *text, int64_t at_ns)
{
	struct top_reading *r;
	char why[TOP_WHY_SIZE];

	CHECK(!top_reading_parse(text, strlen(text), at_ns, &r, why));
	return r;
}

static char *rank_text(const struct rank_made *r)
{
	return text_of(
		"{\"rank\": %u, \"world_size\": 8, \"loaders\": %u, \"epoch\": 3,"
		"\"number\": %u, \"idle_s\": %u, \"samples_per_s\": 50.0,"
		"\"wait_share\": 0.5, \"queue_fill\": 0.25, \"batches\": %u,"
		"\"samples\": %u, \"failed_samples\": %u, \"queue_ready\": %u,"
		"\"queue_capacity\": %u, \"open_s\": %f, \"wait_s\": %f,"
		"\"trainer_s\": %f, \"stages\": {\"read\": {\"delay_s\": %f},"
		"\"decode\": {\"delay_s\": %f}}}",
		r->rank, r->loaders, r->batches, r->idle_s, r->batches,
		100 * r->batches, r->failed, r->batches, 2 * r->batches,
		r->open_s, r->wait_s, r->trainer_s, r->wait_s - r->decode_s,
		r->decode_s);
}

/* A mount with one job of these ranks. */
static struct top_reading *made(const char *name, unsigned seconds,
				const struct rank_made *ranks, unsigned n)
{
	cleanup_free char *list = text_of("%s", ""), *text = NULL;
	struct top_reading *r;

	for (unsigned i = 0; i < n; i++) {
		cleanup_free char *rank = rank_text(&ranks[i]);
		char *longer = text_of("%s%s%s", list, i ? "," : "", rank);

		free(list);
		list = longer;
	}
	text = text_of(
		"{\"version\": 1, \"uptime_s\": %u, \"more\": [],"
		"\"cache\": {\"mode\": \"process\", \"limit\": 1073741824,"
		"\"used\": 536870912, \"hits\": %u, \"stalled\": %u,"
		"\"misses\": 0, \"reads\": %u, \"read_bytes\": %u,"
		"\"delivered_bytes\": %u}, \"slots\": {\"bytes\": 4096},"
		"\"budget\": {\"limit\": 2147483648, \"used\": 1073745920,"
		"\"by\": {\"cache\": 1073741824, \"slots\": 4096,"
		"\"files\": 0}},"
		"\"delivery\": {\"zero_copy\": {\"batches\": %u, \"stalled\": 0,"
		"\"bytes\": %u}}, \"streams\": [{}, {}, {}], \"jobs\": ["
		"{\"name\": \"%s\", \"batches\": %u, \"stalled\": 0, \"bytes\": 0,"
		"\"connections\": %u, \"idle_s\": 0, \"ranks\": [%s]}]}",
		seconds, 90 * seconds, 10 * seconds, 5 * seconds,
		3 * 1048576 * seconds, 2 * 1048576 * seconds, 4 * seconds,
		1048576 * seconds, name, 4 * seconds, n, list);
	r = parsed(text, seconds * S);
	return r;
}

static const struct rank_made early[] = {
	{ 0, 1, 0, 100, 0, 10, 5, 5, 5 },
	{ 1, 1, 0, 100, 0, 10, 5, 5, 5 },
};

/* --- what two readings mean --- */

static struct top_view *viewed(const struct top_reading *before,
			       const struct top_reading *now)
{
	struct top_view *v;

	CHECK(!top_view_make(before, now, TOP_BY_NAME, &v));
	return v;
}

/* Two seconds later, by the first rank's clock four. */
static void test_rates_are_differences(void)
{
	const struct rank_made late[] = {
		{ 0, 1, 0, 140, 0, 14, 5.1, 8.9, 5 },
		{ 1, 1, 0, 120, 2, 12, 5, 7, 5 },
	};
	cleanup_free struct top_reading *a = made("a", 10, early, 2);
	cleanup_free struct top_reading *b = made("a", 12, late, 2);
	cleanup_free struct top_view *v = viewed(a, b);
	const struct top_job_view *job = &v->jobs[0];

	CHECK(v->seconds == 2 && v->num_jobs == 1);
	CHECK(v->values_per_s == 100 && v->hit_share == 0.9);
	CHECK(v->stalled_share == 0.1 && v->miss_share == 0);
	CHECK(v->reads_per_s == 5 && v->amplification == 1.5);
	CHECK(v->batches_per_s == 4 && v->bytes_per_s == 1048576);
	CHECK(job->ranks[0].samples_per_s == 1000);
	CHECK(job->ranks[1].samples_per_s == 1000);
	CHECK(job->samples_per_s == 2000 && job->failed_samples == 2);
	CHECK(job->ranks[0].wait_share > 0.024 &&
	      job->ranks[0].wait_share < 0.026);
	CHECK(job->ranks[0].queue_fill == 0.5);
	CHECK(job->verdict == TOP_NOT_DATA && job->worst.now->rank == 0);
}

static void check_states(const struct top_view *v, const char *in_full,
			 const char *in_short)
{
	char out[TOP_SENTENCE_SIZE];

	top_describe_job(&v->jobs[0], true, out);
	CHECK(!strcmp(out, in_full));
	top_describe_job(&v->jobs[0], false, out);
	CHECK(!strcmp(out, in_short));
}

/* Those after `early`. */
static void check_verdict(const struct rank_made late[2],
			  enum top_verdict verdict, const char *in_full,
			  const char *in_short)
{
	cleanup_free struct top_reading *a = made("a", 10, early, 2);
	cleanup_free struct top_reading *b = made("a", 12, late, 2);
	cleanup_free struct top_view *v = viewed(a, b);

	CHECK(v->jobs[0].verdict == verdict);
	check_states(v, in_full, in_short);
}

static void test_verdicts(void)
{
	const struct rank_made enough[] = {
		{ 0, 1, 0, 110, 0, 12, 5.09, 6.91, 5 },
		{ 1, 1, 0, 110, 0, 12, 5, 7, 5 },
	};
	const struct rank_made both[] = {
		{ 0, 1, 0, 110, 0, 12, 6, 6, 6 },
		{ 1, 1, 0, 110, 0, 12, 6.5, 5.5, 6.5 },
	};
	/* Before, all waited for decoding. */
	const struct rank_made one[] = {
		{ 0, 1, 0, 110, 0, 12, 5, 7, 5 },
		{ 1, 1, 0, 110, 0, 12, 6, 6, 5.1 },
	};
	const struct rank_made silent[] = {
		{ 0, 1, 11, 100, 0, 10, 5, 5, 5 },
		{ 1, 1, 12, 100, 0, 10, 5, 5, 5 },
	};

	check_verdict(enough, TOP_NOT_DATA, "data is not the bottleneck",
		      "not data");
	check_verdict(both, TOP_WAITS, "waits for decode", "decode");
	check_verdict(one, TOP_WAITS, "rank 1 waits for read", "read");
	check_verdict(silent, TOP_IDLE, "takes no batch", "no batch");
}

/* If a job reports less often than `beton top` asks, its last report stays
   valid for a while. */
static void test_a_last_word_holds_for_a_while(void)
{
	const struct rank_made again[] = { { 0, 1, 3, 100, 0, 10, 5, 5, 5 } };
	cleanup_free struct top_reading *a = made("a", 10, early, 1);
	cleanup_free struct top_reading *b = made("a", 12, again, 1);
	cleanup_free struct top_view *v = viewed(a, b);

	CHECK(v->jobs[0].samples_per_s == 50);
	CHECK(v->jobs[0].worst.wait_share == 0.5);
	CHECK(v->jobs[0].worst.queue_fill == 0.25);
	check_states(v, "waits for decode", "decode");
}

static void test_the_end(void)
{
	struct rank_made gone[] = { { 0, 0, 0, 150, 0, 15, 5, 9, 5 } };
	cleanup_free struct top_reading *a = made("a", 10, early, 1);
	cleanup_free struct top_reading *b = made("a", 12, gone, 1);
	cleanup_free struct top_view *v = NULL;

	b->jobs[0].connections = 0;
	v = viewed(a, b);
	CHECK(v->jobs[0].verdict == TOP_ENDED);
	CHECK(v->jobs[0].samples_per_s == 0 && !v->jobs[0].ranks[0].is_active);
}

static void test_another_daemon(void)
{
	cleanup_free struct top_reading *a = made("a", 10, early, 2);
	cleanup_free struct top_reading *b = made("a", 4, early, 2);
	cleanup_free struct top_view *v = NULL;

	b->at_ns = 20 * S;
	v = viewed(a, b);
	CHECK(v->seconds == 0 && v->values_per_s == 0);
}

static void test_order(void)
{
	const struct rank_made late[] = {
		{ 0, 1, 0, 110, 1, 12, 5, 7, 5 },
		{ 1, 1, 0, 120, 2, 12, 5.5, 6.5, 5.5 },
		{ 2, 1, 0, 105, 0, 12, 7, 5, 6 },
	};
	static const unsigned want[][3] = {
		[TOP_BY_NAME] = { 0, 1, 2 },
		[TOP_BY_SPEED] = { 1, 0, 2 },
		[TOP_BY_WAIT] = { 2, 1, 0 },
		[TOP_BY_FAILED] = { 1, 0, 2 },
	};
	const struct rank_made first[] = { early[0], early[1] };
	cleanup_free struct top_reading *a = made("a", 10, first, 2);
	cleanup_free struct top_reading *b = made("a", 12, late, 3);

	for (enum top_sort s = TOP_BY_NAME; s <= TOP_BY_FAILED; s++) {
		cleanup_free struct top_view *v = NULL;

		CHECK(!top_view_make(a, b, s, &v));
		for (unsigned i = 0; i < 3; i++)
			CHECK(v->jobs[0].ranks[i].now->rank == want[s][i]);
	}
}

/* --- pictures --- */

static char *drawn(const struct top_view *v, const struct top_look *look,
		   size_t *last)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	size_t n = top_draw(v, look, f);

	CHECK(!fclose(f));
	if (last)
		*last = n;
	return text;
}

/* Neither too long nor too many lines, and nothing that moves a cursor. */
static void check_shape(const char *text, unsigned width, unsigned height)
{
	unsigned lines = 0;

	for (const char *line = text; *line; lines++) {
		size_t n = strcspn(line, "\n");

		CHECK(n <= width && line[n] == '\n');
		for (size_t i = 0; i < n; i++)
			CHECK(line[i] >= ' ' && line[i] <= '~');
		line += n + 1;
	}
	CHECK(lines <= height);
}

static void draw_at(const char *name, unsigned width, unsigned height,
		    const char *want)
{
	const struct rank_made late[] = {
		{ 0, 1, 0, 110, 0, 12, 5, 7, 5 },
		{ 1, 1, 0, 120, 7, 12, 6, 6, 6 },
	};
	const struct top_look look = { .mount = "/mnt/imagenet",
				       .interval_s = 2,
				       .width = width,
				       .height = height };
	cleanup_free struct top_reading *a = made(name, 10, early, 2);
	cleanup_free struct top_reading *b = made(name, 12, late, 2);
	cleanup_free struct top_view *v = viewed(a, b);
	cleanup_free char *text = drawn(v, &look, NULL);

	check_shape(text, width, height);
	if (strcmp(text, want))
		fprintf(stderr, "%s", text);
	CHECK(!strcmp(text, want));
}

static const char at_80x24[] =
	"/mnt/imagenet, up 0:00:12; jobs 1, ranks 2, readers 3, every 2 s\n"
	"batches  4.0/s, 1.0 MiB/s, 0.0 % of them not ready when requested\n"
	"values   100/s: 90.0 % cache hits, 10.0 % stalled, 0.0 % misses\n"
	"disk     3.0 MiB/s, 5.0 reads/s, read amplification 1.50\n"
	"memory   [###.......] 512 MiB of 2.0 GiB: cache 512 MiB, slots 4.0 KiB\n"
	"\n"
	"JOB            IMG/S EPOCH  BATCH QUEUE   WAIT FAILED VERDICT\n"
	"a-name-of...    1500     3    120 [###..]  50%      7 rank 1 waits for decode\n"
	"  rank 0         500     3    110 [###..]   0%      0\n"
	"  rank 1        1000     3    120 [###..]  50%      7 waits for decode\n"
	"q quit  sort: n name* s speed w wait f failed  r ranks  e ended\n";

static const char at_40x10[] = "/mnt/imagenet, up 0:00:12; jobs 1, ranks\n"
			       "batches  4.0/s, 1.0 MiB/s\n"
			       "values   100/s: 90.0 % cache hits\n"
			       "JOB            IMG/S WAIT VERDICT\n"
			       "a-name-of...    1500  50% decode\n"
			       "  rank 0         500   0%\n"
			       "  rank 1        1000  50% decode\n"
			       "q quit  sort: n name* s speed w wait f f\n";

static const char at_200x60[] =
	"/mnt/imagenet, up 0:00:12; jobs 1, ranks 2, readers 3, every 2 s\n"
	"batches  4.0/s, 1.0 MiB/s, 0.0 % of them not ready when requested\n"
	"values   100/s: 90.0 % cache hits, 10.0 % stalled, 0.0 % misses\n"
	"disk     3.0 MiB/s, 5.0 reads/s, read amplification 1.50\n"
	"memory   [###.......] 512 MiB of 2.0 GiB: cache 512 MiB, slots 4.0 KiB\n"
	"\n"
	"JOB                     IMG/S EPOCH  BATCH QUEUE                  WAIT FAILED VERDICT\n"
	"a-name-of-some-length    1500     3    120 [##########..........]  50%      7 rank 1 waits for decode\n"
	"  rank 0                  500     3    110 [##########..........]   0%      0\n"
	"  rank 1                 1000     3    120 [##########..........]  50%      7 waits for decode\n"
	"q quit  sort: n name* s speed w wait f failed  r ranks  e ended\n";

static struct top_reading *networks(unsigned at_s, unsigned is_out)
{
	cleanup_free char *text = text_of(
		"{\"version\": 1, \"uptime_s\": %u, \"network\": ["
		"{\"dataset\": \"train\", \"rate\": 9000000, \"latency_s\": 0.052,"
		"\"in_flight\": 14, \"depth\": 16, \"waiting\": 5,"
		"\"retries\": 3, \"throttled\": 2000000,"
		"\"payload_bytes\": %u, \"is_out\": %u,"
		"\"tier\": {\"stored_bytes\": 1048576, \"size_bytes\": 2097152}},"
		"{\"dataset\": \"val\\n\", \"latency_s\": 0.0004},"
		"{\"dataset\": \"\", \"latency_s\": 0.0005}]}",
		at_s, at_s << 20, is_out);

	return parsed(text, at_s * S);
}

static void draw_networks(unsigned width, unsigned is_out, const char *want)
{
	const struct top_look look = { .mount = "/mnt/x", .width = width };
	cleanup_free struct top_reading *a = networks(10, 0);
	cleanup_free struct top_reading *b = networks(12, is_out);
	cleanup_free struct top_view *v = viewed(a, b);
	cleanup_free char *text = drawn(v, &look, NULL);

	if (!strstr(text, want))
		fprintf(stderr, "%s", text);
	CHECK(strstr(text, want));
}

static void test_networks(void)
{
	char why[TOP_WHY_SIZE];
	struct top_reading *r;
	static const char bad[] =
		"{\"version\": 1, \"network\": [{\"rate\": -1}]}";

	draw_networks(
		120, 0,
		"network  train: 1.0 MiB/s, 52 ms, 14 of 16 in flight, 3 retries, 2000k throttled, tier 1.0 MiB of 2.0 MiB\n"
		"network  val?: 0 B/s, 0.4 ms, 0 of 0 in flight, 0 retries, 0 throttled\n"
		"network  0 B/s, 0.5 ms, 0 of 0 in flight, 0 retries, 0 throttled\n");
	draw_networks(
		70, 1,
		"network  train: the server does not answer, 1.0 MiB/s, 52 ms\n");
	CHECK(top_reading_parse(bad, sizeof(bad) - 1, S, &r, why) == -EPROTO);
}

static void test_pictures(void)
{
	static const char name[] = "a-name-of-some-length";

	draw_at(name, 80, 24, at_80x24);
	draw_at(name, 40, 10, at_40x10);
	draw_at(name, 200, 60, at_200x60);
}

/* Every window, also one that nothing fits in. */
static void test_all_sizes(void)
{
	cleanup_free struct top_reading *a = made("job", 10, early, 2);
	cleanup_free struct top_view *v = viewed(NULL, a);

	for (unsigned width = 1; width < 700; width += width < 90 ? 1 : 61) {
		for (unsigned height = 1; height < 40; height++) {
			const struct top_look look = { .mount = "mnt",
						       .width = width,
						       .height = height };
			cleanup_free char *text = drawn(v, &look, NULL);

			check_shape(text, width, height);
		}
	}
}

static void test_scrolling(void)
{
	struct top_look look = { .mount = "mnt", .width = 80, .height = 24 };
	cleanup_free struct rank_made *ranks = calloc(500, sizeof(*ranks));
	cleanup_free struct top_reading *r = NULL;
	cleanup_free struct top_view *v = NULL;
	cleanup_free char *top = NULL, *end = NULL, *folded = NULL;
	size_t last;

	for (unsigned i = 0; i < 500; i++)
		ranks[i] = (struct rank_made){ i, 1, 0, 1, 0, 1, 0, 1, 0 };
	r = made("many", 10, ranks, 500);
	v = viewed(NULL, r);
	top = drawn(v, &look, &last);
	CHECK(last == 485 && strstr(top, "\nmany "));
	CHECK(strstr(top, "\n1-16 of 501  q quit"));
	check_shape(top, 80, 24);
	look.first = 1 << 20;
	end = drawn(v, &look, NULL);
	CHECK(!strstr(end, "\nmany ") && strstr(end, "\n  rank 499 "));
	CHECK(strstr(end, "\n486-501 of 501  q quit"));
	look.hides_ranks = true;
	folded = drawn(v, &look, &last);
	CHECK(last == 0 && strstr(folded, "\nmany "));
}

static void test_ended_jobs_go(void)
{
	struct top_look look = { .mount = "mnt", .width = 80, .height = 24 };
	cleanup_free struct top_reading *r = made("old", 10, NULL, 0);
	cleanup_free struct top_view *v = NULL;
	cleanup_free char *without = NULL, *with = NULL;

	r->jobs[0].idle_s = 61;
	v = viewed(NULL, r);
	without = drawn(v, &look, NULL);
	CHECK(!strstr(without, "old") && strstr(without, "\nno process reads"));
	look.shows_ended = true;
	with = drawn(v, &look, NULL);
	CHECK(strstr(with, "old"));
}

/* Not on a terminal nothing is cut, and no key is of use. */
static void test_lines(void)
{
	const struct top_look look = { .mount = "mnt" };
	char name[65];
	cleanup_free struct top_reading *r = NULL;
	cleanup_free struct top_view *v = NULL;
	cleanup_free char *text = NULL;

	memset(name, 'n', 64);
	name[64] = '\0';
	r = made(name, 10, early, 2);
	v = viewed(NULL, r);
	text = drawn(v, &look, NULL);
	CHECK(strstr(text, name) && !strstr(text, "quit"));
	check_shape(text, 200, 10);
}

/* --- what is no statistics of a mount --- */

static void refused(const char *text)
{
	struct top_reading *r = NULL;
	char why[TOP_WHY_SIZE] = "";

	CHECK(top_reading_parse(text, strlen(text), 0, &r, why) == -EPROTO);
	CHECK(!r && *why && strlen(why) < sizeof(why));
}

static void refused_with(const char *format, const char *part)
{
	cleanup_free char *text = NULL;

	CHECK(asprintf(&text, format, part) >= 0);
	refused(text);
}

static const char *const no_numbers[] = {
	"-1",
	"1.5",
	"\"1\"",
	"null",
	"true",
	"[1]",
	"{}",
	"1e3",
	"1e999999",
	"4611686018427387905",
	"-0.1",
	"9223372036854775807",
	"99999999999999999999",
};

static void test_hostile_numbers(void)
{
	for (size_t i = 0; i < sizeof(no_numbers) / sizeof(*no_numbers); i++) {
		const char *n = no_numbers[i];

		refused_with("{\"version\": 1, \"uptime_s\": %s}", n);
		refused_with("{\"version\": 1, \"cache\": {\"used\": %s}}", n);
		refused_with("{\"version\": 1, \"jobs\": [{\"name\": \"a\","
			     "\"batches\": %s}]}",
			     n);
		refused_with("{\"version\": 1, \"jobs\": [{\"name\": \"a\","
			     "\"ranks\": [{\"rank\": %s}]}]}",
			     n);
	}
	refused("{\"version\": 1, \"jobs\": [{\"name\": \"a\", \"ranks\": ["
		"{\"open_s\": 1e300}]}]}");
	refused("{\"version\": 1, \"jobs\": [{\"name\": \"a\", \"ranks\": ["
		"{\"stages\": {\"read\": {\"delay_s\": -1}}}]}]}");
}

static void test_hostile_texts(void)
{
	cleanup_free char *deep = malloc(100001);
	char long_name[66];

	refused("");
	refused("[]");
	refused("7");
	refused("{\"version\": 2}");
	refused("{\"version\": \"1\"}");
	refused("{\"version\": 1} {}");
	refused("{\"version\": 1, \"jobs\": [{}]}");
	refused("{\"version\": 1, \"jobs\": [null]}");
	refused("{\"version\": 1, \"jobs\": [{\"name\": 7}]}");
	refused("{\"version\": 1, \"jobs\": [{\"name\": \"\xff\"}]}");
	memset(long_name, 'n', 65);
	long_name[65] = '\0';
	refused_with("{\"version\": 1, \"jobs\": [{\"name\": \"%s\"}]}",
		     long_name);
	memset(deep, '[', 100000);
	deep[100000] = '\0';
	refused(deep);
}

/* `format` once for each, without the last comma. */
static char *list_of(const char *item, unsigned n)
{
	size_t size = strlen(item) + 1;
	char *text = malloc(n * size + 1), *at = text;

	*at = '\0';
	for (unsigned i = 0; i < n; i++)
		at += sprintf(at, "%s%s", i ? "," : "", item);
	return text;
}

static void test_too_many(void)
{
	static const char one[] =
		"{\"version\": 1, \"jobs\": [{\"name\": \"a\", \"ranks\": [%s]}]}";
	static const char two[] =
		"{\"version\": 1, \"jobs\": [{\"name\": \"a\", \"ranks\": [%s]},"
		"{\"name\": \"b\", \"ranks\": [{}]}]}";
	cleanup_free char *jobs = list_of("{\"name\": \"a\"}", JOBS_MAX + 1);
	cleanup_free char *full = list_of("{}", JOBS_RANKS_MAX);
	cleanup_free char *more = list_of("{}", JOBS_RANKS_MAX + 1);
	cleanup_free char *text = NULL;
	cleanup_free struct top_reading *r = NULL;
	cleanup_free struct top_view *v = NULL;

	refused_with("{\"version\": 1, \"jobs\": [%s]}", jobs);
	refused_with(one, more);
	refused_with(two, full);
	CHECK(asprintf(&text, one, full) >= 0);
	r = parsed(text, S);
	CHECK(r->num_ranks == JOBS_RANKS_MAX);
	v = viewed(r, r);
	CHECK(v->num_jobs == 1);
}

/* For any report, a terminal gets letters, and columns stay aligned. */
static void test_hostile_pictures(void)
{
	static const char text[] =
		"{\"version\": 1, \"uptime_s\": 4611686018427387904,"
		"\"cache\": {\"mode\": \"process\", \"used\": 9, \"limit\": 1},"
		"\"delivery\": {\"direct\": {\"batches\": 4611686018427387904},"
		"\"zero_copy\": {\"bytes\": 4611686018427387904}},"
		"\"jobs\": [{\"name\": \"\\u001b[2J\\n\\u00e9\\u009b7\","
		"\"connections\": 4611686018427387904, \"ranks\": ["
		"{\"rank\": 4611686018427387904, \"loaders\": 1,"
		"\"epoch\": 4611686018427387904, \"idle_s\": 0,"
		"\"samples_per_s\": 1e15, \"wait_share\": 1e15,"
		"\"queue_fill\": 1e15, \"failed_samples\": 4611686018427387904},"
		"{\"rank\": 1, \"loaders\": 1, \"batches\": 7, \"open_s\": 1}]}]}";
	cleanup_free struct top_reading *a = parsed("{\"version\": 1}", S);
	cleanup_free struct top_reading *b = parsed(text, 2 * S);
	cleanup_free struct top_view *v = viewed(a, b);

	CHECK(v->jobs[0].worst.wait_share == 1);
	for (unsigned width = 1; width < 240; width++) {
		const struct top_look look = { .mount = "\033[2J\377",
					       .width = width,
					       .height = 24 };
		cleanup_free char *out = drawn(v, &look, NULL);

		check_shape(out, width, 24);
		CHECK(width < 80 || strstr(out, "\n?[2J?????7 "));
		CHECK(width < 80 || strstr(out, "[#####"));
	}
}

/* --- for programs --- */

static void test_json(void)
{
	cleanup_free struct top_reading *a = made("a", 10, early, 2);
	cleanup_free struct top_reading *b = made("a", 12, early, 2);
	cleanup_free struct top_view *v = viewed(a, b), *w = viewed(NULL, a);
	cleanup_free char *text = NULL, *first = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	CHECK(!top_json(v, "mnt", false, f) && !fclose(f));
	CHECK(strchr(text, '\n') == text + size - 1);
	CHECK(strstr(text, "\"mount\":\"mnt\""));
	CHECK(strstr(text, "\"values_per_s\":100.0"));
	CHECK(strstr(text, "\"verdict\":\"waits\""));
	CHECK(strstr(text, "\"waits_for\":\"decode\""));
	f = open_memstream(&first, &size);
	CHECK(!top_json(w, "\377", true, f) && !fclose(f));
	CHECK(strstr(first, "\"mount\": null"));
	CHECK(strstr(first, "\"values_per_s\": null"));
}

int main(void)
{
	test_rates_are_differences();
	test_verdicts();
	test_a_last_word_holds_for_a_while();
	test_the_end();
	test_another_daemon();
	test_order();
	test_pictures();
	test_networks();
	test_all_sizes();
	test_scrolling();
	test_ended_jobs_go();
	test_lines();
	test_hostile_numbers();
	test_hostile_texts();
	test_too_many();
	test_hostile_pictures();
	test_json();
	return 0;
}
