/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the length and the CRC of a batch file right, which no mutation would
   find. */
#ifndef TESTS_FUZZ_SEAL_H
#define TESTS_FUZZ_SEAL_H

#include "beton/batch.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/crc32c.h"

static inline void seal_batch(uint8_t *bytes, size_t size)
{
	struct beton_batch_header h;

	if (size < sizeof(h))
		return;
	/* The bytes may not be aligned. */
	memcpy(&h, bytes, sizeof(h));
	h.file_size = size;
	h.crc = 0;
	memcpy(bytes, &h, sizeof(h));
	if (h.spec_off < sizeof(h) || !range_ok(h.spec_off, h.spec_size, size))
		return;
	h.crc = crc32c(0, bytes, h.spec_off + h.spec_size);
	memcpy(bytes, &h, sizeof(h));
}

#endif
