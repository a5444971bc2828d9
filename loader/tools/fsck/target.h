/* SPDX-License-Identifier: Apache-2.0 */
/* The file that is checked, and how far. */
#ifndef LOADER_TOOLS_FSCK_TARGET_H
#define LOADER_TOOLS_FSCK_TARGET_H

#include <signal.h>
#include <stdbool.h>

#include "fs/data/dataset/format.h"
#include "fs/source/object/open.h"
#include "loader/tools/fsck/report.h"

/* The parts that are read. */
enum extent_of_check {
	CHECK_TABLES, /* header, descriptors, records and allocation table */
	CHECK_BYTES,  /* all bytes, and the structure of values */
	CHECK_DEEP,   /* and every image is decoded, every JSON text parsed */
};

struct target {
	const char *given; /* the path or URL, with its secrets: not for
			      messages */
	struct source *source;
	struct format format;
	struct report *report;
	struct log *log;
	enum extent_of_check extent;
	unsigned threads;
	uint64_t memory;	 /* bytes */
	sigset_t *signals;	 /* blocked, and polled by target_canceled() */
	struct sums_check *sums; /* NULL: there are none */
	uint64_t read;		 /* bytes of the progress bar */
};

/* -EINTR: a signal asks the program to end. Also draws the progress bar. */
int target_poll(struct target *t, uint64_t more);

/* Reads bytes of the file. A failure is reported as a finding. */
int target_read(struct target *t, void *buf, size_t size, uint64_t off);

#endif
