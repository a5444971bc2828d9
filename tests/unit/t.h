/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions and helpers of all unit tests. They work under NDEBUG, too. */
#ifndef TESTS_UNIT_T_H
#define TESTS_UNIT_T_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Prints the line and ends the program with status 1, unless `cond` is true. */
#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: CHECK(%s)\n", __FILE__,        \
				__LINE__, #cond);                              \
			exit(1);                                               \
		}                                                              \
	} while (0)

/* Returns whether a test can act as another user: it has the right, and the
   root directory lets other users in, which that of a chroot may not. Prints a
   line if not. */
static inline bool can_be_another_user(const char *test)
{
	struct stat root;

	if (!geteuid() && !stat("/", &root) && (root.st_mode & S_IXOTH))
		return true;
	printf("skip: %s: needs root, and a root directory for all users\n",
	       test);
	return false;
}

#endif
