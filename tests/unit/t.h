/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions and helpers of all unit tests. They work under NDEBUG, too. */
#ifndef TESTS_UNIT_T_H
#define TESTS_UNIT_T_H

#include <stdio.h>
#include <stdlib.h>

/* Prints the line and ends the program with status 1, unless `cond` is true. */
#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: CHECK(%s)\n", __FILE__,        \
				__LINE__, #cond);                              \
			exit(1);                                               \
		}                                                              \
	} while (0)

#endif
