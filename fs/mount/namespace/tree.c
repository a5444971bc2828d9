/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The namespace of a mount as a whole: the table of kinds, and the trees. This
 * module is above all parts of the namespace; fs/mount/namespace/ns.h has the
 * interface.
 */
#include "fs/mount/namespace/object.h"

#include <stdlib.h>
#include <string.h>

#include "fs/base/memory/memo.h"
#include "fs/mount/namespace/batches.h"
#include "fs/mount/namespace/by.h"
#include "fs/mount/namespace/columns.h"
#include "fs/mount/namespace/fixed.h"
#include "fs/mount/namespace/samples.h"
#include "fs/mount/namespace/shards.h"
#include "fs/mount/namespace/stats_files.h"
#include "fs/mount/namespace/streams.h"

static const struct ns_row *const kinds[1 << NS_KIND_BITS] = {
	[NS_FIXED] = ns_fixed_rows,
	[NS_SAMPLE] = &ns_sample_row,
	[NS_VALUE] = &ns_value_row,
	[NS_COLUMN] = &ns_column_row,
	[NS_ARRAY] = &ns_array_row,
	[NS_SPEC] = &ns_spec_row,
	[NS_SPEC_LINK] = &ns_spec_link_row,
	[NS_EPOCH] = &ns_epoch_row,
	[NS_BATCH] = &ns_batch_row,
	[NS_BY_FIELD] = &ns_by_field_row,
	[NS_BY_VALUE] = &ns_by_value_row,
	[NS_SHARD] = &ns_shard_row,
	[NS_JOB] = &ns_job_row,
};

static bool is_newer(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec > b->tv_sec ||
	       (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/* Opens tree number `i`. The root above several datasets has the time of the
   newest. */
static int open_tree(struct ns *ns, uint32_t i,
		     const struct ns_options *options)
{
	const struct ns_top *top = &options->tops[i];
	const struct ns_object object = { NS_FIXED, i, 0, NS_ROOT };
	struct ns_tree *tree = &ns->trees[i];
	int r;

	tree->ds = top->dataset;
	tree->owner = top->owner;
	tree->control = tree->ds ? top->owner : top->of_all;
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
	ns->names_classes = options->names_classes;
	ns_stats_open(ns, options);
	ns->trees = calloc(options->num_tops, sizeof(*ns->trees));
	if (!ns->trees)
		r = -ENOMEM;
	if (!r)
		r = ns_names_open(ns);
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
		ns_streams_close(&ns->trees[i]);
		ns_fixed_close(&ns->trees[i]);
		free(ns->trees[i].name);
	}
	ns_names_close(ns->names);
	free(ns->trees);
	free(ns);
}

static uint64_t files_of(const struct dataset *ds)
{
	const struct format *f = &ds->format;
	uint64_t usable = 0;

	for (uint32_t i = 0; i < f->num_fields; i++)
		usable += !f->fields[i].unusable;
	return f->samples * (usable + 1);
}

uint64_t ns_files(const struct ns *ns, uint32_t dataset)
{
	const struct dataset *ds = ns->trees[dataset].ds;

	return ds ? files_of(ds) : 0;
}

uint64_t ns_bytes(const struct ns *ns, uint32_t dataset)
{
	const struct dataset *ds = ns->trees[dataset].ds;

	return ds ? ds->format.file_size : 0;
}

uint32_t ns_datasets(const struct ns *ns)
{
	return ns->num_trees;
}

bool ns_is_mixed(const struct ns *ns)
{
	return !ns->trees[0].ds &&
	       (ns->trees[0].control.file_mode & 0444) != 0444;
}
