/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads do when, as a file for trace viewers: Chrome's JSON, which
 * Perfetto reads too. Each thread has a track of its own, which it alone writes
 * without a lock; a thread of the trace's writes them to the file, several
 * times a second, so that whatever ends the process leaves valid JSON. What
 * comes faster than that is dropped, and counted.
 *
 * trace.lock guards the list of tracks and the file; nothing follows it.
 */
#ifndef FS_METRICS_TRACE_H
#define FS_METRICS_TRACE_H

#include <stdint.h>

#include "fs/util/log.h"

struct trace;
struct trace_track;

enum trace_kind {
	TRACE_READ,
	TRACE_ASSEMBLE,
	TRACE_ROWS,
	TRACE_DECODE,
	TRACE_TRANSFORM,
	TRACE_UPLOAD,
	TRACE_NEXT,
	TRACE_WAIT,
	TRACE_TRAINER,
	TRACE_QUEUE, /* not a span: a number that changes */
	TRACE_KINDS,
};

/*
 * Begins the file. Where another trace is being written to it, in this process
 * or another, FILE.json becomes FILE.2.json and so on. Failures are logged. The
 * log must outlive the trace.
 */
int trace_open(const char *path, struct log *log, struct trace **out);
/* Nobody writes to its tracks any more. Takes NULL. */
void trace_close(struct trace *trace);

/* A track, up to the end of the trace. NULL without a trace, or memory: all
   that follows takes that, and does nothing. */
struct trace_track *trace_add(struct trace *trace, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The calling thread is the one that writes the track from now on. */
void trace_here(struct trace_track *track);

/* By stage_now_ns(), clock_ns(); what `a` and `b` are called is the kind's. */
void trace_span(struct trace_track *track, enum trace_kind kind, uint64_t begin,
		uint64_t end, uint64_t a, uint64_t b);
void trace_count(struct trace_track *track, enum trace_kind kind, uint64_t now,
		 uint64_t value);

#endif
