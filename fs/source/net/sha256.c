/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/net/sha256.h"

#include <string.h>

#include "fs/base/util/bytes.h"

/* The first 32 bits of the fractional parts of the cube roots of the first 64
   primes. */
static const uint32_t round_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
	0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
	0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
	0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

static uint32_t rotate(uint32_t v, unsigned n)
{
	return v >> n | v << (32 - n);
}

/* Extends the 16 words of a block to 64. */
static void schedule(const uint8_t *block, uint32_t w[64])
{
	uint32_t a, b;

	for (size_t i = 0; i < 16; i++)
		w[i] = __builtin_bswap32(load32(block + 4 * i));
	for (size_t i = 16; i < 64; i++) {
		a = w[i - 15];
		b = w[i - 2];
		w[i] = w[i - 16] + w[i - 7] +
		       (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
		       (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
}

static void add_block(uint32_t state[8], const uint8_t *block)
{
	uint32_t w[64], s[8], t1, t2;

	schedule(block, w);
	memcpy(s, state, sizeof(s));
	for (size_t i = 0; i < 64; i++) {
		t1 = s[7] + round_constants[i] + w[i] +
		     (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
		     ((s[4] & s[5]) ^ (~s[4] & s[6]));
		t2 = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
		     ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
		memmove(s + 1, s, 7 * sizeof(*s));
		s[4] += t1;
		s[0] = t1 + t2;
	}
	for (size_t i = 0; i < 8; i++)
		state[i] += s[i];
	explicit_bzero(w, sizeof(w));
}

void sha256_init(struct sha256 *hash)
{
	*hash = (struct sha256){
		.state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
			   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 },
	};
}

void sha256_add(struct sha256 *hash, const void *data, size_t size)
{
	const uint8_t *p = data;
	size_t used = hash->size % SHA256_BLOCK, n;

	hash->size += size;
	while (size) {
		n = min_u64(size, SHA256_BLOCK - used);
		memcpy(hash->block + used, p, n);
		p += n;
		size -= n;
		used += n;
		if (used == SHA256_BLOCK) {
			add_block(hash->state, hash->block);
			used = 0;
		}
	}
}

void sha256_end(struct sha256 *hash, uint8_t out[SHA256_SIZE])
{
	static const uint8_t padding[SHA256_BLOCK] = { 0x80 };
	uint64_t bits = __builtin_bswap64(hash->size * 8);
	size_t used = hash->size % SHA256_BLOCK;

	sha256_add(hash, padding, (used < 56 ? 56 : 120) - used);
	sha256_add(hash, &bits, sizeof(bits));
	for (size_t i = 0; i < 8; i++)
		store32(out + 4 * i, __builtin_bswap32(hash->state[i]));
	explicit_bzero(hash, sizeof(*hash));
}

void sha256_text(const uint8_t hash[SHA256_SIZE], char out[SHA256_HEX_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < SHA256_SIZE; i++) {
		*out++ = digits[hash[i] >> 4];
		*out++ = digits[hash[i] & 15];
	}
	*out = '\0';
}

void sha256_hex(const void *data, size_t size, char out[SHA256_HEX_SIZE])
{
	uint8_t sum[SHA256_SIZE];
	struct sha256 hash;

	sha256_init(&hash);
	sha256_add(&hash, data, size);
	sha256_end(&hash, sum);
	sha256_text(sum, out);
}

/* Hashes a key that is padded to a block and XORed with `pad`, and then data.
 */
static void keyed(const uint8_t key[SHA256_BLOCK], uint8_t pad,
		  const void *data, size_t size, uint8_t out[SHA256_SIZE])
{
	uint8_t block[SHA256_BLOCK];
	struct sha256 hash;

	for (size_t i = 0; i < SHA256_BLOCK; i++)
		block[i] = key[i] ^ pad;
	sha256_init(&hash);
	sha256_add(&hash, block, sizeof(block));
	sha256_add(&hash, data, size);
	sha256_end(&hash, out);
	explicit_bzero(block, sizeof(block));
}

void hmac_sha256(const void *key, size_t key_size, const void *data,
		 size_t size, uint8_t out[SHA256_SIZE])
{
	uint8_t block[SHA256_BLOCK] = { 0 };
	struct sha256 hash;

	if (key_size > SHA256_BLOCK) {
		sha256_init(&hash);
		sha256_add(&hash, key, key_size);
		sha256_end(&hash, block);
	} else {
		memcpy(block, key, key_size);
	}
	keyed(block, 0x36, data, size, out);
	keyed(block, 0x5c, out, SHA256_SIZE, out);
	explicit_bzero(block, sizeof(block));
}
