/* SPDX-License-Identifier: Apache-2.0 */
/* One source of several, one after the other. */
#ifndef FS_SOURCE_LOCAL_JOIN_H
#define FS_SOURCE_LOCAL_JOIN_H

#include "fs/source/local/source.h"

/*
 * Makes one source of several: the first byte of source i is at bases[i], which
 * ascend by at least its size and are multiples of SOURCE_ALIGN. The gaps
 * between them, of less than SOURCE_ALIGN bytes, read as zeros. Its owner and
 * mode admit users who may read all of them. The sources remain the caller's,
 * and must outlive it. -ENOMEM.
 */
int source_join(struct source *const *sources, const uint64_t *bases, size_t n,
		const char *path, struct source **out);

#endif
