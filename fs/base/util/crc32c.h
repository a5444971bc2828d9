/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C (Castagnoli): polynomial 0x1edc6f41, reflected, as in iSCSI. Uses the
 * CPU's instructions if it has them (SSE 4.2 with PCLMULQDQ, or those of
 * ARMv8), and tables otherwise. Pure functions.
 */
#ifndef FS_BASE_UTIL_CRC32C_H
#define FS_BASE_UTIL_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Continues from `crc`, which is 0 at the start. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t size);

/* Continues three CRCs over `size` bytes each, in about the time of one. */
void crc32c_three(uint32_t crc[3], const uint8_t *const bytes[3], size_t size);

/* Computes crc32c() by tables alone. */
uint32_t crc32c_by_table(uint32_t crc, const void *bytes, size_t size);

/*
 * If one flipped bit among `size` bytes explains why their CRC is `found` and
 * not `expected`, sets *byte and *bit (0 is the lowest) to its position. Among
 * other damages of 64 KiB, one in 8000 looks like one flipped bit.
 */
bool crc32c_flipped_bit(uint32_t found, uint32_t expected, size_t size,
			size_t *byte, unsigned *bit);

#endif
