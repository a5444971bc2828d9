/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kinds, and the namespace seen from outside. */
#include "fs/ns_tree.h"

#include <stdlib.h>
#include <string.h>

#include "fs/bytes.h"
#include "fs/memo.h"
#include "fs/ns_batch.h"
#include "fs/ns_by.h"
#include "fs/ns_column.h"
#include "fs/ns_fixed.h"
#include "fs/ns_shard.h"
#include "fs/ns_stats.h"
#include "fs/ns_stream.h"
#include "fs/ns_value.h"

enum { BLOCK = 512, IO_SIZE = 128 << 10 };

static const struct ns_row no_row = { .type = 0 };

static const struct ns_row *const kinds[1 << NS_KIND_BITS] = {
	[NS_FIXED] = ns_fixed_rows,
	[NS_SAMPLE] = &ns_sample_row,	  [NS_VALUE] = &ns_value_row,
	[NS_COLUMN] = &ns_column_row,	  [NS_ARRAY] = &ns_array_row,
	[NS_SPEC] = &ns_spec_row,	  [NS_SPEC_LINK] = &ns_spec_link_row,
	[NS_EPOCH] = &ns_epoch_row,	  [NS_BATCH] = &ns_batch_row,
	[NS_BY_FIELD] = &ns_by_field_row, [NS_BY_VALUE] = &ns_by_value_row,
	[NS_SHARD] = &ns_shard_row,	  [NS_JOB] = &ns_job_row,
};

static const struct ns_row *row_of(const struct ns *ns,
				   const struct ns_object *object)
{
	const struct ns_row *row = ns->kinds[object->kind];

	if (!row)
		return &no_row;
	if (object->kind != NS_FIXED)
		return row;
	return object->index < NS_FIXED_END ? &row[object->index] : &no_row;
}

bool ns_emit(const struct ns_listing *listing, uint64_t next, const char *name,
	     const struct ns_object *object)
{
	return listing->emit(listing->arg, &(struct ns_name){
						   .name = name,
						   .next = next,
						   .entry.object = *object,
					   });
}

bool ns_emit_entry(const struct ns_listing *listing, uint64_t next,
		   const char *name, const struct ns_entry *entry)
{
	return listing->emit(listing->arg, &(struct ns_name){
						   .name = name,
						   .next = next,
						   .entry = *entry,
						   .has_attr = true,
					   });
}

