/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a dataset for fsck.beton, deep and with little memory, so that
 * tables take several passes. If it finds no error, readers must accept the
 * file and every value.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/data/dataset/dataset.h"
#include "fs/data/dataset/value.h"
#include "fs/source/object/open.h"
#include "loader/tools/fsck/head.h"
#include "loader/tools/fsck/tables.h"
#include "tests/fuzz/fuzz.h"

enum {
	MEMORY = 64 << 10, /* a window has a few hundred entries */
	SAMPLES_MAX = 1 << 12,
};

static void check(const char *path, struct target *t, struct report *report,
		  struct progress *progress, sigset_t *none)
{
	int r;

	sigemptyset(none);
	progress_init(progress, 0, NULL);
	*report = (struct report){
		.path = path,
		.format = &t->format,
		.is_silent = true,
		.progress = progress,
	};
	*t = (struct target){
		.report = report,
		.extent = CHECK_DEEP,
		.threads = 1,
		.memory = MEMORY,
		.signals = none,
	};
	MUST(!source_open(path, NULL, NULL, &t->source));
	r = head_check(t);
	if (!r)
		r = bad_set_init(&report->bad, t->format.samples, MEMORY);
	r = r ? r : tables_check(t);
	/* A fault of the head is reported. */
	MUST(!r || report_errors(report) || r == -ENOMEM);
}

static void finish(struct target *t)
{
	bad_set_fini(&t->report->bad);
	format_fini(&t->format);
	source_close(t->source);
}

/* Readers accept all that fsck finds sound. */
static void read_values(struct dataset *ds)
{
	const struct format *f = &ds->format;
	struct value v;
	int r;

	for (uint64_t i = 0; i < min_u64(f->samples, SAMPLES_MAX); i++) {
		for (uint32_t k = 0; k < f->num_fields; k++) {
			r = dataset_value_at(ds, k, i, &v);
			MUST(!r || f->fields[k].unusable);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct progress progress;
	struct report report;
	struct target t;
	struct dataset *ds;
	sigset_t none;
	char path[32];
	int fd = memfd_create("fuzz", 0);

	MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	check(path, &t, &report, &progress, &none);
	if (!report_errors(&report) && !report.counts[CHECK_CUSTOM]) {
		MUST(!dataset_open(path, NULL, NULL, &ds));
		read_values(ds);
		dataset_close(ds);
	}
	finish(&t);
	close(fd);
	return 0;
}
