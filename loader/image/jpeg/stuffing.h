/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the data of a JPEG's scan, 0xff begins a marker. An encoder stuffs a zero
 * byte after each 0xff that is data, and may fill with more 0xff before any
 * marker (ITU-T T.81, B.1.1.2).
 */
#ifndef LOADER_IMAGE_JPEG_STUFFING_H
#define LOADER_IMAGE_JPEG_STUFFING_H

#include <stddef.h>
#include <stdint.h>

/*
 * Copies data up to the first marker, or all of it, without the stuffing. `out`
 * has room for `size` bytes, of which those past the result may be changed, too.
 * Returns the number of bytes read, and sets *n to those written.
 */
size_t stuffing_remove(const uint8_t *bytes, size_t size, uint8_t *out,
		       size_t *n);

/* Returns the number of fill bytes before a marker at the beginning. */
size_t stuffing_fill(const uint8_t *bytes, size_t size);

#endif
