/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages: levels, one callback, one line each. Whoever finds a failure logs
 * it once, with place and values; everybody else passes the number up.
 */
#ifndef FS_UTIL_LOG_H
#define FS_UTIL_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "beton/beton.h"

/*
 * One per handle; thread-safe. A NULL log swallows everything. Errors and
 * warnings are limited to LOG_BURST a second, so that a damaged dataset does
 * not fill a disk; what was held back is counted in the next line. With
 * `every`, set before the first message, nothing is: for who asks for what
 * fails, and then what it was.
 */
struct log {
	pthread_mutex_t lock;
	beton_log_fn *fn; /* NULL: silence */
	void *arg;
	enum beton_log_level level; /* the least important that is passed */
	bool every;
	int64_t second; /* guarded by lock, as the next two */
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

/* A beton_log_fn for programs: "ARG: message" on stderr; arg is the name. */
void log_to_stderr(void *arg, enum beton_log_level level, const char *message);

#endif
