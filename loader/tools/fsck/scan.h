/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes over the records and the allocation table. The first pass checks each
 * record and each entry by itself. Later passes return the sound ones of a
 * range of offsets, and skip the parts of the file without any.
 */
#ifndef LOADER_TOOLS_FSCK_SCAN_H
#define LOADER_TOOLS_FSCK_SCAN_H

#include "loader/tools/fsck/target.h"

/* A value with bytes in the pages, as its record has it. */
struct value_span {
	uint64_t off;
	uint64_t size; /* stored; VALUE_SIZE_IN_TABLE: only the entry has it */
	uint64_t sample;
	uint16_t field;
	uint16_t width; /* of images */
	uint16_t height;
	bool is_jpeg;
};

struct scan_fns {
	void (*entry)(void *arg, const struct format_entry *e);
	void (*value)(void *arg, const struct value_span *v);
	void *arg;
};

struct scan;

/* Failures are logged. */
int scan_open(struct target *t, struct scan **out);
void scan_close(struct scan *s);

/* The first pass. Empty entries and values are not passed on, because their
   offsets mean nothing. */
int scan_first(struct scan *s, const struct scan_fns *fns);

/* Passes on what begins in [low, high). */
int scan_range(struct scan *s, uint64_t low, uint64_t high,
	       const struct scan_fns *fns);

#endif
