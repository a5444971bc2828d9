/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What mkfs.beton makes a dataset of: the image files below some folders, in
 * the byte order of their paths, and the classes that the folders name.
 */
#ifndef LOADER_TOOLS_MKFS_SCAN_H
#define LOADER_TOOLS_MKFS_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/util/log.h"

struct scan_file {
	char *path;	 /* as to open it */
	uint32_t source; /* which of the folders */
	uint32_t rel;	 /* where the path relative to the folder begins */
	uint32_t label;	 /* index of its class; 0 without labels */
};

/* Zero-initialise. Plain data once scan_finish() is done. */
struct scan {
	struct log *log;
	struct scan_file *files;
	size_t num_files;
	size_t room;
	char **classes; /* sorted, each once */
	size_t num_classes;
	size_t classes_room;
	uint32_t num_sources;
	uint64_t ignored; /* files that are no images, and hidden things */
	bool has_labels;  /* every image lies below a class folder */
};

/* Adds all that is below `folder`. Failures are logged. */
int scan_add(struct scan *s, const char *folder);

/* Brings files and classes into order and numbers the labels. */
int scan_finish(struct scan *s);

void scan_fini(struct scan *s);

#endif
