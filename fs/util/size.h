/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as people write them: 4096, 512K, 512MiB, 2G. */
#ifndef FS_UTIL_SIZE_H
#define FS_UTIL_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Digits, and K, M, G or T for powers of 1024, with or without iB. False for
   anything else, and above 2^64 - 1. */
bool size_parse(const char *text, uint64_t *out);

#endif
