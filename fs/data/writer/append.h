/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a new dataset, or adds samples to an existing one. The existing one is
 * not changed: its samples are copied to a new file, which replaces it when it
 * is complete. Fields match by name and type, in any order. If integers have
 * class names, known classes take the numbers of the existing dataset, and new
 * classes the next numbers. One thread.
 */
#ifndef FS_DATA_WRITER_APPEND_H
#define FS_DATA_WRITER_APPEND_H

#include <stdbool.h>

#include "fs/data/writer/writer.h"

struct appender;

struct appender_setup {
	const char *path;
	const struct writer_field *fields; /* of the samples to append */
	size_t num_fields;
	uint64_t num_samples; /* at most so many are appended */
	uint32_t page_size;   /* 0 only with `exists`: that of the dataset */
	bool exists;	      /* add to the dataset at `path` */
	/* How a URL is reached; NULL: the defaults. */
	const struct source_options *options;
	/* Called again and again while the samples of the existing dataset are
	   copied, and while a server lets the appender wait; a result other
	   than 0 ends that and is returned. NULL: none. */
	int (*poll)(void *arg);
	void *arg;
	struct sums *sums; /* of struct output_setup */
	bool renews_sums;  /* likewise */
	struct log *log;
};

/*
 * Opens the file, and copies the samples of an existing dataset to it. Failures
 * are logged: -EINVAL if the fields differ, those of dataset_open(),
 * writer_open() and copy_range().
 */
int appender_open(const struct appender_setup *setup, struct appender **out);

/* The page size of the new file. */
uint32_t appender_page_size(const struct appender *a);

/* As writer_append(); values in the order of setup->fields. */
int appender_append(struct appender *a, const struct writer_value *values);

/* As writer_finish(); -ESTALE, logged: another program replaced the existing
   dataset meanwhile. */
int appender_finish(struct appender **a);

/* As writer_abort(). */
void appender_abort(struct appender **a);

#endif
