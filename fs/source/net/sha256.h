/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), for signatures of requests:
   plain C, because the signed texts are short. */
#ifndef FS_SOURCE_NET_SHA256_H
#define FS_SOURCE_NET_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum {
	SHA256_SIZE = 32,
	SHA256_BLOCK = 64,
	SHA256_HEX_SIZE = 2 * SHA256_SIZE + 1,
};

/* A hash in the making. */
struct sha256 {
	uint32_t state[8];
	uint64_t size;
	uint8_t block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *data, size_t size);
/* Also clears the hash. */
void sha256_end(struct sha256 *hash, uint8_t out[SHA256_SIZE]);

/* The hash of all of `data`, as lower-case hexadecimal text. */
void sha256_hex(const void *data, size_t size, char out[SHA256_HEX_SIZE]);

void hmac_sha256(const void *key, size_t key_size, const void *data,
		 size_t size, uint8_t out[SHA256_SIZE]);

/* The text of a hash. */
void sha256_text(const uint8_t hash[SHA256_SIZE], char out[SHA256_HEX_SIZE]);

#endif
