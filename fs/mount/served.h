/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that a mount serves: datasets, the engine, the namespace, zero-copy
 * delivery and the operations of FUSE.
 */
#ifndef FS_MOUNT_SERVED_H
#define FS_MOUNT_SERVED_H

#include <limits.h>

#include "fs/mount/dataset_names.h"
#include "fs/mount/fuse_ops.h"
#include "fs/mount/handover.h"
#include "fs/mount/log_output.h"
#include "fs/mount/option_table.h"

/* As in betonfs(8). */
enum exit_code {
	EXIT_OK = 0,
	EXIT_USAGE = 1,
	EXIT_SYSTEM = 2,
	EXIT_NO_DATASET = 10,
	EXIT_NOT_DATASET = 11,
	EXIT_DAMAGED = 12,
	EXIT_MOUNTPOINT = 20,
};

struct served {
	char path[PATH_MAX]; /* absolute */
	char name[NAME_DIRECTORY_SIZE];
	struct dataset *ds;
};

struct daemon {
	struct opts opts;
	struct message message;
	struct log log;
	struct served *served;	   /* each dataset */
	char mountpoint[PATH_MAX]; /* absolute: the daemon has / as its
				      directory */
	int ready_fd; /* to the waiting parent; -1 in the foreground */
	struct engine *engine;
	struct jobs *jobs;
	struct handover *handover; /* NULL: there can be none */
	struct ns *ns;
	struct ops *ops;
};

/* Logs an error number; EXIT_SYSTEM. */
int failed(struct daemon *d, const char *what, int r);

size_t num_served(const struct daemon *d);

/* An exit code. `ready` is called with the daemon once the mount answers. The
   caller calls close_all() either way. */
int open_all(struct daemon *d, void (*ready)(void *arg));
void close_all(struct daemon *d);

#endif
