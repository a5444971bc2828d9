/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a mount: datasets, the engine, the namespace, zero-copy delivery
   and the operations of FUSE. */
#ifndef FS_MOUNT_DAEMON_SERVED_H
#define FS_MOUNT_DAEMON_SERVED_H

#include <limits.h>

#include "fs/base/metrics/rings_count.h"
#include "fs/mount/daemon/dataset_names.h"
#include "fs/mount/daemon/option_table.h"
#include "fs/mount/daemon/sandbox.h"
#include "fs/mount/daemon/watcher.h"
#include "fs/mount/fuse/fuse_ops.h"
#include "fs/mount/zerocopy/zerocopy.h"

/*
 * Exit codes of betonfs(8), which are those of mount(8):
 *
 *	0   mounted; in the foreground: unmounted; with mount.beton -f: it would
 *	    have been mounted
 *	1   wrong usage: an unknown option, a bad value, a missing operand
 *	2   the system failed: no memory, an I/O error, no process
 *	32  the mount failed: a dataset does not exist, the mountpoint cannot be
 *	    used, or FUSE is missing or refused
 *	33  32 and 1: the mount failed, because a file is not a dataset
 *	34  32 and 2: the mount failed, because a dataset is damaged
 *
 * As in mount(8), a code is a sum of bits, so scripts test for 32 alone. A
 * message names the cause.
 */
enum exit_code {
	EXIT_OK = 0,
	EXIT_USAGE = 1,
	EXIT_SYSTEM = 2,
	EXIT_MOUNT = 32,
	EXIT_NOT_DATASET = EXIT_MOUNT | EXIT_USAGE,
	EXIT_DAMAGED = EXIT_MOUNT | EXIT_SYSTEM,
};

struct served_dataset {
	char *path; /* absolute, without links; of several files a pattern.
		       URLs in it may contain secrets */
	char source[PATH_MAX];		/* public, and a link stays one */
	char name[NAME_DIRECTORY_SIZE]; /* of its directory; "": the root */
	struct dataset *ds;
};

struct served {
	struct options *opts; /* served_open() sets those of the cache */
	struct log *log;
	const char *mountpoint;
	struct watcher *watcher;
	enum sandbox_layers sandbox;	 /* that the daemon will enter */
	bool is_unconfined;		 /* served_open() set it to none */
	const struct rings_count *rings; /* how requests arrive */
	struct served_dataset *datasets; /* opts->num_datasets, the caller's */
	struct engine *engine;
	struct jobs *jobs;
	struct zerocopy *zerocopy; /* NULL: it could not be opened */
	struct ns *ns;
	struct fuse_ops *ops;
};

/* Logs an error number. Returns EXIT_SYSTEM. */
int exit_failed(struct log *log, const char *what, int r);

/*
 * Opens all datasets and the parts that serve them; the caller has set the
 * first six members and `rings`. Returns an exit code after it logged the failure; the
 * caller calls served_close() in any case. The thread that answers the kernel's
 * INIT calls `ready`.
 */
int served_open(struct served *served, void (*ready)(void *arg), void *arg);
/* Stops the threads of datasets behind URLs until their next requests, so that
   they start inside the sandbox. */
void served_pause(const struct served *served);
/* Returns whether a dataset is behind a URL. */
bool served_is_remote(const struct served *served);
/* Starts the threads; served_open() starts none. Returns an exit
   code. */
int served_start(struct served *served);
void served_close(struct served *served);

#endif
