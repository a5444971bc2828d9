/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/joined.h"

#include <stdio.h>
#include <stdlib.h>

#include "fs/base/files/paths.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/thread.h"
#include "fs/data/dataset/class_union.h"
#include "fs/data/dataset/form.h"
#include "fs/source/local/join.h"
#include "fs/source/net/net.h"
#include "fs/source/url/url.h"

/* --- formats --- */

enum { WHY_SIZE = FORM_WHY_SIZE + 128 };

#define WHY(why, ...) snprintf(why, WHY_SIZE, __VA_ARGS__)

static int check_field(const struct dataset *ds, const struct field *ours,
		       const struct field *its, char *why)
{
	char own[FORM_SIZE], other[FORM_SIZE], reason[FORM_WHY_SIZE];
	int r = form_check(form_of_field(its, other), form_of_field(ours, own),
			   dataset_path(ds->parts->ds), reason);

	if (strcmp(ours->name, its->name))
		WHY(why, "its field %s is %s in the first file", its->stem,
		    ours->stem);
	else if (r)
		WHY(why, "its field %s %s", its->stem, reason);
	else if (ours->meta_off != its->meta_off ||
		 ours->meta_size != its->meta_size)
		WHY(why, "its field %s is stored in another way", its->stem);
	else
		return 0;
	return -EINVAL;
}

/* Labels of the files stay as they are. If only some files have names, these
   are the names of all. */
static int take_names(const struct dataset *ds, const struct dataset *part,
		      struct field *ours, struct field *its, char *why)
{
	char reason[CLASS_WHY_SIZE];
	int r = class_names_unite(&ours->classes, its->classes, NULL,
				  dataset_path(ds->parts->ds), reason);

	if (r == -ENODATA) {
		log_warning(part->log,
			    "%s: field '%s' %s: all files get these names",
			    dataset_path(part), its->name, reason);
		r = 0;
	}
	if (r)
		WHY(why, "its field '%s' %s", its->name, reason);
	if (!ours->classes)
		ours->classes = steal(its->classes);
	class_names_free(steal(its->classes));
	return r;
}

static int add_fields(struct dataset *ds, const struct dataset *part, char *why)
{
	struct format *all = &ds->format;
	struct field *its = part->format.fields;
	int r = 0;

	if (all->num_fields != part->format.num_fields) {
		WHY(why, "it has %u fields, the first file has %u",
		    part->format.num_fields, all->num_fields);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < all->num_fields && !r; i++) {
		r = check_field(ds, &all->fields[i], &its[i], why);
		r = r ? r : take_names(ds, part, &all->fields[i], &its[i], why);
		if (its[i].unusable)
			all->fields[i].unusable = its[i].unusable;
	}
	return r;
}

