/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled code, kept from one process to the next in a directory of the user,
 * one file per key. Its content is executed, so nothing is trusted. The
 * directory and the file must belong to the user, and no other user may be able
 * to write them. A file must be complete, with a valid checksum, and contain
 * the whole key, not only its hash. After any failure, code is compiled again.
 * NULL is a valid, empty cache.
 *
 * Thread-safe, and safe with any number of processes on any file system that
 * renames atomically.
 */
#ifndef LOADER_RUN_JIT_CODE_CACHE_H
#define LOADER_RUN_JIT_CODE_CACHE_H

#include <stddef.h>
#include <stdint.h>

struct cancel;
struct log;
struct code_cache;

/*
 * Opens a cache of `limit` bytes below $BETON_CACHE_DIR, else in betonfs below
 * $XDG_CACHE_HOME or ~/.cache, with a directory per `isa`. NULL: no usable
 * directory. A warning is logged if it is another user's, or if other users
 * could have written to it.
 */
struct code_cache *code_cache_open(const char *isa, uint64_t limit,
				   struct log *log);
void code_cache_close(struct code_cache *o);

/* Loads an object; the caller frees *bytes. -ENOENT: no trusted file. */
int code_cache_load(struct code_cache *o, const char *key, uint8_t **bytes,
		    size_t *size);

/*
 * Stores an object in place of any other with the key, and removes the least
 * recently used ones.
 */
int code_cache_store(struct code_cache *o, const char *key,
		     const uint8_t *bytes, size_t size);

/*
 * Takes the lock of a key. Its holder compiles the object, the others wait.
 * Returns a number for code_cache_unlock(), -ETIMEDOUT, or -ECANCELED. Any
 * other error means that there are no locks; then
 * each process compiles for itself.
 */
int code_cache_lock(struct code_cache *o, const char *key, int timeout_ms,
		    struct cancel *cancel);
/* Takes errors of code_cache_lock() too. */
void code_cache_unlock(int lock);

#endif
