/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image files below some directories, in the byte order of their paths, and
 * the classes that directories name.
 */
#ifndef LOADER_TOOLS_INPUT_SCAN_H
#define LOADER_TOOLS_INPUT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/base/util/log.h"

struct scan_file {
	char *path;	 /* for open() */
	uint32_t source; /* index of its directory on the command line */
	uint32_t rel;	 /* offset of the path relative to that directory */
	uint32_t label;	 /* index of its class; 0 without labels */
};

/* Zero-initialize. Immutable after scan_finish(). */
struct scan {
	struct log *log;
	struct scan_file *files;
	size_t num_files;
	size_t room;
	char **classes; /* sorted, each once */
	size_t num_classes;
	size_t classes_room;
	uint32_t num_sources;
	uint64_t ignored; /* files that are not images, and hidden entries */
	bool has_labels;  /* every image lies below the directory of a class */
	bool seeks_one;	  /* scan_add() ends at the first image */
};

/* Returns whether there is an image below `dir`. If the directory cannot be
   read, returns true, so that scan_add() logs the reason. */
bool scan_has_images(const char *dir);

/* Adds all files below `dir`. Failures are logged. */
int scan_add(struct scan *s, const char *dir);

/* Sorts files and classes and numbers the labels. */
int scan_finish(struct scan *s);

void scan_fini(struct scan *s);

#endif
