/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/writer/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/base/files/paths.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/class_union.h"
#include "fs/data/dataset/dataset.h"
#include "fs/data/dataset/form.h"
#include "fs/data/writer/copy.h"
#include "fs/data/writer/rewrite.h"

enum {
	PAGE_SIZE_MIN = 2 << 20, /* the writer's limit */
	STEP = 64,		 /* samples between two calls of progress() */
};

struct merge_part {
	struct dataset *ds;
	uint32_t *from;		/* its field for each field of the output */
	struct class_map *maps; /* of its classes, likewise */
};

struct merge {
	const struct merge_options *options;
	const char *out;
	struct log *log;
	struct merge_part *parts;
	size_t num_parts;
	struct writer_field *fields; /* of the output */
	uint32_t num_fields;
	struct class_names **names; /* of each field; NULL: none */
	uint64_t samples;
	uint64_t page_size;
	uint64_t done;
	bool appends; /* the output is the first part */
	struct writer *writer;
	const struct merge_part *part; /* whose samples are copied */
};

static const char *path_of(const struct merge_part *part)
{
	return dataset_path(part->ds);
}

/* --- fields -------------------------------------------------------------- */

static const struct field *find_field(const struct merge_part *part,
				      const char *name, uint32_t *index)
{
	const struct format *f = &part->ds->format;

	for (uint32_t i = 0; i < f->num_fields; i++) {
		*index = i;
		if (!strcmp(f->fields[i].name, name))
			return &f->fields[i];
	}
	return NULL;
}

/* Finds field `i` of the output in a part. */
static int match_field(const struct merge *m, struct merge_part *part,
		       uint32_t i)
{
	const struct field *ours = &m->parts->ds->format.fields[i];
	const struct field *its = find_field(part, ours->name, &part->from[i]);
	char have[FORM_SIZE], want[FORM_SIZE], why[FORM_WHY_SIZE];

	if (!its) {
		log_error(m->log,
			  "%s: has no field '%s', but %s has one: files to be "
			  "merged need the same fields",
			  path_of(part), ours->name, path_of(m->parts));
		return -EINVAL;
	}
	if (!form_check(form_of_field(its, have), form_of_field(ours, want),
			path_of(m->parts), why))
		return 0;
	log_error(m->log,
		  "%s: field '%s' %s: files to be merged need the same fields",
		  path_of(part), its->name, why);
	return -EINVAL;
}

/* Every field of the output has one in the part. So if there are more, one of
   them has no counterpart. */
static int refuse_extra(const struct merge *m, const struct merge_part *part)
{
	const struct format *f = &part->ds->format;
	uint32_t unused;

	for (uint32_t i = 0; i < f->num_fields; i++) {
		if (find_field(m->parts, f->fields[i].name, &unused))
			continue;
		log_error(m->log,
			  "%s: has a field '%s', but %s has none: files to be "
			  "merged need the same fields",
			  path_of(part), f->fields[i].name, path_of(m->parts));
		return -EINVAL;
	}
	log_error(m->log, "%s: two fields have the same name", path_of(part));
	return -EINVAL;
}

static int match_fields(const struct merge *m, struct merge_part *part)
{
	int r = 0;

	for (uint32_t i = 0; i < m->num_fields && !r; i++)
		r = match_field(m, part, i);
	if (!r && part->ds->format.num_fields != m->num_fields)
		r = refuse_extra(m, part);
	return r;
}

/* The names of the fields point into the first dataset. */
static int take_fields(struct merge *m)
{
	struct dataset *first = m->parts->ds;
	uint32_t n = first->format.num_fields;
	int r = rewrite_fields(first, &m->fields);

	if (r)
		return r;
	m->num_fields = n;
	m->names = calloc(n, sizeof(*m->names));
	return m->names ? 0 : log_no_memory(m->log, NULL);
}

/* --- class names --------------------------------------------------------- */

/* The first file gives the names. If numbers are kept, the first one that has
   some does. */
static bool gives_names(const struct merge *m, const struct merge_part *part,
			uint32_t i)
{
	return m->options->keep_numbers ? !m->names[i] : part == m->parts;
}

