/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/fsck/repair.h"

#include <errno.h>
#include <sys/stat.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/dataset.h"
#include "fs/data/writer/copy.h"
#include "fs/data/writer/rewrite.h"
#include "fs/data/writer/writer.h"

enum { PAGE_SIZE_MIN = 2 << 20 };

/* A sample that changed since it was checked. */
static int is_unreadable(int r)
{
	return r == -BETON_ECORRUPT || r == -BETON_ETOOLARGE;
}

static int copy_samples(struct target *t, struct dataset *ds, struct copy *copy,
			uint64_t *written)
{
	int r = copy_from(copy, ds, NULL);

	*written = 0;
	for (uint64_t i = 0; i < ds->format.samples && !r; i++) {
		if (!bad_set_has(&t->report->bad, i)) {
			r = copy_sample(copy, i);
			*written += !r;
		}
		if (is_unreadable(r)) {
			bad_set_add(&t->report->bad, i);
			r = 0;
		}
		r = r ? r : target_poll(t, 0);
	}
	return r;
}

static int write_copy(struct target *t, struct dataset *ds, const char *path,
		      uint64_t *written)
{
	cleanup_free struct writer_field *fields = NULL;
	struct writer *w = NULL;
	struct copy *copy = NULL;
	int r = rewrite_fields(ds, &fields);

	if (!r)
		r = writer_open(
			path, fields, ds->format.num_fields,
			ds->format.samples - t->report->bad.count,
			(uint32_t)max_u64(ds->format.page_size, PAGE_SIZE_MIN),
			t->log, &w);
	r = r ? r : copy_open(w, t->log, &copy);
	r = r ? r : copy_samples(t, ds, copy, written);
	copy_close(copy);
	if (!r && !*written) {
		log_error(t->log, "%s: not written: every sample is damaged",
			  path);
		r = -ENODATA;
	}
	r = r ? r : writer_finish(&w);
	writer_abort(&w);
	return r;
}

static bool is_source(const struct target *t, const char *path)
{
	const struct stat *own = &t->source->stat;
	struct stat st;

	return !stat(path, &st) && st.st_dev == own->st_dev &&
	       st.st_ino == own->st_ino;
}

int repair_write(struct target *t, const char *path, uint64_t *written)
{
	struct dataset *ds = NULL;
	int r;

	if (is_source(t, path)) {
		log_error(
			t->log,
			"%s: not written: OUT is the damaged dataset: expected another file",
			path);
		return -EINVAL;
	}
	if (!report_can_repair(t->report)) {
		log_error(
			t->log,
			"%s: not written: without its header, descriptors and tables %s cannot be read; restore it from a copy",
			path, t->source->path);
		return -EOPNOTSUPP;
	}
	r = dataset_open(t->given, NULL, t->log, &ds);
	r = r ? r : write_copy(t, ds, path, written);
	if (ds)
		dataset_close(ds);
	return r;
}
