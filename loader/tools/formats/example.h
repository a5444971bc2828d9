/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The features of a tf.train.Example, in the wire format of protocol buffers.
 * Values are found where they are, so that large ones need not be read. Input
 * is hostile.
 */
#ifndef LOADER_TOOLS_FORMATS_EXAMPLE_H
#define LOADER_TOOLS_FORMATS_EXAMPLE_H

#include "loader/tools/formats/file.h"

enum { EXAMPLE_KEY_SIZE = 256 };

enum example_list {
	EXAMPLE_EMPTY, /* no list, or lists without values */
	EXAMPLE_BYTES,
	EXAMPLE_FLOATS,
	EXAMPLE_INTS,
};

/* Called for each feature and value; another value than 0 ends the parsing. */
struct example_sink {
	void *arg;
	int (*feature)(void *arg, const char *key);
	/* Values of the feature whose key came last. */
	int (*bytes)(void *arg, uint64_t off, uint64_t size);
	int (*real)(void *arg, float value);
	int (*integer)(void *arg, int64_t value);
};

/* Parses the Example at [off, off + size) of the window. -EBADMSG if it is
   none, -ENOTSUP for a SequenceExample, w->error, or the result of a function
   of the sink. */
int example_parse(struct window *w, uint64_t off, uint64_t size,
		  const struct example_sink *sink);

#endif
