/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's C compiler: $BETON_CC, or the first of cc, gcc and clang on the
 * PATH. Run without a shell, with a time limit, in a private temporary directory
 * (build_dir.h) that is gone afterwards. It runs in a process group of its own,
 * which ends with it.
 */
#ifndef LOADER_RUN_JIT_COMPILER_H
#define LOADER_RUN_JIT_COMPILER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COMPILER_FLAGS_MAX = 32 };

struct compiler {
	char path[PATH_MAX]; /* absolute */
	/* Path, size and time of the compiler's file, which identify it. Asking
	   the compiler for its version would cost every start some 20 ms, and
	   an update changes the file too. */
	char identity[PATH_MAX + 64];
};

/* -ENOENT: there is none. */
int compiler_find(struct compiler *out);

struct cancel;

struct compiler_job {
	const char *source;
	const char *const *isa_flags; /* NULL ends */
	bool is_user;		      /* may call functions of the C library */
	struct cancel *cancel;	      /* NULL: never */
	int limit_ms;
};

/*
 * All arguments but the files, for cache keys. `out` has COMPILER_FLAGS_MAX
 * places.
 */
void compiler_flags(const struct compiler_job *job, const char **out);

/*
 * Compiles source to a shared object. -EINVAL: the compiler refuses,
 * -ETIMEDOUT, -ECANCELED, or a system error; then *messages, if not NULL, is
 * the compiler's output. The caller frees both.
 */
int compiler_run(const struct compiler *c, const struct compiler_job *job,
		 uint8_t **object, size_t *size, char **messages);

#endif
