/* SPDX-License-Identifier: Apache-2.0 */
/* What stands before the scan of a JPEG that baseline.c can decode. */
#ifndef LOADER_BASELINE_HEADER_H
#define LOADER_BASELINE_HEADER_H

#include <stddef.h>
#include <stdint.h>

struct baseline_image;

/*
 * Takes only what leaves nothing open: segments that follow each other without
 * a byte between them, each with the length that it must have, every table
 * there. NULL, or why not; *out is written on success only.
 */
const char *baseline_header_parse(const uint8_t *bytes, size_t size,
				  struct baseline_image *out);

#endif