/* The fields are those of the first file, which loses its class names. */
static int take_fields(struct format *all, struct format *file, char *why)
{
	all->fields = calloc(file->num_fields, sizeof(*all->fields));
	if (!all->fields) {
		WHY(why, "out of memory");
		return -ENOMEM;
	}
	all->num_fields = file->num_fields;
	all->itemsize = file->itemsize;
	all->meta_off = file->meta_off;
	for (uint32_t i = 0; i < file->num_fields; i++) {
		all->fields[i] = file->fields[i];
		file->fields[i].classes = NULL;
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

static int add_format(struct dataset *ds, struct dataset *part, char *why)
{
	struct format *all = &ds->format, *file = &part->format;
	int r = all->fields ? add_fields(ds, part, why)
			    : take_fields(all, file, why);

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

	/* Queries, which may name objects, are no part of the path. */
	if (dataset_is_remote(a) || dataset_is_remote(b))
		return !strcmp(dataset_path(a), dataset_path(b)) &&
		       x->st_size == y->st_size;
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
	char why[WHY_SIZE] = "the files are too large together";
	int r = check_new(ds, part);

	if (r)
		return r;
	*to = (struct dataset_part){ part, ds->format.samples, 0 };
	r = next_base(ds, part, &to->base);
	if (!r)
		r = add_format(ds, part, why);
	if (r)
		log_error(
			ds->log,
			"%s: %s: files of one dataset must have the same fields and classes; beton merge unites class names",
			part->source->path, why);
	else
		ds->num_parts++;
	return r;
}

/* --- opening the files --- */

enum {
	/* Remote files that are opened at a time. */
	OPENERS_MAX = 16,
};

struct opening {
	const struct paths *paths;
	struct source_options options;
	struct log *log;
	struct dataset **files;	   /* NULL: not open */
	atomic_uint_fast64_t next; /* file that no thread has taken */
	atomic_int result;	   /* of the first failure */
};

static bool has_failed(void *arg)
{
	struct opening *o = arg;

	return atomic_load(&o->result);
}

static void open_by(struct opening *o, const struct source_options *options)
{
	uint64_t i;
	int r, none = 0;

	while (!atomic_load(&o->result)) {
		i = atomic_fetch_add(&o->next, 1);
		if (i >= o->paths->num)
			break;
		r = dataset_open(o->paths->at[i], options, o->log,
				 &o->files[i]);
		if (r)
			atomic_compare_exchange_strong(&o->result, &none, r);
	}
}

/* Only the caller's own thread may ask the caller; the others end after it. */
static void *open_some(void *arg)
{
	struct opening *o = arg;
	struct source_options options = o->options;

	options.interrupted = has_failed;
	options.interrupted_arg = o;
	open_by(o, &options);
	return NULL;
}

static bool has_url(const struct paths *paths)
{
	for (size_t i = 0; i < paths->num; i++) {
		if (url_is(paths->at[i]))
			return true;
	}
	return false;
}

/* The caller's thread works, too; threads that cannot start are left out. */
static void open_remote(struct opening *o)
{
	pthread_t others[OPENERS_MAX - 1];
	size_t n = 0;

	while (n + 1 < o->paths->num && n < ARRAY_LEN(others) &&
	       !thread_start(&others[n], open_some, o))
		n++;
	open_by(o, &o->options);
	while (n)
		pthread_join(others[--n], NULL);
}

/* The files share connections, and the memory for tables. */
static int share_options(struct opening *o)
{
	struct source_options *to = &o->options;

	to->memory = (to->memory ? to->memory : SOURCE_MEMORY) / o->paths->num;
	return to->net ? (net_ref(to->net), 0) : net_open(o->log, &to->net);
}

static int open_all(struct opening *o)
{
	int r;

	if (!has_url(o->paths)) {
		open_by(o, &o->options);
		return atomic_load(&o->result);
	}
	r = share_options(o);
	if (r)
		return r;
	open_remote(o);
	net_unref(o->options.net);
	return atomic_load(&o->result);
}

static int open_parts(struct dataset *ds, const struct paths *paths,
		      const struct source_options *options)
{
	const struct source_options defaults = { 0 };
	cleanup_free struct dataset **files =
		calloc(paths->num, sizeof(*files));
	struct opening o = {
		.paths = paths,
		.options = options ? *options : defaults,
		.log = ds->log,
		.files = files,
	};
	int r;

	ds->parts = calloc(paths->num, sizeof(*ds->parts));
	if (!ds->parts || !files)
		return -ENOMEM;
	r = open_all(&o);
	for (size_t i = 0; i < paths->num; i++) {
		if (files[i])
			files[i]->tables = paths->num;
		r = r ? r : add_part(ds, files[i]);
		if (r)
			dataset_close(files[i]);
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

static int open_paths(const char *path, const struct source_options *options,
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

int joined_open(const char *path, const struct source_options *options,
		struct log *log, struct dataset **out)
{
	struct source_options common;
	int r;

	if (options)
		return open_paths(path, options, log, out);
	r = source_options_read(NULL, log, &common);
	if (!r)
		r = open_paths(path, &common, log, out);
	source_options_fini(&common);
	return r;
}
