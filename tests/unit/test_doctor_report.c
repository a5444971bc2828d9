/* SPDX-License-Identifier: Apache-2.0 */
/* One diagnosis as text, as JSON and as a page. */
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/cleanup.h"
#include "loader/tools/doctor/report.h"
#include "tests/unit/t.h"

static const struct evidence evidence = {
	.path = "/data/<train>.beton",
	.pipeline = "float | chw",
	.spec = "order=random,batch=256",
	.source = "file",
	.delivery = "in-process",
	.jit = "generic",
	.order = "random",
	.seconds = 12,
	.file_size = 1234567890,
	.others = 0.25,
	.others_idle = 0.5,
	.throttled = 0.125,
	.memory_rate = 2e10,
	.cpu = { .online = 8, .allowed = 4, .quota = 2.5, .quota_of = "/box" },
	.memory = { .size = { .available = 3000000000, .why = "free" },
		    .memlock = UINT64_MAX },
	.disk = { .type = "nfs4", .source = "server:/data", .network = true },
	.network = { .known = true,
		     .rate = 4.5e7,
		     .latency_s = 0.05,
		     .in_flight = 15,
		     .depth = 16,
		     .retries = 3,
		     .is_out = true },
	.num_gpus = 1,
	.gpus = { { .name = "H200",
		    .busy = 7,
		    .link = 5,
		    .width = 16,
		    .link_max = 5,
		    .width_max = 16 } },
	.ladder = { [RUNG_ALL] = { true, 6400, 80, 620, 3, 100e3 } },
	.watch = { .known = true,
		   .main_busy = 0.5,
		   .loader_cores = 1.5,
		   .rate = 700,
		   .rate_is_guess = true,
		   .gpu_busy = -1 },
	.ranks = { { .rank = 3, .rate = 2.5, .ready = 0.75 } },
	.num_ranks = 1,
	.notes = { "1 < 2" },
	.num_notes = 1,
	.model = { .samples = 1e6,
		   .decode_us = 400,
		   .transform_us = 200,
		   .cores = 4,
		   .workers = 4 },
};

static void check_has(const char *report, const char *part)
{
	if (!strstr(report, part))
		fprintf(stderr, "missing: %s\nin:\n%s", part, report);
	CHECK(strstr(report, part));
}

typedef void report_fn(const struct diagnosis *d, FILE *out);

static char *report_of(const struct diagnosis *d, report_fn *report)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	report(d, out);
	CHECK(!fclose(out));
	return text;
}

static void test_text(const struct diagnosis *d)
{
	cleanup_free char *text = report_of(d, report_text);

	check_has(text,
		  "dataset   /data/<train>.beton, 1000000 samples, "
		  "1234.6 MB, on server:/data (nfs4), over the network\n");
	check_has(text, "network   45.0 MB/s, 50.0 ms to the first byte, 15.0 "
			"of 16.0 requests in flight, 3 retries, 0 throttled, "
			"the server does not answer\n");
	check_has(text, "machine   8 CPUs, 4 allowed, 2.5 cores by the quota "
			"of /box, 3.0 GB free (free)\n");
	check_has(text, "others    used 0.50 cores before the pipeline ran, "
			"0.25 while it ran; the hypervisor took 0.00; a quota "
			"throttled 12 % of periods\n");
	check_has(text, "GPU 0     H200, busy 7 %, 0 of 0 MHz, P0, PCIe 5 x16 "
			"of 5 x16\n");
	check_has(
		text,
		"\none stage less    samples/s        +-   CPU us/sample\n"
		"everything             6400        40           620.0  ####");
	check_has(text, "trainer    main thread 50 % busy, loader 1.50 cores, "
			"other threads 0.00, about 700 samples/s\n");
	check_has(text, "ranks      3: 2.5 batches/s, 75 % ready\n");
	check_has(text, "note       1 < 2\n");
}

static void test_json(const struct diagnosis *d)
{
	cleanup_free char *text = report_of(d, report_json);
	json_t *o = json_loads(text, 0, NULL);
	const char *path, *of;
	json_int_t online, memlock, width, rank;
	double others, guess, rate, measured;

	CHECK(!json_unpack(o, "{s:{s:s, s:{s:I, s:s, s:F}, s:{s:I}}}",
			   "evidence", "path", &path, "cpu", "online", &online,
			   "quota_of", &of, "others", &others, "memory",
			   "memlock", &memlock));
	CHECK(!strcmp(path, "/data/<train>.beton") && online == 8);
	CHECK(!strcmp(of, "/box") && others == 0.25 && memlock == INT64_MAX);
	CHECK(!json_unpack(o, "{s:{s:{s:F}, s:[{s:I}], s:[{s:I}], s:F}}",
			   "evidence", "trainer", "samples_per_s", &guess,
			   "gpus", "width", &width, "ranks", "rank", &rank,
			   "measured_samples_per_s", &measured));
	CHECK(guess == 700 && width == 16 && rank == 3 && measured == 6400);
	CHECK(!json_unpack(o, "{s:{s:{s:{s:F}, s:n}}}", "stages", "ladder",
			   "all", "samples_per_s", &rate, "no_upload"));
	CHECK(rate == 6400);
	json_decref(o);
}

static void test_html(const struct diagnosis *d)
{
	char path[] = "/tmp/test_doctor_report.XXXXXX", page[32768] = "";
	int fd = mkstemp(path);
	FILE *in;

	CHECK(fd >= 0 && !close(fd));
	CHECK(!report_html(d, path, NULL));
	in = fopen(path, "r");
	CHECK(in && fread(page, 1, sizeof(page) - 1, in) > 0 && feof(in));
	fclose(in);
	unlink(path);
	check_has(page, "<code>/data/&lt;train&gt;.beton</code>, 1000000 "
			"samples, 1234.6 MB, on server:/data (nfs4)</td>");
	check_has(page, "<tr><td>network</td><td>45.0 MB/s, 50.0 ms to the "
			"first byte, 15.0 of 16.0 requests in flight, 3 "
			"retries, 0 throttled, the server does not answer</td>"
			"</tr>");
	check_has(page, "<td>8 CPUs, 4 allowed, 2.5 cores; other processes "
			"used 0.25 cores; 3.0 GB of memory free; memory "
			"copies at 20.0 GB/s</td>");
	check_has(page, "<td>main thread busy 50 %, loader 1.50 cores, 700 "
			"samples/s</td>");
	check_has(page, "<td>note</td><td>1 &lt; 2</td>");
	CHECK(!strchr(strstr(page, "<body>"), '{'));
}

int main(void)
{
	struct diagnosis d = { .num_fixes = 0 };

	report_diagnose(&evidence, &d);
	test_text(&d);
	test_json(&d);
	test_html(&d);
	return 0;
}
