/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of betonfs. An option of -o is a row of one table; parsing,
 * --help, --options and .betonfs/options come from it.
 */
#ifndef FS_MOUNT_OPTIONS_H
#define FS_MOUNT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "fs/util/log.h"

/* The keys of a SPEC; one that is not given is NULL. */
struct opts_spec {
	char *order;
	char *batch;
	char *seed;
	char *drop_last;
	char *block;
	char *window;
	char *subset;
};

struct opts {
	bool foreground;
	bool debug;
	bool single_thread;
	bool help; /* as the next two: print that, and stop */
	bool version;
	bool list;
	bool fake; /* everything but mounting: for mount(8) */
	/* -o */
	bool noexec;
	bool allow_other;
	bool allow_root;
	bool auto_unmount;
	uint64_t uid; /* OPTS_UNSET: the dataset's, as the next two */
	uint64_t gid;
	uint64_t umask;
	char *cache;	     /* NULL: auto */
	uint64_t cache_size; /* OPTS_UNSET: to be chosen, as the next */
	uint64_t cold_size;
	uint64_t ahead;
	uint64_t threads;
	bool xattr;
	char *log;
	char *settings;
	struct opts_spec spec;
	char **subsets; /* "NAME:FILE" each */
	size_t num_subsets;
	/* Operands. */
	char **datasets; /* owned, as is each */
	size_t num_datasets;
	const char *mountpoint; /* in argv */
};

#define OPTS_UNSET UINT64_MAX

/* As a program whose name begins with "mount." it takes the letters of mount(8)
   instead of its own. -EINVAL: wrong usage, and a logged line says which.
   Either way the caller calls opts_fini(). */
int opts_parse(struct opts *opts, int argc, char **argv, struct log *log);
void opts_fini(struct opts *opts);

void opts_help(FILE *out);
void opts_list(FILE *out); /* one key per line */

/* The SPEC that the options make, the options that mount(2) or fusermount3
   shall see, and all that are set, one per line: text, the caller's, or
   NULL. */
char *opts_spec(const struct opts *opts);
char *opts_mount(const struct opts *opts);
char *opts_text(const struct opts *opts);

#endif
