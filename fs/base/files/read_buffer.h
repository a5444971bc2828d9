/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for large reads of files. It begins at a line of the CPU's cache,
 * because some CPUs copy from the kernel to other addresses at less than half
 * the speed; large blocks of malloc() begin 16 bytes behind a page.
 */
#ifndef FS_BASE_FILES_READ_BUFFER_H
#define FS_BASE_FILES_READ_BUFFER_H

#include <stdlib.h>

#include "fs/base/util/bytes.h"

enum { READ_BUFFER_ALIGN = 64 };

/* Returns NULL if memory is short. Free it by free(). */
static inline void *read_buffer_alloc(size_t size)
{
	size_t room = align_up(size, READ_BUFFER_ALIGN);

	return room < size ? NULL : aligned_alloc(READ_BUFFER_ALIGN, room);
}

#endif
