/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The top directories and the files of generated text, which every dataset has.
 * A mount of several datasets has one more root above them, with a directory
 * per dataset and .betonfs/.
 */
#include "fs/mount/namespace/fixed.h"
#include "fs/base/util/name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/mount/namespace/batches.h"
#include "fs/mount/namespace/by.h"
#include "fs/mount/namespace/columns.h"
#include "fs/mount/namespace/samples.h"
#include "fs/mount/namespace/shards.h"
#include "fs/mount/namespace/stats_files.h"
#include "fs/mount/namespace/text_file.h"

/* The path of each fixed object. Listings leave hidden objects out. */
static const struct {
	const char *name;
	uint64_t parent;
	bool is_hidden;
} places[NS_FIXED_END] = {
	[NS_ROOT] = { "", NS_ROOT, true },
	[NS_DATASET_JSON] = { "dataset.json", NS_ROOT, false },
	[NS_SAMPLES] = { "samples", NS_ROOT, false },
	[NS_COLUMNS] = { "columns", NS_ROOT, false },
	[NS_BATCHES] = { "batches", NS_ROOT, false },
	[NS_BY] = { "by", NS_ROOT, false },
	[NS_SHARDS] = { "shards", NS_ROOT, false },
	[NS_CONTROL] = { ".betonfs", NS_ROOT, true },
	[NS_VERSION] = { "version", NS_CONTROL, false },
	[NS_OPTIONS] = { "options", NS_CONTROL, false },
	[NS_STATS] = { "stats.json", NS_CONTROL, false },
	[NS_METRICS] = { "metrics", NS_CONTROL, false },
	[NS_JOBS] = { "jobs", NS_CONTROL, false },
};

static bool is_there(const struct ns *ns, const struct ns_object *dir,
		     uint64_t i)
{
	if (i >= NS_STATS)
		return ns->stats.jobs;
	return ns_dataset(ns, dir) || i == NS_CONTROL ||
	       places[i].parent == NS_CONTROL;
}

/* Only the root of a dataset has a parent outside its dataset. */
static struct ns_object fixed_parent(struct ns *ns,
				     const struct ns_object *object)
{
	struct ns_object parent =
		ns_make(object, NS_FIXED, 0, places[object->index].parent);

	(void)ns;
	if (object->index == NS_ROOT)
		parent.dataset = 0;
	return parent;
}

static int fixed_lookup(struct ns *ns, const struct ns_object *dir,
			const char *name, struct ns_entry *out)
{
	struct ns_object object;

	for (uint64_t i = NS_ROOT + 1; i < NS_FIXED_END; i++) {
		if (places[i].parent != dir->index ||
		    strcmp(places[i].name, name) || !is_there(ns, dir, i))
			continue;
		object = ns_make(dir, NS_FIXED, 0, i);
		return ns_attr(ns, &object, out);
	}
	return -ENOENT;
}

static int fixed_list(struct ns *ns, const struct ns_object *dir,
		      const struct ns_listing *listing)
{
	struct ns_object object;
	struct ns_entry entry;

	for (uint64_t i = listing->first; i < NS_FIXED_END; i++) {
		if (places[i].parent != dir->index || places[i].is_hidden ||
		    !places[i].name || !is_there(ns, dir, i))
			continue;
		object = ns_make(dir, NS_FIXED, 0, i);
		if (ns_attr(ns, &object, &entry) ||
		    !ns_emit_entry(listing, i + 1, places[i].name, &entry))
			break;
	}
	return 0;
}

/* --- the root of a dataset, or the one above several --- */

static int root_lookup(struct ns *ns, const struct ns_object *dir,
		       const char *name, struct ns_entry *out)
{
	struct ns_object object = *dir;

	for (uint32_t i = 1; i < ns->num_trees && !ns_dataset(ns, dir); i++) {
		if (strcmp(ns->trees[i].name, name))
			continue;
		object.dataset = i;
		return ns_attr(ns, &object, out);
	}
	return fixed_lookup(ns, dir, name, out);
}

