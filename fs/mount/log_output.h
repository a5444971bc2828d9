/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the daemon's messages go: to stderr while somebody waits for it to
 * start, afterwards to a file or to syslog. SIGHUP opens the file again, after
 * somebody renamed it; without a file it means nothing.
 */
#ifndef FS_MOUNT_LOG_OUTPUT_H
#define FS_MOUNT_LOG_OUTPUT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fs/util/log.h"

struct message {
	int fd;	    /* of the file; -1: none. The number never changes. */
	char *path; /* of the file, absolute, owned; NULL: none */
	atomic_bool started;
	bool keeps_stderr; /* in the foreground */
	bool is_watched;
	pthread_t watcher; /* if is_watched */
	atomic_bool ends;  /* what the watcher shall do */
	struct log *log;   /* of the watcher */
};

/* `path` may be NULL. -errno if the file cannot be opened. Blocks SIGHUP, for
   all threads that are to come. */
int message_open(struct message *m, const char *path);
void message_close(struct message *m);

/* Starts the thread that waits for SIGHUP, if there is a file: after the last
   fork. The log, which leads here, outlives it. -errno without a thread. */
int message_watch(struct message *m, struct log *log);

/* From here on, nobody reads stderr. */
void message_start(struct message *m);

/* A beton_log_fn; arg is a struct message. */
void message_log(void *arg, enum beton_log_level level, const char *message);

#endif
