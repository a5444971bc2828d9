/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset in the page cache, which reads and keeps it in chunks. */
#ifndef FS_CACHE_FILE_H
#define FS_CACHE_FILE_H

#include "fs/dataset/dataset.h"

struct cache;
struct fill_target;

/* A dataset in the cache, in chunks of `per` neighbouring samples. */
struct cache_file {
	struct payloads payloads; /* first: how batches read through it */
	struct cache *cache;
	struct dataset *ds;
	struct fill_target *target; /* of its reads */
	uint32_t id;
	uint64_t per;
	uint64_t chunks;
};

/* The id's place in numbers that tell apart the chunks of all files. */
enum { CACHE_FILE_SHIFT = 56 };

/* Of no reader's future. Smaller is sooner. */
#define CACHE_NEVER UINT64_MAX

#endif