static int add_names(struct merge *m, struct merge_part *part, uint32_t i)
{
	struct field *f = &part->ds->format.fields[part->from[i]];
	char why[CLASS_WHY_SIZE];
	int r;

	if (gives_names(m, part, i)) {
		part->maps[i].num = f->classes ? f->classes->num : 0;
		m->names[i] = steal(f->classes);
	}
	if (part == m->parts || m->options->keep_numbers)
		return 0;
	r = class_names_unite(&m->names[i], f->classes, &part->maps[i],
			      path_of(m->parts), why);
	if (r)
		log_error(m->log, "%s: field '%s' %s%s", path_of(part), f->name,
			  why,
			  r == -ENOMEM || r == -E2BIG
				  ? ""
				  : ": give all files names, or keep all "
				    "numbers as they are (--keep-numbers)");
	return r == -ENODATA ? -EINVAL : r;
}

/* Keeps the maps only: many files may each have many names. */
static int add_all_names(struct merge *m, struct merge_part *part)
{
	struct field *fields = part->ds->format.fields;
	int r = 0;

	for (uint32_t i = 0; i < m->num_fields && !r; i++)
		r = add_names(m, part, i);
	for (uint32_t i = 0; i < part->ds->format.num_fields; i++)
		class_names_free(steal(fields[i].classes));
	return r;
}

static void set_names(struct merge *m)
{
	for (uint32_t i = 0; i < m->num_fields; i++) {
		const struct class_names *all = m->names[i];

		m->fields[i].classes = all ? all->names : NULL;
		m->fields[i].num_classes = all ? all->num : 0;
	}
}

/* A number without a name in its file must not get one. */
static int renumber(void *arg, uint32_t field, uint64_t sample, int64_t *value)
{
	const struct merge *m = arg;
	const struct class_names *all = m->names[field];

	if (!class_map_apply(&m->part->maps[field], all, value))
		return 0;
	log_error(m->log,
		  "%s: sample %llu field '%s': %lld has no class name, but in "
		  "the new file it would be '%s': give it a name, or keep all "
		  "numbers as they are (--keep-numbers)",
		  path_of(m->part), (unsigned long long)sample,
		  m->fields[field].name, (long long)*value,
		  class_name(all, *value));
	return -EINVAL;
}

/* --- files --------------------------------------------------------------- */

/* Only the first file may be the output: if a pattern matches the output of an
   earlier run, its samples would be added twice. */
static int check_output(struct merge *m, const struct merge_part *part)
{
	const struct stat *st = &part->ds->source->stat;
	struct stat out;

	if (stat(m->out, &out) || out.st_dev != st->st_dev ||
	    out.st_ino != st->st_ino)
		return 0;
	m->appends |= part == m->parts;
	if (m->appends)
		return 0;
	log_error(m->log,
		  "%s: is the output and a source: to append to it, name it "
		  "first",
		  path_of(part));
	return -EINVAL;
}

static int add_samples(struct merge *m, const struct merge_part *part)
{
	const struct format *f = &part->ds->format;

	m->page_size = max_u64(m->page_size, f->page_size);
	if (f->samples > FORMAT_SAMPLES_MAX - m->samples) {
		log_error(m->log, "%s: over %llu samples with it",
			  path_of(part),
			  (unsigned long long)FORMAT_SAMPLES_MAX);
		return -EINVAL;
	}
	m->samples += f->samples;
	return 0;
}

static int add_part(struct merge *m, const char *path, size_t files)
{
	struct merge_part *part = &m->parts[m->num_parts];
	uint32_t n;
	int r = dataset_open(path, NULL, m->log, &part->ds);

	if (r)
		return r;
	m->num_parts++;
	part->ds->tables = files;
	r = check_output(m, part);
	if (!r && part == m->parts)
		r = take_fields(m);
	if (r)
		return r;
	n = m->num_fields;
	part->from = calloc(n, sizeof(*part->from));
	part->maps = calloc(n, sizeof(*part->maps));
	if (!part->from || !part->maps)
		return log_no_memory(m->log, NULL);
	r = match_fields(m, part);
	r = r ? r : add_all_names(m, part);
	return r ? r : add_samples(m, part);
}

static int add_paths(struct merge *m, const struct paths *lists, size_t num)
{
	size_t files = 0;
	int r = 0;

	for (size_t i = 0; i < num; i++)
		files += lists[i].num;
	m->parts = calloc(files + 1, sizeof(*m->parts));
	if (!m->parts)
		return log_no_memory(m->log, NULL);
	for (size_t i = 0; i < num && !r; i++) {
		for (size_t k = 0; k < lists[i].num && !r; k++)
			r = add_part(m, lists[i].at[k], files);
	}
	if (!r && !files) {
		log_error(m->log, "no files to merge");
		r = -EINVAL;
	}
	if (!r)
		set_names(m);
	return r;
}

