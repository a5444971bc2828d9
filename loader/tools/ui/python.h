/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a module of the Python package of betonfs, for work that Python's
 * libraries do better. The interpreter is $BETON_PYTHON, or python3 in PATH. It
 * imports nothing from the working directory.
 *
 * If Python, the package in the version of this program, or a library is
 * missing, one line on standard error contains what to install. Other users
 * cannot read the arguments, because these may contain a URL with a secret.
 *
 * The functions set variables of the environment, so call them while no other
 * thread runs.
 */
#ifndef LOADER_TOOLS_UI_PYTHON_H
#define LOADER_TOOLS_UI_PYTHON_H

#include <stdio.h>
#include <sys/types.h>

#include "fs/base/util/log.h"

struct python_run {
	struct log *log;
	const char *program;	 /* "beton", for messages of Python */
	const char *need;	 /* the part that needs Python: "--html" */
	const char *module;	 /* "betonfs._gallery"; runs as __main__ */
	const char *const *args; /* sys.argv[1:], up to a NULL */
};

/* Replaces this process by the module. Returns only if that fails: -errno,
   logged. */
int python_exec(const struct python_run *run);

/*
 * Runs the module as a child, and writes its standard output to `out`. Waits
 * for its end. The caller checks `out` for errors of writing.
 *
 * Returns 0, or -errno if the child did not exit with status 0. It is logged,
 * or the child printed the reason.
 */
int python_print(const struct python_run *run, FILE *out);

/* The descriptor of a module that python_serve() runs. */
enum { PYTHON_SERVE_FD = 3 };

/* Runs the module as a child in a process group of its own, so that a terminal
   does not interrupt it, and gives it the descriptor `fd`. Returns -errno if
   the child cannot start; logged. */
int python_serve(const struct python_run *run, int fd, pid_t *pid);

#endif
