/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of 4 KiB out of huge pages. Address space is reserved once. Memory is
 * touched 2 MiB at a time, or in small pages if 2 MiB more would exceed the
 * limit. Resident memory never exceeds the limit, except for bookkeeping: 160
 * bytes per 2 MiB. If the limit is lowered, resident memory shrinks as frames
 * are freed. Only arena_at() is thread-safe; the owner locks.
 */
#ifndef FS_DATA_CACHE_ARENA_H
#define FS_DATA_CACHE_ARENA_H

#include <stdint.h>

struct arena;

enum { ARENA_FRAME = 4096 };

/* The limit can be raised later, up to the machine's memory. */
int arena_open(uint64_t limit_bytes, struct arena **out);
/* Frees all frames with the arena. Takes NULL. */
void arena_close(struct arena *arena);

/* Allocates n frames or none (-ENOSPC): ascending, and neighbors where
   possible. Their content is undefined. */
int arena_alloc(struct arena *arena, uint32_t *frames, uint32_t n);
void arena_free(struct arena *arena, const uint32_t *frames, uint32_t n);

/* Returns the memory of a frame, valid while the frame is allocated. Any thread
   may call it. */
void *arena_at(const struct arena *arena, uint32_t frame);

/* These are in bytes. Resident memory is an upper bound: touched memory that
   was not returned to the kernel. */
uint64_t arena_used(const struct arena *arena);
uint64_t arena_limit(const struct arena *arena);
uint64_t arena_resident(const struct arena *arena);

/* Rounds down to whole frames, and to the reserved address space. Free
   frames beyond the limit return to the kernel at once, used ones as they
   are freed. */
void arena_set_limit(struct arena *arena, uint64_t bytes);

#endif
