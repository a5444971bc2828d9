/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries and the values that begin in a range of offsets, in the order of
 * their offsets: a part of the file that fits into memory. Checks that entries
 * do not overlap, and that every value has its entry and every entry its value.
 * Windows follow each other from the first page to the last.
 */
#ifndef LOADER_TOOLS_FSCK_WINDOW_H
#define LOADER_TOOLS_FSCK_WINDOW_H

#include "loader/tools/fsck/scan.h"

struct window {
	struct target *t;
	struct scan *scan;
	size_t room; /* for entries, and for values */
	struct format_entry *entries;
	size_t num_entries;
	struct value_span *values; /* after window_load(): those with an entry,
				      which has their size */
	size_t num_values;
	uint64_t low, high;
	/* The entry that reaches farthest, also of earlier windows. */
	struct format_entry last;
	bool last_is_reported;
};

/* The sample of an entry that window_load() adds for the names of classes. */
#define NAMES_SAMPLE (UINT64_MAX - 1)

/* Allocates about `memory` bytes. -ENOMEM. */
int window_init(struct window *w, struct target *t, struct scan *scan,
		size_t memory);
void window_fini(struct window *w);

/* Reads and checks the range, which has at most w->room entries and values. */
int window_load(struct window *w, uint64_t low, uint64_t high);

/* Checks the entries and values at one offset that has any number of them. */
int window_crowd(struct window *w, uint64_t off);

#endif
