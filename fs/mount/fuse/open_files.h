/* SPDX-License-Identifier: Apache-2.0 */
/* The open files of a mount. Each is charged to the budget, and to its
   user. All functions are thread-safe but open_files_init() and
   open_files_close(). */
#ifndef FS_MOUNT_FUSE_OPEN_FILES_H
#define FS_MOUNT_FUSE_OPEN_FILES_H

#include <pthread.h>

#include "fs/base/memory/budget.h"
#include "fs/base/metrics/jobs.h"
#include "fs/data/engine/engine.h"
#include "fs/mount/namespace/ns.h"

struct open_file {
	struct open_file *prev, *next;
	uint64_t ino;
	struct ns_file file;
	uid_t user;	  /* the user who opened it */
	uint64_t charged; /* bytes of this opening, to the budget */
	uint64_t pinned;  /* those and the batch's layout, to the user */
	bool is_direct;	  /* bypasses the page cache */
	bool is_begun;	  /* guarded by files.lock, like marks */
	uint64_t marks;	  /* of the batch, when the first piece was read */
	struct slot_reader reader;
	struct job *job; /* the reader of a batch; NULL: not a batch */
	enum jobs_way way;
};

struct open_files {
	struct ns *ns;
	struct budget *budget; /* may be NULL */
	struct log *log;
	pthread_mutex_t lock;
	struct open_file *list; /* guarded by lock */
};

void open_files_init(struct open_files *files, struct ns *ns,
		     struct budget *budget, struct log *log);
/* Closes the files that the kernel does not release, if a signal ended the
   session. */
void open_files_close(struct open_files *files);

/* -ENFILE: the user's files take its share of the memory, which is logged.
   -ENOMEM: there was no room for the file, for some seconds if it may wait. */
int open_file_open(struct open_files *files, uint64_t ino, uid_t user,
		   bool may_wait, struct open_file **out);
void open_file_close(struct open_files *files, struct open_file *file);

/* Returns whether it is a batch without the samples whose metadata cannot be
   read. */
bool open_file_is_short(const struct open_file *file);
/* Returns whether another open file has another layout of this batch. Pages of
   two layouts must not mix in the page cache. */
bool open_file_has_other_layout(struct open_files *files,
				const struct open_file *file);
/*
 * A batch may be collated again between two reads, with other failed samples.
 * Returns whether this collation has the marks of the parts that were read
 * before, through this open file or into the page cache that open files share.
 * If not, the read fails with EIO, and the reader must open the file again.
 */
bool open_file_marks(struct open_files *files, struct open_file *file,
		     uint64_t marks);

#endif
