/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of the namespace's parts: the functions that make up a kind of
 * object, and the state of a mount. Calls reach the parts through the table of
 * kinds in tree.c, so no part is named here.
 */
#ifndef FS_MOUNT_NAMESPACE_OBJECT_H
#define FS_MOUNT_NAMESPACE_OBJECT_H

#include "fs/mount/namespace/ns.h"
#include "fs/mount/namespace/stats.h"

/* A kind of object. A directory has lookup or find, and list; a file attr and
   open, a link attr and readlink. All have parent. */
struct ns_row {
	mode_t type; /* S_IFDIR, S_IFREG, S_IFLNK */
	int (*lookup)(struct ns *ns, const struct ns_object *dir,
		      const char *name, struct ns_entry *out);
	/* Like lookup, if it creates names on behalf of a user. */
	int (*find)(struct ns *ns, const struct ns_object *dir,
		    const char *name, uid_t user, struct ns_entry *out);
	int (*list)(struct ns *ns, const struct ns_object *dir,
		    const struct ns_listing *listing);
	/* Sets size, may_change and time unless they are 0. NULL: all are 0. */
	int (*attr)(struct ns *ns, const struct ns_object *object,
		    struct ns_entry *out);
	int (*open)(struct ns *ns, const struct ns_object *object,
		    struct ns_file *out);
	/* Returns whether all of these functions, and those of its children
	   that stat(2) needs, answer from memory. NULL: they may wait. */
	bool (*is_at_hand)(const struct ns *ns, const struct ns_object *object);
	int (*readlink)(struct ns *ns, const struct ns_object *object,
			char out[SPEC_TEXT_MAX]);
	struct ns_object (*parent)(struct ns *ns,
				   const struct ns_object *object);
};

/* Fixed objects, by ns_object.index. For dataset 0, that is the inode number.
 */
enum {
	NS_DATASET_JSON = NS_ROOT + 1,
	NS_SAMPLES,
	NS_COLUMNS,
	NS_BATCHES,
	NS_BY,
	NS_SHARDS,
	NS_CONTROL, /* .betonfs/ */
	NS_VERSION,
	NS_OPTIONS,
	/* NS_STATS to NS_JOBS exist only with ns_options.jobs. */
	NS_STATS,
	NS_METRICS,
	NS_JOBS,
	NS_FIXED_END,
};

struct ns_text {
	char *text; /* owned */
	size_t size;
};

struct ns_names; /* streams.c */
struct ns_named;

/* The state of one directory that has .betonfs/ in it. */
struct ns_tree {
	struct dataset *ds; /* NULL: the root above several */
	char *name;	    /* owned */
	struct ns_owner owner;
	struct ns_owner control; /* of .betonfs/ and everything below it */
	struct timespec time;	 /* of its objects: the dataset's mtime */
	struct ns_text texts[NS_FIXED_END];
	struct subset *subsets;
	struct ns_named *default_spec;
};

struct ns {
	/* Rows by ns_object.kind; NULL: there is no such kind. NS_FIXED has an
	   array of rows, by ns_object.index. */
	const struct ns_row *const *kinds;
	struct engine *engine;
	struct log *log;
	struct ns_tree *trees; /* by ns_object.dataset */
	uint32_t num_trees;
	bool names_classes; /* by/ has the names of classes */
	struct ns_names *names;
	struct memo *groups; /* by.c: groups of all datasets */
	struct memo *shards; /* shards.c: layouts of tars */
	struct stats stats;
};

static inline struct ns_tree *ns_tree(const struct ns *ns,
				      const struct ns_object *object)
{
	return &ns->trees[object->dataset];
}

/* Returns the dataset of an object. */
static inline struct dataset *ns_dataset(const struct ns *ns,
					 const struct ns_object *object)
{
	return ns_tree(ns, object)->ds;
}

/* An object of the same dataset as `of`. */
static inline struct ns_object ns_make(const struct ns_object *of,
				       enum ns_kind kind, uint32_t part,
				       uint64_t index)
{
	return (struct ns_object){ kind, of->dataset, part, index };
}

/* Emits a name without attributes. `next` is where a listing continues after
   it. False: the listing takes no more names. */
bool ns_emit(const struct ns_listing *listing, uint64_t next, const char *name,
	     const struct ns_object *object);
/* Emits a name with the attributes in `entry`, as ns_emit() does without. */
bool ns_emit_entry(const struct ns_listing *listing, uint64_t next,
		   const char *name, const struct ns_entry *entry);

#endif
