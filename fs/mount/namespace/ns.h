/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The namespace of a mount: inode number <-> object, names, attributes, the
 * entries of directories and the contents of files. An object is a few numbers,
 * so lookups need no memory, with one exception: sampling specs and epochs get
 * numbers at their first lookup, and the namespace stores a bounded number of
 * names. Independent of FUSE. Thread-safe.
 *
 * Functions return 0 or -errno. -BETON_ECORRUPT means a damaged value; the
 * function that found the damage logged it. -ESTALE: the namespace dropped the
 * name of the object; a lookup of its path creates it again, with another
 * number.
 */
#ifndef FS_MOUNT_NAMESPACE_NS_H
#define FS_MOUNT_NAMESPACE_NS_H

#include <sys/stat.h>

#include "fs/base/order/spec_text.h"
#include "fs/data/engine/engine.h"

/* The kinds of objects, 16 at most; each is a row of the table in tree.c. */
enum ns_kind {
	NS_FIXED,  /* index: a row of the table in fixed.c */
	NS_SAMPLE, /* samples/INDEX/ */
	NS_VALUE,  /* field `part` of sample INDEX, under all of its names */
	NS_COLUMN, /* columns/PART/ */
	NS_ARRAY,  /* columns/PART.npy */
	/* streams.h numbers SPEC to BATCH, in `part` and `index` together. */
	NS_SPEC,      /* batches/SPEC/ */
	NS_SPEC_LINK, /* any other spelling of it, and `default` */
	NS_EPOCH,     /* batches/SPEC/EPOCH/ */
	NS_BATCH,
	NS_BY_FIELD, /* by/PART/ */
	NS_BY_VALUE, /* the INDEX-th directory of by/PART/ */
	NS_SHARD,    /* shards/INDEX.tar */
	NS_JOB,	     /* .betonfs/jobs/, INDEX being its number */
	NS_KINDS,
};

enum {
	NS_KIND_BITS = 4,
	NS_DATASET_BITS = 6,
	NS_PART_BITS = 18,
	NS_INDEX_BITS = 36,
	NS_PARTS_MAX = 1 << NS_PART_BITS,
	NS_NAME_MAX = 255,
	/* Number 0 is the root above several datasets. */
	NS_DATASETS_MAX = (1 << NS_DATASET_BITS) - 1,
	/* Text of an extended attribute: a shape of 32 dimensions is longest.
	 */
	NS_XATTR_MAX = 1024,
	NS_ROOT = 1, /* its index among NS_FIXED, and so its inode number */
};

struct ns_object {
	enum ns_kind kind;
	uint32_t dataset; /* 0: the only one, or the root above several */
	uint32_t part;	  /* field */
	uint64_t index;	  /* sample, value or shard */
};

uint64_t ns_ino(const struct ns_object *object);
struct ns_object ns_object(uint64_t ino);

/* An object with its attributes, as stat(2) returns them. */
struct ns_entry {
	struct ns_object object;
	uint64_t size;
	/* The size may differ at the next open: a batch whose layout met I/O
	   errors, and files about the mount itself. With -ENOENT: the name may
	   exist later. */
	bool may_change;
	/* A sampling spec or an epoch, whose number may be forgotten. Therefore
	   a path through it should be looked up again before long. */
	bool is_named;
	struct timespec time; /* of its last change; 0: the dataset's */
};

/* The owner and the permissions of the files. */
struct ns_owner {
	uid_t uid;
	gid_t gid;
	mode_t file_mode;
	mode_t dir_mode;
};

/* A directory with .betonfs/ in it. */
struct ns_top {
	struct dataset *dataset; /* outlives the namespace */
	const char *name;	 /* of the directory; "": it is the root */
	struct ns_owner owner;
	/* Owner of .betonfs/ above several datasets: its files describe all
	   datasets, so only users who may read each dataset may read them. */
	struct ns_owner of_all;
	const char *options; /* the text of .betonfs/options */
};

struct jobs;
struct rings_count;

struct ns_options {
	/* The only dataset; or the root, without a dataset, and then the
	   datasets below it. */
	const struct ns_top *tops;
	uint32_t num_tops;
	struct engine *engine; /* outlives the namespace */
	struct log *log;
	char *const *subsets; /* NAME:FILE, that sampling specs may name */
	size_t num_subsets;
	bool names_classes;	  /* in by/: "207-golden_retriever" */
	const char *default_spec; /* the target of batches/default */
	/* The jobs of the statistics, and the name of the mount in them. NULL:
	   no statistics. Both outlive the namespace. */
	struct jobs *jobs;
	const struct rings_count *rings; /* NULL: not counted */
	const char *mountpoint;
};

