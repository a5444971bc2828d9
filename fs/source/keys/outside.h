/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that the search for credentials takes from outside: variables,
 * files, programs, HTTP and the time. A process that cannot open files, as a
 * daemon in its sandbox, gives functions of its own.
 */
#ifndef FS_SOURCE_KEYS_OUTSIDE_H
#define FS_SOURCE_KEYS_OUTSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "fs/base/util/log.h"

enum {
	OUTSIDE_TEXT_MAX = 1 << 20, /* of a file, or of a program's output */
	OUTSIDE_PROGRAM_MS = 60 * 1000,
	OUTSIDE_WHY_SIZE = 256,
};

/* A small request over HTTP, and its answer. */
struct outside_fetch {
	const char *method; /* "GET", "PUT", "POST" */
	const char *url;
	/* Header lines, "Name: value", for this host only: secrets. */
	const char *const *lines;
	size_t num_lines;
	const char *body; /* NULL: none */
	size_t body_size;
	unsigned timeout_ms;
	bool direct; /* through no proxy, and without redirects */
	char *buf;   /* the body of the answer */
	size_t size; /* of buf */
	/* The outcome. */
	size_t got;
	int status;
	char why[OUTSIDE_WHY_SIZE]; /* of a failure */
};

struct outside {
	/* NULL: the variable is not set. */
	const char *(*environment)(void *arg, const char *name);
	/* Returns the home directory of the user if HOME is not set, which the
	   caller frees; NULL: there is none. May be NULL. */
	char *(*home)(void *arg);
	/* Sets *text to a text that ends with a NUL, of up to OUTSIDE_TEXT_MAX
	   bytes; the caller frees it. May be called on any thread. The errors
	   of which outside_why() has a text, and others. */
	int (*read)(void *arg, const char *path, char **text, size_t *size);
	/* Runs a command line, and sets *text to what it prints. Ends it if
	 *stop becomes true. */
	int (*run)(void *arg, const char *command, const bool *stop,
		   char **text, size_t *size);
	/* Returns 0, whatever the status is, or -errno and `why`.
	   -ECONNREFUSED, -EHOSTUNREACH, -ENETUNREACH, -ENXIO: there is no such
	   server. NULL: this process has no network. */
	int (*fetch)(void *fetch_arg, struct outside_fetch *fetch);
	time_t (*now)(void *arg);
	unsigned pause_ms; /* before a second attempt; 0: OUTSIDE_PAUSE_MS */
	void *arg;
	void *fetch_arg;
};

enum { OUTSIDE_PAUSE_MS = 1000 };

/* Functions of this process: secure_getenv(), files and programs. It lacks
   `fetch`. */
extern const struct outside outside_own;

/* A variable that is set and not empty, or NULL. */
const char *outside_environment(const struct outside *outside,
				const char *name);

/* Reads a file. A "~/" at the beginning of the path is the home directory. */
int outside_read(const struct outside *outside, const char *path, char **text,
		 size_t *size);

/* Returns a text for a message about a failed outside_read(). */
const char *outside_why(int error);

#endif
