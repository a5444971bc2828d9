/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/sized.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "fs/base/util/bytes.h"

int sized_take(void *to, size_t size, const void *from, size_t first)
{
	const char *bytes = from;
	size_t theirs;

	memcpy(&theirs, from, sizeof(theirs));
	if (theirs < first || theirs > SIZED_MAX || theirs % alignof(size_t))
		return -EINVAL;
	for (size_t i = size; i < theirs; i++) {
		if (bytes[i])
			return -EINVAL;
	}
	memset(to, 0, size);
	memcpy(to, from, min_u64(theirs, size));
	memcpy(to, &size, sizeof(size));
	return 0;
}

void sized_give(void *to, const void *from, size_t size)
{
	size_t theirs;

	memcpy(&theirs, to, sizeof(theirs));
	memset(to, 0, theirs);
	memcpy(to, from, min_u64(theirs, size));
	memcpy(to, &theirs, sizeof(theirs));
}
