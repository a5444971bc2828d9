/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shards/: tars of samples. A memo caches the most recent layouts, because the
 * lookup, the open and the reads of a tar all need its layout.
 */
#include "fs/mount/namespace/shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/memory/memo.h"
#include "fs/base/util/name.h"
#include "fs/mount/namespace/shard_layout.h"

enum { KEPT_BYTES = 16 << 20 };

static const char extension[] = ".tar";

static struct ns_object in_shards(struct ns *ns, const struct ns_object *object)
{
	(void)ns;
	return ns_make(object, NS_FIXED, 0, NS_SHARDS);
}

/* --- layouts --- */

/* The samples of one shard. */
struct shards_place {
	struct dataset *ds;
	uint64_t index;
};

static int make_shard(const void *arg, void **thing, uint64_t *bytes)
{
	const struct shards_place *place = arg;
	struct shard *shard;
	int r = shard_open(place->ds, place->index, &shard);

	if (r)
		return r;
	*thing = shard;
	*bytes = shard_bytes(shard);
	return 0;
}

static void free_shard(void *thing)
{
	shard_close(thing);
}

static int shard_get(struct ns *ns, const struct ns_object *object,
		     const struct shard **out)
{
	const struct shards_place place = { ns_dataset(ns, object),
					    object->index };
	void *thing;
	int r = memo_get(ns->shards, ns_ino(object), &place, &thing);

	if (r)
		return r;
	*out = thing;
	return 0;
}

static uint64_t need_for_shard(const void *arg)
{
	return shard_need(((const struct shards_place *)arg)->ds);
}

static bool reclaim_shards(void *arg, uint64_t bytes)
{
	return memo_reclaim(arg, bytes);
}

int ns_shards_open(struct ns *ns)
{
	struct budget *budget = engine_budget(ns->engine);
	const struct memo_options options = {
		.bytes_max = KEPT_BYTES,
		.budget = budget,
		.need = need_for_shard,
		.make = make_shard,
		.free = free_shard,
	};
	int r = memo_open(&options, &ns->shards);

	if (!r)
		budget_add_reclaimer(budget, reclaim_shards, ns->shards);
	return r;
}

/* --- shards/NNNNNN.tar --- */

struct open_shard {
	struct shard_file file;
	struct memo *shards;
	uint64_t key;
};

static int shard_attr(struct ns *ns, const struct ns_object *object,
		      struct ns_entry *out)
{
	const struct shard *shard;
	int r = shard_get(ns, object, &shard);

	if (r)
		return r;
	out->size = shard->size;
	memo_put(ns->shards, ns_ino(object));
	return 0;
}

static void close_shard(struct ns_file *file)
{
	struct open_shard *open = (struct open_shard *)file->vfile;

	memo_put(open->shards, open->key);
	free(open);
}

static int open_shard(struct ns *ns, const struct ns_object *object,
		      struct ns_file *out)
{
	struct open_shard *open = malloc(sizeof(*open));
	const struct shard *shard;
	int r = open ? shard_get(ns, object, &shard) : -ENOMEM;

	if (r) {
		free(open);
		return r;
	}
	shard_file_init(&open->file, shard);
	open->shards = ns->shards;
	open->key = ns_ino(object);
	*out = (struct ns_file){ .vfile = &open->file.vfile,
				 .close = close_shard };
	return 0;
}

/* --- shards/ --- */

int ns_shards_lookup(struct ns *ns, const struct ns_object *dir,
		     const char *name, struct ns_entry *out)
{
	struct ns_object object;
	const char *rest;
	uint64_t i;

	if (!name_parse_number(name, shard_count(ns_dataset(ns, dir)), &i,
			       &rest) ||
	    strcmp(rest, extension))
		return -ENOENT;
	object = ns_make(dir, NS_SHARD, 0, i);
	return ns_attr(ns, &object, out);
}

/* Lists names without sizes: sizes need the metadata of all samples. */
int ns_shards_list(struct ns *ns, const struct ns_object *dir,
		   const struct ns_listing *listing)
{
	uint64_t n = shard_count(ns_dataset(ns, dir));
	unsigned digits = name_digits(n);
	char text[NAME_DIGITS_MAX + sizeof(extension)];
	struct ns_object object;

	for (uint64_t i = listing->first; i < n; i++) {
		object = ns_make(dir, NS_SHARD, 0, i);
		strcpy(text + name_number(text, i, digits), extension);
		if (!ns_emit(listing, i + 1, text, &object))
			break;
	}
	return 0;
}

const struct ns_row ns_shard_row = {
	.type = S_IFREG,
	.attr = shard_attr,
	.open = open_shard,
	.parent = in_shards,
};
