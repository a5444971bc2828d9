/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/dataset/joined.h"

#include <stdio.h>
#include <stdlib.h>

#include "fs/files/paths.h"
#include "fs/source/join.h"
#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"

/* --- formats --- */

#define WHY(why, ...) snprintf(why, FORMAT_WHY_SIZE, __VA_ARGS__)

static bool is_same_array(const struct field *a, const struct field *b)
{
	return !strcmp(a->dtype, b->dtype) && a->ndim == b->ndim &&
	       !memcmp(a->shape, b->shape, a->ndim * sizeof(*a->shape));
}

static int check_field(const struct field *ours, const struct field *its,
		       char *why)
{
	if (strcmp(ours->name, its->name))
		WHY(why, "its field %s is %s in the first file", its->stem,
		    ours->stem);
	else if (ours->type != its->type)
		WHY(why, "its field %s has %s, that of the first file %s",
		    its->stem, its->type->words, ours->type->words);
	else if (!is_same_array(ours, its))
		WHY(why, "its field %s has arrays of another type or shape",
		    its->stem);
	else if (ours->meta_off != its->meta_off ||
		 ours->meta_size != its->meta_size)
		WHY(why, "its field %s is stored in another way", its->stem);
	else
		return 0;
	return -EINVAL;
}

/* Checks that one list of names begins with the other; otherwise a label would
   have two meanings. Stores the longer list. */
static int take_names(struct field *ours, struct field *its, char *why)
{
	struct class_names *a = ours->classes, *b = its->classes;
	uint64_t both = a && b ? min_u64(a->num, b->num) : 0;

	for (uint64_t i = 0; i < both; i++) {
		if (!strcmp(a->names[i], b->names[i]))
			continue;
		WHY(why, "class %llu of its field %s is %.30s, not %.30s",
		    (unsigned long long)i, its->name, b->names[i], a->names[i]);
		return -EINVAL;
	}
	if (b && (!a || b->num > a->num)) {
		ours->classes = b;
		its->classes = a;
	}
	class_names_free(steal(its->classes));
	return 0;
}

static int add_fields(struct format *all, struct format *file, char *why)
{
	int r = 0;

	if (all->num_fields != file->num_fields) {
		WHY(why, "it has %u fields, the first file has %u",
		    file->num_fields, all->num_fields);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < all->num_fields && !r; i++) {
		r = check_field(&all->fields[i], &file->fields[i], why);
		if (!r)
			r = take_names(&all->fields[i], &file->fields[i], why);
		if (file->fields[i].unusable)
			all->fields[i].unusable = file->fields[i].unusable;
	}
	return r;
}

static int copy_fields(struct format *all, const struct format *file)
{
	all->fields = calloc(file->num_fields, sizeof(*all->fields));
	if (!all->fields)
		return -ENOMEM;
	all->num_fields = file->num_fields;
	all->itemsize = file->itemsize;
	all->meta_off = file->meta_off;
	for (uint32_t i = 0; i < file->num_fields; i++) {
		all->fields[i] = file->fields[i];
		all->fields[i].classes = NULL;
	}
	return 0;
}

/* Sets the offsets as if the pages and tables of all files followed each other
   at the end. */
static void add_bytes(struct format *all, const struct format *file)
{
	uint64_t pages = all->table_off - all->first_page + file->table_off -
			 file->first_page;
	uint64_t table = all->file_size - all->table_off + file->file_size -
			 file->table_off;

	all->file_size += file->file_size;
	all->table_off = all->file_size - table;
	all->first_page = all->table_off - pages;
	all->page_size = (uint32_t)max_u64(all->page_size, file->page_size);
}

static int add_format(struct format *all, struct format *file, char *why)
{
	int r = all->fields ? 0 : copy_fields(all, file);

	if (r) {
		WHY(why, "out of memory");
		return r;
	}
	r = add_fields(all, file, why);
	if (r)
		return r;
	if (file->samples > FORMAT_SAMPLES_MAX - all->samples) {
		WHY(why, "over %llu samples with it",
		    (unsigned long long)FORMAT_SAMPLES_MAX);
		return -EINVAL;
	}
	all->samples += file->samples;
	add_bytes(all, file);
	return 0;
}

/* --- files --- */

