/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset in the page cache, which reads and holds it in chunks. Header
   only. */
#ifndef FS_DATA_CACHE_FILE_H
#define FS_DATA_CACHE_FILE_H

#include <stdatomic.h>

#include "fs/data/dataset/dataset.h"

struct cache;
struct fill_target;

/* A dataset in the cache, in chunks of `per` neighboring samples. */
struct cache_file {
	struct payloads payloads; /* first member: the interface of batches */
	struct cache *cache;
	struct dataset *ds;
	struct fill_target *target; /* for its reads */
	atomic_uint reads;	    /* unfinished ones */
	uint32_t id;
	uint64_t per;
	uint64_t chunks;
};

/* The lowest bit of the id in numbers that identify a chunk of any file.
 */
enum { CACHE_FILE_SHIFT = 56 };

/* The next use of a chunk that no reader needs; sooner uses are smaller. */
#define CACHE_NEVER UINT64_MAX

#endif