struct ns;

/* -EINVAL: default_spec does not fit a dataset, or a subset cannot be used;
   the reason is logged. */
int ns_open(const struct ns_options *options, struct ns **out);
/* The caller has closed all files. Takes NULL. */
void ns_close(struct ns *ns);

/* `user` makes the lookup. A new name counts against this user's share of the
   stored names. */
int ns_lookup(struct ns *ns, const struct ns_object *dir, const char *name,
	      uid_t user, struct ns_entry *out);
/* Returns whether the functions below answer from memory for an object, and do
   not wait for a disk, a network or another thread. */
bool ns_is_at_hand(const struct ns *ns, const struct ns_object *object);
int ns_attr(struct ns *ns, const struct ns_object *object,
	    struct ns_entry *out);
void ns_stat(const struct ns *ns, const struct ns_entry *entry,
	     struct stat *out);
/* Returns only type, inode number and owner, for an object that cannot be
   read. */
void ns_stat_object(const struct ns *ns, const struct ns_object *object,
		    struct stat *out);
struct ns_object ns_parent(struct ns *ns, const struct ns_object *object);
int ns_readlink(struct ns *ns, const struct ns_object *link,
		char out[SPEC_TEXT_MAX]);
/* Write the text of an extended attribute, without a NUL, and the names of all
   attributes of an object, each with a NUL. -ENODATA: the object has no
   attribute of that name. */
int ns_xattr(struct ns *ns, const struct ns_object *object, const char *name,
	     char out[NS_XATTR_MAX], size_t *size);
int ns_xattr_names(struct ns *ns, const struct ns_object *object,
		   char out[NS_XATTR_MAX], size_t *size);
/* The number of files and directories under samples/ of a dataset, and the size
   of its file in bytes, for statfs(2). 0 for the root above several. */
uint64_t ns_files(const struct ns *ns, uint32_t dataset);
uint64_t ns_bytes(const struct ns *ns, uint32_t dataset);
/* Returns the number of dataset numbers, with that of the root. */
uint32_t ns_datasets(const struct ns *ns);
/* Returns whether there are several datasets, and some users may not read
   all. */
bool ns_is_mixed(const struct ns *ns);

/* One name of a directory. */
struct ns_name {
	const char *name; /* valid during the call */
	uint64_t next;	  /* the offset at which a listing continues */
	struct ns_entry entry;
	bool has_attr; /* of entry, only the object is set otherwise */
};

/* A part of a listing: entries from `first` on, until emit() is false. */
struct ns_listing {
	uint64_t first;
	uint64_t hint;	/* about how many entries emit() will take */
	bool with_attr; /* also emit attributes that are cheap to compute */
	uid_t user;	/* as in ns_lookup() */
	bool (*emit)(void *arg, const struct ns_name *name);
	void *arg;
};

int ns_list(struct ns *ns, const struct ns_object *dir,
	    const struct ns_listing *listing);

/* The name of a batch in its directory, ns_parent(). -EINVAL: not a batch. */
int ns_batch_name(struct ns *ns, const struct ns_object *object,
		  char out[NS_NAME_MAX + 1]);

/* An open file. For a batch, `stream` is the stream that has its slot, and
   `named` keeps the stream. A snapshot is text written for this open file,
   while stat(2) reported the size 0. `bytes`: memory of this open file alone,
   if it is more than a few hundred. */
struct ns_file {
	struct vfile *vfile;
	struct stream *stream;
	struct ns_named *named;
	bool is_snapshot;
	uint64_t bytes;
	void (*close)(struct ns_file *file);
};

/* Returns whether an object is a value of a sample. Then its file is the same
   whenever it is opened. */
bool ns_is_value(const struct ns_object *object);

int ns_open_file(struct ns *ns, const struct ns_object *object,
		 struct ns_file *out);
void ns_close_file(struct ns_file *file);

/*
 * Lookups of the path of a batch, for callers that must not wait for a disk.
 * ns_batch_lookup() is ns_lookup() for the names in such a path; other names
 * and directories are -EINVAL. ns_batch_stream() opens the stream of a batch,
 * which the caller closes before the namespace, and returns the batch's number
 * in it. -EINVAL: not a batch. -ESTALE: the namespace dropped its name.
 */
int ns_batch_lookup(struct ns *ns, const struct ns_object *dir,
		    const char *name, uid_t user, struct ns_object *out);
int ns_batch_stream(struct ns *ns, const struct ns_object *object,
		    struct stream **out, uint64_t *number);

/* Call it once for every file before its first read. If the file is a batch,
   the engine prefetches the batches after it. */
void ns_note_file(const struct ns_file *file);

#endif
