/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of 4 KiB out of huge pages: address space is reserved once, and memory
 * is touched a chunk of 2 MiB at a time, in small pages where a whole chunk
 * would exceed the limit. What is resident never exceeds the limit, but for the
 * books: 160 bytes a chunk. After a lower limit is set, it falls as frames are
 * freed.
 *
 * Not thread-safe, but for arena_at(): the owner locks.
 */
#ifndef FS_CACHE_ARENA_H
#define FS_CACHE_ARENA_H

#include <stdint.h>

struct arena;

enum { ARENA_FRAME = 4096 };

/* The limit can be raised later, to all of the machine's memory. */
int arena_open(uint64_t limit_bytes, struct arena **out);
/* Takes NULL, and what is allocated with it. */
void arena_close(struct arena *arena);

/*
 * Ascending, neighbours where possible: all n, or -ENOSPC. Their content is
 * whatever it was.
 */
int arena_alloc(struct arena *arena, uint32_t *frames, uint32_t n);
void arena_free(struct arena *arena, const uint32_t *frames, uint32_t n);

/* From any thread; valid while the frame is allocated. */
void *arena_at(const struct arena *arena, uint32_t frame);

/* In bytes. Resident is what was touched and not given back, at most. */
uint64_t arena_used(const struct arena *arena);
uint64_t arena_limit(const struct arena *arena);
uint64_t arena_resident(const struct arena *arena);

/*
 * Whole frames, at most what was reserved. Gives back free frames beyond it at
 * once, and used ones as they are freed.
 */
void arena_set_limit(struct arena *arena, uint64_t bytes);

#endif
