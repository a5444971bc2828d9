/* SPDX-License-Identifier: Apache-2.0 */
/* Decompressed copies of files, without names, shared by the threads of an
   input. The last few are kept. */
#ifndef LOADER_TOOLS_INPUT_FOREIGN_UNPACKED_H
#define LOADER_TOOLS_INPUT_FOREIGN_UNPACKED_H

#include <pthread.h>

#include "loader/tools/input/input.h"

struct unpacked_copy;

struct unpacked {
	/* Guards the list. Held while a file is decompressed, because others
	   usually wait for the same file. */
	pthread_mutex_t lock;
	struct unpacked_copy *first; /* the one that was asked for last */
};

void unpacked_init(struct unpacked *u);
void unpacked_fini(struct unpacked *u);

/*
 * Returns a copy of the file `path`, which has the number `which`. The copy has
 * at most `most` bytes; 0: not known. The caller puts it back.
 */
int unpacked_get(struct unpacked *u, const char *path, uint64_t which,
		 uint64_t most, struct unpacked_copy **out,
		 struct input_error *error);
int unpacked_fd(const struct unpacked_copy *copy);
uint64_t unpacked_size(const struct unpacked_copy *copy);
/* Takes a pointer to NULL, too, and sets it to NULL. */
void unpacked_put(struct unpacked *u, struct unpacked_copy **copy);

/* Decompresses a block of at most `max` bytes to memory of the caller's, who
   frees it. */
int unpacked_block(const void *packed, uint64_t packed_size, uint64_t max,
		   uint8_t **out, uint64_t *size, struct input_error *error);

#endif
