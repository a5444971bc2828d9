/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of disk tiers: for each object a sparse data file with the
 * object's own offsets, and an index (tier_index.h). Their names are hashes of
 * URL and version.
 *
 * Every user of a tier holds a shared lock on the data file, and the one that
 * writes an exclusive lock on the index. Files that no process has locked are
 * removed if they hold an older version of the same URL, or, least recently
 * opened first, if their space is needed. Paths are used by
 * tier_files_open() alone, so that a sandbox may follow.
 */
#ifndef FS_SOURCE_TIER_FILES_H
#define FS_SOURCE_TIER_FILES_H

#include "fs/base/util/log.h"
#include "fs/source/tier/index.h"

struct tier_files {
	int data, index;
	char *path; /* of the data file, for messages */
};

/*
 * Opens the files of an object, and makes them and the directory if they are
 * missing. `limit` is the size of all files of the directory, 0: as much as is
 * free. If *is_writer, the caller alone may change the files; they are reset
 * unless they are right, and *allowed is the space that the data may occupy.
 *
 * -EPERM: the directory or a file belongs to another user, or others may write
 * to it. -ENAMETOOLONG: the URL is too long. Failures are logged.
 */
int tier_files_open(const char *dir, uint64_t limit,
		    const struct tier_identity *identity, struct log *log,
		    struct tier_files *out, bool *is_writer, uint64_t *allowed);
void tier_files_close(struct tier_files *files);

/* Tries to become the writer. The caller then calls tier_files_repair(). */
bool tier_files_lock(const struct tier_files *files);
/* Resets the files of a writer unless they are right. */
int tier_files_repair(const struct tier_files *files,
		      const struct tier_identity *identity);

#endif
