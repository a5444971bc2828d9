/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sizes of the parts of a multipart upload whose size is not known yet. S3
 * takes 10,000 parts of 5 MiB to 5 GiB, of which only the last may be smaller.
 * Small parts need little memory, so they begin with 8 MiB, and double after
 * each 1000 parts. Therefore objects of more than 5 TiB fit. Pure functions.
 */
#ifndef FS_SOURCE_UPLOAD_PARTS_H
#define FS_SOURCE_UPLOAD_PARTS_H

#include <stdint.h>

enum {
	PARTS_MAX = 10000,
	PARTS_SMALLEST = 5 << 20,
	PARTS_FIRST = 8 << 20,
	/* The parts of the front; the front is as large as the object at most.
	 */
	PARTS_FRONT_MAX = 200,
};

/* Returns the size of the i-th part of bytes that come one after the other. */
uint64_t parts_size(unsigned i);

/* Returns how many of such parts should be on the way at once: more small ones,
   because each takes its turn on a connection. */
unsigned parts_window(uint64_t size);

/* Returns the number of parts that are reserved for a front of at most `size`
   bytes. */
unsigned parts_of_front(uint64_t size);

/* Returns the size of all parts of an object of a known size, which are equal
   except for the last one. */
uint64_t parts_equal(uint64_t size);

#endif
