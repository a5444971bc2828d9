/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's flags of the memory at an address. */
#ifndef TESTS_UNIT_VM_FLAGS_H
#define TESTS_UNIT_VM_FLAGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/t.h"

/* Whether the mapping has this flag of two letters, as in proc(5). */
static inline bool vm_has_flag(const void *at, const char *flag)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long first, end;
	bool is_inside = false, has = false;
	char line[512];

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
			is_inside =
				first <= (uintptr_t)at && (uintptr_t)at < end;
		else if (is_inside && !strncmp(line, "VmFlags:", 8))
			has = strstr(line, flag);
	}
	fclose(f);
	return has;
}

#endif
