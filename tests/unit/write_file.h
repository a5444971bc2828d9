/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tests. */
#ifndef TESTS_UNIT_WRITE_FILE_H
#define TESTS_UNIT_WRITE_FILE_H

#include "tests/unit/t.h"

static inline void write_file(const char *path, const void *bytes, size_t size)
{
	FILE *f = fopen(path, "we");

	CHECK(f && fwrite(bytes, 1, size, f) == size && !fclose(f));
}

#endif
