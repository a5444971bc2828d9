/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/name.h"

enum { LINE_MAX_BYTES = 1024 };

const char *beton_version(void)
{
#define TEXT(x) #x
#define JOIN(a, b, c) TEXT(a) "." TEXT(b) "." TEXT(c)
	return JOIN(BETON_VERSION_MAJOR, BETON_VERSION_MINOR,
		    BETON_VERSION_PATCH);
}

void log_init(struct log *log, beton_log_fn *fn, void *arg)
{
	*log = (struct log){ .fn = fn, .arg = arg, .level = BETON_LOG_INFO };
	pthread_mutex_init(&log->lock, NULL);
}

void log_fini(struct log *log)
{
	pthread_mutex_destroy(&log->lock);
}

/* Returns whether the limit of this second allows one more line. The caller
   holds the lock. */
static bool has_room(struct log *log)
{
	time_t now = clock_coarse_ms() / 1000;

	if (now != log->second) {
		log->second = now;
		log->in_second = 0;
	}
	return log->in_second++ < LOG_BURST;
}

static void emit(struct log *log, enum beton_log_level level,
		 const char *format, va_list args)
{
	char line[LINE_MAX_BYTES];
	int used;

	if (!log || !log->fn || level > log->level)
		return;
	scoped_lock(&log->lock);
	if (level <= BETON_LOG_WARNING && !log->every && !has_room(log)) {
		log->held_back++;
		return;
	}
	used = vsnprintf(line, sizeof(line), format, args);
	if (log->held_back && used >= 0 && (size_t)used < sizeof(line)) {
		snprintf(line + used, sizeof(line) - used,
			 " (and %llu messages held back)",
			 (unsigned long long)log->held_back);
		log->held_back = 0;
	}
	/* Names of files may contain control characters. */
	name_tame(line);
	log->fn(log->arg, level, line);
}

void log_error(struct log *log, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	emit(log, BETON_LOG_ERROR, format, args);
	va_end(args);
}

void log_warning(struct log *log, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	emit(log, BETON_LOG_WARNING, format, args);
	va_end(args);
}

void log_info(struct log *log, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	emit(log, BETON_LOG_INFO, format, args);
	va_end(args);
}

int log_no_memory(struct log *log, const char *path)
{
	log_error(log, "%s%sout of memory", path ? path : "", path ? ": " : "");
	return -ENOMEM;
}

void log_to_stderr(void *arg, enum beton_log_level level, const char *message)
{
	(void)level;
	fprintf(stderr, "%s: %s\n", (const char *)arg, message);
}