static bool is_newer(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec > b->tv_sec ||
	       (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/* Number `i`; the root above several has the time of the newest. */
static int open_tree(struct ns *ns, uint32_t i,
		     const struct ns_options *options)
{
	const struct ns_top *top = &options->tops[i];
	const struct ns_object object = { NS_FIXED, i, 0, NS_ROOT };
	struct ns_tree *tree = &ns->trees[i];
	int r;

	tree->ds = top->dataset;
	tree->owner = top->owner;
	tree->name = strdup(top->name);
	if (!tree->name)
		return -ENOMEM;
	r = ns_fixed_open(tree, top->options);
	if (r || !tree->ds)
		return r;
	tree->time = tree->ds->source->stat.st_mtim;
	if (is_newer(&tree->time, &ns->trees[0].time))
		ns->trees[0].time = tree->time;
	return ns_streams_open(ns, &object, options);
}

int ns_open(const struct ns_options *options, struct ns **out)
{
	struct ns *ns = calloc(1, sizeof(*ns));
	int r = 0;

	if (!ns)
		return -ENOMEM;
	ns->kinds = kinds;
	ns->engine = options->engine;
	ns->log = options->log;
	ns_stats_open(ns, options);
	ns->trees = calloc(options->num_tops, sizeof(*ns->trees));
	if (!ns->trees)
		r = -ENOMEM;
	for (uint32_t i = 0; i < options->num_tops && !r; i++) {
		ns->num_trees = i + 1;
		r = open_tree(ns, i, options);
	}
	if (!r)
		r = ns_groups_open(ns);
	if (!r)
		r = ns_shards_open(ns);
	if (r)
		ns_close(ns);
	else
		*out = ns;
	return r;
}

void ns_close(struct ns *ns)
{
	if (!ns)
		return;
	memo_close(ns->shards);
	memo_close(ns->groups);
	for (uint32_t i = 0; i < ns->num_trees; i++) {
		ns_streams_close(ns->trees[i].streams);
		ns_fixed_close(&ns->trees[i]);
		free(ns->trees[i].name);
	}
	free(ns->trees);
	free(ns);
}

int ns_lookup(struct ns *ns, const struct ns_object *dir, const char *name,
	      struct ns_entry *out)
{
	const struct ns_row *row = row_of(ns, dir);

	if (!row->lookup)
		return -ENOTDIR;
	if (strlen(name) > NS_NAME_MAX)
		return -ENAMETOOLONG;
	*out = (struct ns_entry){ .may_change = false };
	return row->lookup(ns, dir, name, out);
}

int ns_attr(struct ns *ns, const struct ns_object *object, struct ns_entry *out)
{
	const struct ns_row *row = row_of(ns, object);

	*out = (struct ns_entry){ .object = *object };
	return row->attr ? row->attr(ns, object, out) : 0;
}

void ns_stat_object(const struct ns *ns, const struct ns_object *object,
		    struct stat *out)
{
	const struct ns_tree *tree = ns_tree(ns, object);
	mode_t type = row_of(ns, object)->type;

	/* A value has a name under samples/, columns/ and perhaps by/, but is
	   counted once, lest every tar looks for the others. */
	*out = (struct stat){
		.st_ino = ns_ino(object),
		.st_mode = type | (S_ISDIR(type)   ? tree->owner.dir_mode
				   : S_ISLNK(type) ? 0777
						   : tree->owner.file_mode),
		.st_nlink = S_ISDIR(type) ? 2 : 1,
		.st_uid = tree->owner.uid,
		.st_gid = tree->owner.gid,
		.st_blksize = IO_SIZE,
		.st_atim = tree->time,
		.st_mtim = tree->time,
		.st_ctim = tree->time,
	};
}

void ns_stat(const struct ns *ns, const struct ns_entry *entry,
	     struct stat *out)
{
	ns_stat_object(ns, &entry->object, out);
	if (entry->time.tv_sec)
		out->st_atim = out->st_mtim = out->st_ctim = entry->time;
	out->st_size = (off_t)entry->size;
	out->st_blocks = (blkcnt_t)((entry->size + BLOCK - 1) / BLOCK);
}

struct ns_object ns_parent(struct ns *ns, const struct ns_object *object)
{
	const struct ns_row *row = row_of(ns, object);

	return row->parent ? row->parent(ns, object) : *object;
}

int ns_list(struct ns *ns, const struct ns_object *dir,
	    const struct ns_listing *listing)
{
	const struct ns_row *row = row_of(ns, dir);

	return row->list ? row->list(ns, dir, listing) : -ENOTDIR;
}

int ns_readlink(struct ns *ns, const struct ns_object *link,
		char out[SPEC_TEXT_MAX])
{
	const struct ns_row *row = row_of(ns, link);

	return row->readlink ? row->readlink(ns, link, out) : -EINVAL;
}

int ns_open_file(struct ns *ns, const struct ns_object *object,
		 struct ns_file *out)
{
	const struct ns_row *row = row_of(ns, object);

	*out = (struct ns_file){ .vfile = NULL };
	return row->open ? row->open(ns, object, out) : -EISDIR;
}

void ns_close_file(struct ns_file *file)
{
	if (file->vfile)
		file->close(file->vfile);
	file->vfile = NULL;
}

static uint64_t files_of(const struct dataset *ds)
{
	const struct format *f = &ds->format;
	uint64_t usable = 0;

	for (uint32_t i = 0; i < f->num_fields; i++)
		usable += !f->fields[i].unusable;
	return f->samples * (usable + 1);
}

uint64_t ns_files(const struct ns *ns)
{
	uint64_t files = 0;

	for (uint32_t i = 0; i < ns->num_trees; i++) {
		if (ns->trees[i].ds)
			files += files_of(ns->trees[i].ds);
	}
	return files;
}

uint64_t ns_bytes(const struct ns *ns)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < ns->num_trees; i++) {
		if (ns->trees[i].ds)
			bytes += ns->trees[i].ds->format.file_size;
	}
	return bytes;
}
