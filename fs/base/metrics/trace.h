/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timeline of what each thread does, as a file for trace viewers: Chrome's
 * JSON, which Perfetto reads too. Each thread writes to a track of its own,
 * without a lock. A thread of the trace writes the tracks to the file several
 * times a second, so that the file is valid JSON however the process ends. If
 * events come faster than the file can be written, they are dropped and
 * counted.
 *
 * trace.lock guards the list of tracks and the file; no other lock is taken
 * under it.
 */
#ifndef FS_BASE_METRICS_TRACE_H
#define FS_BASE_METRICS_TRACE_H

#include <stdint.h>

#include "fs/base/util/log.h"

struct trace;
struct trace_track;

enum trace_kind {
	TRACE_READ,
	TRACE_COLLATE,
	TRACE_SAMPLES,
	TRACE_DECODE,
	TRACE_TRANSFORM,
	TRACE_UPLOAD,
	TRACE_NEXT,
	TRACE_WAIT,
	TRACE_TRAINER,
	TRACE_QUEUE, /* not a span, but a counter's value */
	TRACE_KINDS,
};

/*
 * Begins the file. If another trace is being written to it, in this process or
 * another, FILE.json becomes FILE.2.json and so on. Failures are logged. The
 * log must outlive the trace.
 */
int trace_open(const char *path, struct log *log, struct trace **out);
/* Ends the file. No thread may still write to a track. Takes NULL. */
void trace_close(struct trace *trace);

/* Adds a track, which lives as long as the trace. NULL without a trace or
   without memory: all functions on tracks accept NULL and do nothing. */
struct trace_track *trace_add(struct trace *trace, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Makes the calling thread the one that writes the track. */
void trace_here(struct trace_track *track);

/* Times are those of stage_now_ns() or clock_ns(). The kind determines the
   names of `a` and `b` in the file. */
void trace_span(struct trace_track *track, enum trace_kind kind, uint64_t begin,
		uint64_t end, uint64_t a, uint64_t b);
void trace_count(struct trace_track *track, enum trace_kind kind, uint64_t now,
		 uint64_t value);

#endif
