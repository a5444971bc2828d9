/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of members of a tar archive, POSIX ustar. */
#ifndef FS_NAMESPACE_TAR_H
#define FS_NAMESPACE_TAR_H

#include <stdint.h>

enum {
	TAR_BLOCK = 512, /* a header's size; contents are padded to it */
	TAR_NAME_MAX = 99,
	TAR_END_SIZE = 2 * TAR_BLOCK, /* zeros at the end of an archive */
};

/* A header has room for so large a file and no larger. */
#define TAR_SIZE_MAX (((uint64_t)1 << 33) - 1)

/* A regular file that everybody may read and root owns. A time before 1970 or
   after 2242 has no place in a header and becomes the nearest that has. */
void tar_header(char out[TAR_BLOCK], const char *name, uint64_t size,
		int64_t time);

#endif
