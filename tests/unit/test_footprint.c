/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/util/footprint.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/util/log.h"
#include "tests/unit/t.h"

enum { MIB = 1 << 20 };

static char root[] = "/tmp/test_footprint.XXXXXX";
static char heard[600];

static void hear(void *arg, enum beton_log_level level, const char *message)
{
	(void)arg;
	CHECK(level == BETON_LOG_WARNING && !*heard);
	snprintf(heard, sizeof(heard), "%s", message);
}

/* The result with 64 MiB of available memory. */
static const char *check_head(uint64_t row_size, uint32_t rows,
			      uint32_t complete, uint32_t head)
{
	const struct footprint f = { row_size, rows, complete, head };
	struct log log;

	heard[0] = '\0';
	log_init(&log, hear, NULL);
	footprint_check(&f, root, &log);
	log_fini(&log);
	return heard;
}

static const char *check(uint64_t row_size, uint32_t rows, uint32_t complete)
{
	return check_head(row_size, rows, complete, 0);
}

static void make_machine(void)
{
	char path[64];
	FILE *f;

	CHECK(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/proc", root);
	CHECK(!mkdir(path, 0700));
	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	f = fopen(path, "w");
	CHECK(f);
	fputs("MemTotal: 1048576 kB\nMemAvailable: 65536 kB\n", f);
	CHECK(!fclose(f));
}

static void a_pipeline_that_fits_logs_nothing(void)
{
	CHECK(!*check(MIB, 16, 3));
	CHECK(!*check(0, 4096, 4096));
	CHECK(!*check(UINT64_MAX, 0, 2));
}

static void an_excess_is_logged_with_figures(void)
{
	CHECK(*check(MIB + 1, 16, 3));
	CHECK(!strcmp(
		check(2 * MIB, 16, 4),
		"the batch in use and 4 prefetched, of 16 samples and 32 MiB "
		"each, need at least 160 MiB, but 64 MiB are available "
		"(MemAvailable of /proc/meminfo); use a smaller batch= or "
		"prefetch=, or smaller outputs"));
	CHECK(!*check_head(MIB, 24, 1, 16));
	CHECK(!strcmp(
		check_head(MIB, 24, 1, 17),
		"the batch in use and 1 prefetched with the beginning of "
		"another, of 24 samples and 24 MiB each, need at least 65 MiB, "
		"but 64 MiB are available (MemAvailable of /proc/meminfo); use "
		"a smaller batch= or prefetch=, or smaller outputs"));
	CHECK(*check(UINT64_MAX / 2, 4, 2) && *check(1 << 30, 4, UINT32_MAX));
}

static void without_figures_nothing_is_reported(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", root);
	CHECK(!system(command));
	CHECK(!*check(UINT64_MAX, 1, 2));
}

int main(void)
{
	make_machine();
	a_pipeline_that_fits_logs_nothing();
	an_excess_is_logged_with_figures();
	without_figures_nothing_is_reported();
	return 0;
}
