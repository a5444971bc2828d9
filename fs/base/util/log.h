/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: levels, one callback, one line each. Log a failure once, where it
   is detected, with file, offset and values; callers only propagate the error
   code. */
#ifndef FS_BASE_UTIL_LOG_H
#define FS_BASE_UTIL_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "beton/beton.h"

/*
 * One log per handle; thread-safe. A NULL log drops every message.
 *
 * Errors and warnings are limited to LOG_BURST a second, so that a damaged
 * dataset does not fill a disk. The first message of a later second ends with
 * the number of messages that were held back. If `every` is set before the
 * first message, there is no limit, for callers that need the reason of each
 * failure.
 */
struct log {
	pthread_mutex_t lock;
	beton_log_fn *fn; /* NULL: silence */
	void *arg;
	enum beton_log_level level; /* drops less important ones */
	bool every;
	int64_t second; /* this and the members below are guarded by lock */
	unsigned in_second;
	uint64_t held_back;
};

enum { LOG_BURST = 50 };

void log_init(struct log *log, beton_log_fn *fn, void *arg);
void log_fini(struct log *log);

void log_error(struct log *log, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void log_warning(struct log *log, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void log_info(struct log *log, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Logs that memory is short, for the file or object `path`, or without one if it
   is NULL. Returns -ENOMEM. */
int log_no_memory(struct log *log, const char *path);

/* A beton_log_fn for programs: prints "ARG: message" to stderr, where `arg` is
   the program's name. */
void log_to_stderr(void *arg, enum beton_log_level level, const char *message);

#endif
