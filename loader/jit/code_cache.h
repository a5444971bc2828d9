/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled code, kept from one process to the next: a directory of the user's,
 * one file per key. What it gives will be run, so nothing is believed: the
 * directory and the file must belong to the user and be writable by nobody
 * else, and a file must be whole, by a sum over it, and hold the very key that
 * is asked for, not just its hash. Everything that goes wrong only means that
 * code is compiled again; NULL is a valid cache with nothing in it.
 *
 * Thread-safe, and safe with any number of processes on any file system that
 * renames atomically.
 */
#ifndef LOADER_JIT_CODE_CACHE_H
#define LOADER_JIT_CODE_CACHE_H

#include <stddef.h>
#include <stdint.h>

struct log;
struct objects;

/*
 * Room for `limit` bytes below $BETON_CACHE_DIR, else in betonfs below
 * $XDG_CACHE_HOME or ~/.cache, with a directory per `isa`. NULL: there is none
 * that can be used; a warning says so where somebody else could have written.
 */
struct objects *objects_open(const char *isa, uint64_t limit, struct log *log);
void objects_close(struct objects *o);

/* The caller frees *bytes. -ENOENT: there is nothing to be trusted. */
int objects_load(struct objects *o, const char *key, uint8_t **bytes,
		 size_t *size);

/* Replaces what there is, and removes what was not used longest. */
int objects_store(struct objects *o, const char *key, const uint8_t *bytes,
		  size_t size);

/*
 * Who holds the lock of a key makes its object, the others wait. Returns a
 * descriptor to be closed, -ETIMEDOUT, -ECANCELED once `cancel_fd` is readable,
 * or another error where there are no locks: then everybody works alone.
 */
int objects_lock(struct objects *o, const char *key, int timeout_ms,
		 int cancel_fd);

#endif