static int root_list(struct ns *ns, const struct ns_object *dir,
		     const struct ns_listing *listing)
{
	struct ns_entry entry = { .object = *dir };

	if (ns_dataset(ns, dir))
		return fixed_list(ns, dir, listing);
	for (uint64_t i = listing->first + 1; i < ns->num_trees; i++) {
		entry.object.dataset = (uint32_t)i;
		if (!ns_emit_entry(listing, i, ns->trees[i].name, &entry))
			break;
	}
	return 0;
}

/* --- files of text, written when the namespace opens --- */

static int text_attr(struct ns *ns, const struct ns_object *object,
		     struct ns_entry *out)
{
	out->size = ns_tree(ns, object)->texts[object->index].size;
	return 0;
}

static int text_open(struct ns *ns, const struct ns_object *object,
		     struct ns_file *out)
{
	const struct ns_text *text = &ns_tree(ns, object)->texts[object->index];

	return ns_text_open(text->text, text->size, out);
}

/* Takes ownership of the text. */
static int set_text(struct ns_tree *tree, unsigned i, char *text)
{
	tree->texts[i].text = text;
	tree->texts[i].size = text ? strlen(text) : 0;
	return text ? 0 : -ENOMEM;
}

static int json_text(const struct dataset *ds, char **out)
{
	char *json;
	int r = dataset_json(ds, &json);

	if (r)
		return r;
	r = text_print(out, "%s\n", json);
	free(json);
	return r;
}

int ns_fixed_open(struct ns_tree *tree, const char *options)
{
	char *json = NULL, *version = NULL;
	int r = tree->ds ? json_text(tree->ds, &json) : 0;

	if (!r && json)
		r = set_text(tree, NS_DATASET_JSON, json);
	if (!r && text_print(&version, "betonfs %s\n", beton_version()))
		r = -ENOMEM;
	if (!r)
		r = set_text(tree, NS_VERSION, version);
	if (!r)
		r = set_text(tree, NS_OPTIONS, strdup(options));
	return r;
}

void ns_fixed_close(struct ns_tree *tree)
{
	for (size_t i = 0; i < ARRAY_LEN(tree->texts); i++)
		free(tree->texts[i].text);
}

static bool is_in_memory(const struct ns *ns, const struct ns_object *object)
{
	(void)ns;
	(void)object;
	return true;
}

#define DIRECTORY(lookup_, list_)                                              \
	{                                                                      \
		.type = S_IFDIR, .lookup = lookup_, .list = list_,             \
		.parent = fixed_parent                                         \
	}
#define COMPUTED(lookup_, list_)                                               \
	{                                                                      \
		.type = S_IFDIR, .lookup = lookup_, .list = list_,             \
		.parent = fixed_parent, .is_at_hand = is_in_memory             \
	}
#define TEXT                                                                   \
	{                                                                      \
		.type = S_IFREG, .attr = text_attr, .open = text_open,         \
		.parent = fixed_parent, .is_at_hand = is_in_memory             \
	}
#define SNAPSHOT                                                               \
	{                                                                      \
		.type = S_IFREG, .attr = ns_stats_attr,                        \
		.open = ns_stats_open_file, .parent = fixed_parent             \
	}

const struct ns_row ns_fixed_rows[NS_FIXED_END] = {
	[NS_ROOT] = COMPUTED(root_lookup, root_list),
	[NS_DATASET_JSON] = TEXT,
	[NS_SAMPLES] = COMPUTED(ns_samples_lookup, ns_samples_list),
	[NS_COLUMNS] = DIRECTORY(ns_columns_lookup, ns_columns_list),
	[NS_BATCHES] = { .type = S_IFDIR,
			 .find = ns_batches_find,
			 .list = ns_batches_list,
			 .parent = fixed_parent },
	[NS_BY] = DIRECTORY(ns_by_lookup, ns_by_list),
	[NS_SHARDS] = DIRECTORY(ns_shards_lookup, ns_shards_list),
	[NS_CONTROL] = DIRECTORY(fixed_lookup, fixed_list),
	[NS_VERSION] = TEXT,
	[NS_OPTIONS] = TEXT,
	[NS_STATS] = SNAPSHOT,
	[NS_METRICS] = SNAPSHOT,
	[NS_JOBS] = { .type = S_IFDIR,
		      .attr = ns_jobs_attr,
		      .lookup = ns_jobs_lookup,
		      .list = ns_jobs_list,
		      .parent = fixed_parent },
};