static bool is_same_file(const struct dataset *a, const struct dataset *b)
{
	const struct stat *x = &a->source->stat, *y = &b->source->stat;

	if (dataset_is_remote(a) || dataset_is_remote(b))
		return !strcmp(dataset_path(a), dataset_path(b));
	return x->st_dev == y->st_dev && x->st_ino == y->st_ino;
}

static int check_new(const struct dataset *ds, const struct dataset *part)
{
	for (size_t i = 0; i < ds->num_parts; i++) {
		if (!is_same_file(ds->parts[i].ds, part))
			continue;
		log_error(
			ds->log,
			"%s: given twice, also as %s: give each file once (to draw its samples more often, use weights)",
			part->source->path, ds->parts[i].ds->source->path);
		return -EINVAL;
	}
	return 0;
}

/* Returns the offset of the next part's bytes, which is aligned for direct
   reads. */
static int next_base(const struct dataset *ds, const struct dataset *part,
		     uint64_t *out)
{
	const struct dataset_part *last = ds->parts + ds->num_parts - 1;
	uint64_t base = 0;

	if (ds->num_parts)
		base = align_up(last->base + last->ds->format.file_size,
				SOURCE_ALIGN);
	if (base > INT64_MAX - part->format.file_size)
		return -EFBIG;
	*out = base;
	return 0;
}

/* Takes the part if it succeeds. */
static int add_part(struct dataset *ds, struct dataset *part)
{
	struct dataset_part *to = &ds->parts[ds->num_parts];
	char why[FORMAT_WHY_SIZE] = "the files are too large together";
	int r = check_new(ds, part);

	if (r)
		return r;
	*to = (struct dataset_part){ part, ds->format.samples, 0 };
	r = next_base(ds, part, &to->base);
	if (!r)
		r = add_format(&ds->format, &part->format, why);
	if (r)
		log_error(
			ds->log,
			"%s: %s: files of one dataset must have the same fields and classes",
			part->source->path, why);
	else
		ds->num_parts++;
	return r;
}

static int open_parts(struct dataset *ds, const struct paths *paths,
		      const struct source_options *options)
{
	struct dataset *part;
	int r = 0;

	ds->parts = calloc(paths->num, sizeof(*ds->parts));
	if (!ds->parts)
		return -ENOMEM;
	for (size_t i = 0; i < paths->num && !r; i++) {
		r = dataset_open(paths->at[i], options, ds->log, &part);
		if (r)
			return r;
		part->tables = paths->num;
		r = add_part(ds, part);
		if (r)
			dataset_close(part);
	}
	return r;
}

static int join_sources(struct dataset *ds, const char *path)
{
	cleanup_free char *shown = paths_public(path);
	cleanup_free struct source **sources =
		calloc(ds->num_parts, sizeof(*sources));
	cleanup_free uint64_t *bases = calloc(ds->num_parts, sizeof(*bases));

	if (!sources || !bases || !shown)
		return -ENOMEM;
	for (size_t i = 0; i < ds->num_parts; i++) {
		sources[i] = ds->parts[i].ds->source;
		bases[i] = ds->parts[i].base;
	}
	return source_join(sources, bases, ds->num_parts, shown, &ds->source);
}

/* Depends on the files and their order. */
static void join_fingerprints(struct dataset *ds)
{
	uint64_t hash[2] = { 3, 4 };

	for (size_t i = 0; i < ds->num_parts; i++)
		dataset_hash(hash, ds->parts[i].ds->fingerprint,
			     sizeof(ds->fingerprint));
	memcpy(ds->fingerprint, hash, sizeof(ds->fingerprint));
}

static int open_files(const char *path, const struct paths *paths,
		      const struct source_options *options, struct log *log,
		      struct dataset **out)
{
	struct dataset *ds = dataset_new(log);
	int r = ds ? open_parts(ds, paths, options) : -ENOMEM;

	if (!r)
		r = join_sources(ds, path);
	if (r) {
		dataset_close(ds);
		return r;
	}
	join_fingerprints(ds);
	*out = ds;
	return 0;
}

int joined_open(const char *path, const struct source_options *options,
		struct log *log, struct dataset **out)
{
	struct paths paths;
	int r = paths_list(path, log, &paths);

	if (!r)
		r = paths.num == 1
			    ? dataset_open(paths.at[0], options, log, out)
			    : open_files(path, &paths, options, log, out);
	paths_fini(&paths);
	return r;
}
