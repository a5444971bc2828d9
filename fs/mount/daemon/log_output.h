/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of the daemon's log: stderr until the mount answers, then a file
 * or syslog. SIGHUP opens the file again, for log rotation; without a file it
 * has no effect.
 */
#ifndef FS_MOUNT_DAEMON_LOG_OUTPUT_H
#define FS_MOUNT_DAEMON_LOG_OUTPUT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fs/base/util/log.h"

struct watcher;

struct log_output {
	int fd;	    /* of the file; -1: none. The number never changes. */
	char *path; /* of the file, absolute, owned; NULL: none */
	atomic_bool started;
	bool keeps_stderr; /* in the foreground */
	struct watcher
		*watcher; /* opens the file again, and writes to syslog */
	bool has_thread;
	pthread_t thread; /* that waits for SIGHUP */
	atomic_bool ends; /* the thread has to end */
	struct log *log;  /* of the thread */
};

/* `path` may be NULL. If the file cannot be opened, logs the reason and returns
   -errno; -EINVAL: it is a FIFO or the like. Blocks SIGHUP in this thread and
   the threads that it starts. */
int log_output_open(struct log_output *m, const char *path, struct log *log);
void log_output_close(struct log_output *m);

/* If there is a file, starts the thread that waits for SIGHUP. Call it after
   the last fork. The log must outlive the thread. Returns -errno if it cannot
   start the thread. */
int log_output_watch(struct log_output *m, struct log *log);

/* Moves the output from stderr to the file or syslog. */
void log_output_start(struct log_output *m);

/* A beton_log_fn whose `arg` is a struct log_output. */
void log_output_log(void *arg, enum beton_log_level level, const char *message);

#endif
