/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognizes sequential reads, and determines how far ahead of them a source
 * should read: at first as much as the last read, then twice as much each time.
 * The caller serializes all calls.
 */
#ifndef FS_SOURCE_OBJECT_AHEAD_H
#define FS_SOURCE_OBJECT_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* Scans at a time. */
	AHEAD_SCANS = 16,
	/* A read this near to the end of the one before continues it: scans of
	   a column skip the rest of a record. */
	AHEAD_SLACK = 4096,
};

struct ahead_scan {
	uint64_t next;	 /* where it continues */
	uint64_t end;	 /* of the bytes that were requested */
	uint64_t window; /* bytes from `next` to `end` that it should have */
	uint64_t used;	 /* value of the clock; 0: none */
};

struct ahead {
	struct ahead_scan scans[AHEAD_SCANS];
	uint64_t clock;
};

/*
 * Notes a read of bytes [off, off + size). Returns whether it continues a scan.
 * Then [*from, *to) are the bytes that should be requested now, up to `limit`
 * and at most `most` bytes past the read; none if *from == *to.
 */
bool ahead_note(struct ahead *a, uint64_t off, uint64_t size, uint64_t limit,
		uint64_t most, uint64_t *from, uint64_t *to);

#endif
