/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/combine/split.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/writer/copy.h"
#include "fs/data/writer/rewrite.h"
#include "fs/data/writer/writer.h"

enum {
	PAGE_SIZE_MIN = 2 << 20, /* the writer's limit */
	STEP = 64,		 /* samples between two calls of progress() */
};

/* --- outputs ------------------------------------------------------------- */

static bool is_file_of(const struct dataset *ds, const struct stat *st)
{
	const struct stat *mine = &ds->source->stat;

	for (size_t i = 0; i < ds->num_parts; i++) {
		if (is_file_of(ds->parts[i].ds, st))
			return true;
	}
	return !ds->parts && mine->st_dev == st->st_dev &&
	       mine->st_ino == st->st_ino;
}

/* The other parts could not be made any more if that file were replaced and the
   command ended. */
static int check_outputs(const struct split *s)
{
	struct stat st;

	for (size_t i = 0; i < s->outputs->num; i++) {
		const char *path = s->outputs->paths[i];

		if (stat(path, &st) || !is_file_of(s->dataset, &st))
			continue;
		log_error(s->log,
			  "%s: is a file of the dataset to split: choose "
			  "another name",
			  path);
		return -EINVAL;
	}
	return 0;
}

/* --- parts --------------------------------------------------------------- */

static int copy_samples(const struct split *s, size_t part, struct copy *c)
{
	const struct partition *p = s->partition;
	int r = copy_from(c, s->dataset, NULL);

	for (uint64_t i = p->starts[part]; i < p->starts[part + 1] && !r; i++) {
		r = copy_sample(c, partition_at(p, i));
		if (s->progress && i % STEP == 0)
			s->progress(s->arg, i);
	}
	return r;
}

static int write_part(const struct split *s, size_t part,
		      const struct writer_field *fields)
{
	const struct partition *p = s->partition;
	const struct format *f = &s->dataset->format;
	struct writer *w = NULL;
	struct copy *c;
	int r = writer_begin(
		&(struct writer_setup){
			.path = s->outputs->paths[part],
			.fields = fields,
			.num_fields = f->num_fields,
			.num_samples = p->starts[part + 1] - p->starts[part],
			.page_size =
				(uint32_t)max_u64(f->page_size, PAGE_SIZE_MIN),
			.poll = s->poll,
			.arg = s->poll_arg,
			.log = s->log,
		},
		&w);

	if (r)
		return r;
	r = copy_open(w, s->log, &c);
	if (!r) {
		r = copy_samples(s, part, c);
		copy_close(c);
	}
	r = r ? r : writer_finish(&w);
	writer_abort(&w);
	return r;
}

int split_run(const struct split *s)
{
	cleanup_free struct writer_field *fields = NULL;
	int r = rewrite_fields(s->dataset, &fields);

	r = r ? r : check_outputs(s);
	for (size_t i = 0; i < s->partition->num && !r; i++)
		r = write_part(s, i, fields);
	return r;
}