static int open_parts(struct merge *m, const char *const *paths, size_t num)
{
	struct paths *lists = calloc(num + 1, sizeof(*lists));
	int r = lists ? 0 : log_no_memory(m->log, NULL);

	for (size_t i = 0; i < num && !r; i++)
		r = paths_list(paths[i], m->log, &lists[i]);
	r = r ? r : add_paths(m, lists, num);
	for (size_t i = 0; lists && i < num; i++)
		paths_fini(&lists[i]);
	free(lists);
	return r;
}

static void close_part(struct merge_part *part)
{
	dataset_close(part->ds);
	part->ds = NULL;
}

static void close_all(struct merge *m)
{
	writer_abort(&m->writer);
	for (size_t k = 0; k < m->num_parts; k++) {
		struct merge_part *part = &m->parts[k];

		for (uint32_t i = 0; part->maps && i < m->num_fields; i++)
			free(part->maps[i].numbers);
		free(part->maps);
		free(part->from);
		close_part(part);
	}
	for (uint32_t i = 0; m->names && i < m->num_fields; i++)
		class_names_free(m->names[i]);
	free(m->names);
	free(m->fields);
	free(m->parts);
}

/* --- the copy ------------------------------------------------------------ */

static int show_progress(const struct merge *m)
{
	const struct merge_options *o = m->options;

	return o->progress ? o->progress(o->arg, m->done, m->samples) : 0;
}

static int poll_progress(void *arg)
{
	return show_progress(arg);
}

static int open_writer(struct merge *m)
{
	uint64_t given = m->options->page_size;

	if (given > UINT32_MAX) {
		log_error(m->log, "page size %llu: at most 2147483648",
			  (unsigned long long)given);
		return -EINVAL;
	}
	return writer_begin(
		&(struct writer_setup){
			.path = m->out,
			.fields = m->fields,
			.num_fields = m->num_fields,
			.num_samples = m->samples,
			.page_size = (uint32_t)(given ? given : m->page_size),
			.poll = poll_progress,
			.arg = m,
			.log = m->log,
		},
		&m->writer);
}

/* Like cp, lets the kernel read farther ahead. */
static void expect_all(const struct dataset *ds)
{
	uint64_t at, left;
	int fd = source_descriptor(ds->source, 0, &at, &left);

	if (fd >= 0)
		posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
}

static int copy_part(struct merge *m, struct copy *c,
		     const struct merge_part *part)
{
	uint64_t samples = part->ds->format.samples, n;
	int r;

	m->part = part;
	expect_all(part->ds);
	r = copy_from(c, part->ds, part->from);
	for (uint64_t i = 0; i < samples && !r; i += n) {
		n = min_u64(STEP, samples - i);
		r = copy_range(c, i, n);
		m->done += n;
		r = r ? r : show_progress(m);
	}
	return r;
}

/* Returns whether the integers of any part change. */
static bool renumbers(const struct merge *m)
{
	bool any = false;

	for (uint32_t i = 0; i < m->num_fields; i++)
		any |= m->names[i] != NULL;
	return any && !m->options->keep_numbers;
}

/* The first part stays open: it has the names of the fields. */
static int copy_parts(struct merge *m)
{
	struct copy *c;
	int r = copy_open(m->writer, m->log, &c);

	if (r)
		return r;
	if (renumbers(m))
		copy_change_integers(c, renumber, m);
	for (size_t i = 0; i < m->num_parts && !r; i++) {
		int settled;

		r = copy_part(m, c, &m->parts[i]);
		settled = writer_settle(m->writer);
		r = r ? r : settled;
		if (i)
			close_part(&m->parts[i]);
	}
	copy_close(c);
	return r;
}

static int run(struct merge *m, struct merge_result *result)
{
	uint64_t size = 0;
	int r = open_writer(m);

	if (!r && m->appends)
		writer_expect(m->writer, &m->parts->ds->source->stat);
	r = r ? r : copy_parts(m);
	r = r ? r : writer_finish_size(&m->writer, &size);
	if (r)
		return r;
	*result = (struct merge_result){
		.files = m->num_parts,
		.samples = m->samples,
		.size = size,
	};
	return 0;
}

int merge_files(const char *const *paths, size_t num, const char *out,
		const struct merge_options *options, struct log *log,
		struct merge_result *result)
{
	struct merge m = {
		.options = options,
		.out = out,
		.log = log,
		.page_size = PAGE_SIZE_MIN,
	};
	int r = open_parts(&m, paths, num);

	r = r ? r : run(&m, result);
	close_all(&m);
	return r;
}
