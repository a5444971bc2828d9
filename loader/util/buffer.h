/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is grown but never shrinks: page-aligned, so that O_DIRECT and
   pinning can use it, and of huge pages where it is large. */
#ifndef LOADER_UTIL_BUFFER_H
#define LOADER_UTIL_BUFFER_H

#include <stdint.h>

struct buffer {
	uint8_t *bytes; /* NULL while capacity is 0 */
	uint64_t capacity;
};

/* Makes room for `size` bytes; the content is lost if it has to grow. */
int buffer_reserve(struct buffer *buffer, uint64_t size);
void buffer_fini(struct buffer *buffer);

#endif
