/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the daemon's messages go: to stderr while somebody waits for it to
 * start, afterwards to a file or to syslog.
 */
#ifndef FS_MESSAGE_H
#define FS_MESSAGE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "fs/log.h"

struct message {
	int fd; /* of the file; -1: none */
	atomic_bool started;
	bool keeps_stderr; /* in the foreground */
};

/* `path` may be NULL. -errno if the file cannot be opened. */
int message_open(struct message *m, const char *path);
void message_close(struct message *m);

/* From here on, nobody reads stderr. */
void message_start(struct message *m);

/* A beton_log_fn; arg is a struct message. */
void message_log(void *arg, enum beton_log_level level, const char *message);

#endif
