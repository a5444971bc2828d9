/* SPDX-License-Identifier: Apache-2.0 */
/* What unit tests need and nothing more; alive under NDEBUG. */
#ifndef TESTS_UNIT_T_H
#define TESTS_UNIT_T_H

#include <stdio.h>
#include <stdlib.h>

/* Ends the program with status 1, and says where, unless `cond` is true. */
#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: CHECK(%s)\n", __FILE__,        \
				__LINE__, #cond);                              \
			exit(1);                                               \
		}                                                              \
	} while (0)

#endif
