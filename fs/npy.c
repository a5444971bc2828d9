/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/npy.h"

#include <stdio.h>
#include <string.h>

#include "fs/bytes.h"

enum { PREFIX = 10, ALIGN = 64 };

size_t npy_header(char out[NPY_HEADER_MAX], const char *dtype, uint32_t ndim,
		  const uint64_t *shape)
{
	size_t used = PREFIX, total;

	used += (size_t)sprintf(
		out + used,
		"{'descr': '%s', 'fortran_order': False, 'shape': (", dtype);
	for (uint32_t i = 0; i < ndim; i++)
		used += (size_t)sprintf(out + used, "%llu,%s",
					(unsigned long long)shape[i],
					i + 1 < ndim ? " " : "");
	used += (size_t)sprintf(out + used, "), }");
	total = align_up(used + 1, ALIGN);
	memset(out + used, ' ', total - used);
	out[total - 1] = '\n';
	memcpy(out, "\x93NUMPY\x01\x00", 8);
	store16(out + 8, (uint16_t)(total - PREFIX));
	return total;
}
