/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of -o, a row each: parsing, --help, --options and
 * .betonfs/options come from the rows. A new option is a row and a member of
 * struct options.
 */
#ifndef FS_MOUNT_DAEMON_OPTION_TABLE_H
#define FS_MOUNT_DAEMON_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/base/util/typed.h"
#include "fs/source/local/options.h"

/* The keys of a sampling spec. NULL: not given. */
struct opts_spec {
	char *order;
	char *batch;
	char *seed;
	char *drop_last;
	char *block;
	char *window;
	char *subset;
};

struct options {
	bool foreground;
	bool debug;
	bool single_thread;
	bool help;     /* print the help and stop */
	bool version;  /* print versions and stop */
	bool list;     /* print the keys of -o and stop */
	bool describe; /* print the rows for the shell completions and stop */
	bool quiet;    /* errors only */
	bool verbose;
	bool fake; /* mount(8)'s -f: do all but the mount */
	/* -o */
	bool noexec;
	bool allow_other;
	bool allow_root;
	uint64_t uid;	     /* OPTS_UNSET: the dataset's */
	uint64_t gid;	     /* OPTS_UNSET: the dataset's */
	uint64_t umask;	     /* OPTS_UNSET: modes of the dataset */
	char *cache;	     /* NULL: auto */
	uint64_t cache_size; /* OPTS_UNSET: the engine chooses */
	uint64_t cold_size;  /* OPTS_UNSET: the engine chooses */
	uint64_t prefetch;
	uint64_t jobs;
	char *io_uring; /* NULL: auto */
	bool xattr;
	bool names;
	bool verify;
	const char *sandbox; /* "sandbox", "nosandbox"; NULL: neither given */
	char *log;
	char *settings;
	struct opts_spec spec;
	struct source_options storage;
	char **subsets; /* "NAME:FILE" each */
	size_t num_subsets;
	/* Operands. */
	char **datasets; /* the list and each path are owned */
	size_t num_datasets;
	const char *mountpoint; /* in argv */
};

#define OPTS_UNSET UINT64_MAX

enum opts_kind {
	OPTS_MOUNT,  /* bool; passed through to the mount */
	OPTS_ALWAYS, /* no member: always on */
	OPTS_FLAG,   /* bool; for the daemon */
	OPTS_CHOICE, /* const char *: the key of the row that was given last */
	OPTS_NUMBER, /* uint64_t, of the row's type */
	OPTS_WORD,   /* char *, owned: a word of the row's type */
	OPTS_TEXT,   /* char *, owned */
	OPTS_SPEC,   /* the same, a key of a sampling spec: checked with the
			 dataset */
	OPTS_STORAGE, /* a storage option, which <fs/source/local/options.h> checks;
			 no member of its own */
	OPTS_SUBSET, /* the same, or NAME:FILE, which may be given repeatedly */
};

struct opts_row {
	const char *key;
	enum opts_kind kind;
	size_t offset;
	struct typed type; /* with OPTS_SPEC: only for --help */
	const char *value; /* the value's name in --help; NULL: no value */
	/* Lines of a sentence; word_at()'s words replace an '@'. */
	const char *help;
};

/* Returns the row at an index; NULL past the end. */
const struct opts_row *opts_row_at(size_t i);

/* Returns the row of a key, which need not end with a NUL; NULL: there is
   none. */
const struct opts_row *opts_row_of(const char *key, size_t size);

/* Returns whether an option is one of mount(8) or fstab(5) that has no effect
   here. */
bool opts_is_ignored(const char *option, size_t size);

void *opts_member(const struct options *opts, const struct opts_row *row);

/* Returns whether the member is a char *, owned. */
bool opts_is_text(const struct opts_row *row);

#endif
