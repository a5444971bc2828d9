/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unaligned little-endian loads and stores, and arithmetic that cannot wrap.
 * Every sum or product of numbers that come from a file goes through here.
 */
#ifndef FS_BASE_UTIL_BYTES_H
#define FS_BASE_UTIL_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#	error "only little-endian machines are supported"
#endif

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline uint16_t load16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t load32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t load64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline void store16(void *p, uint16_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline void store32(void *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline void store64(void *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

/* Returns whether the range [off, off + len) lies in [0, size). */
static inline bool range_ok(uint64_t off, uint64_t len, uint64_t size)
{
	return off <= size && len <= size - off;
}

/* Sets *out = a + b. Returns false, with *out untouched, if the sum wraps. */
static inline bool add_ok(uint64_t a, uint64_t b, uint64_t *out)
{
	uint64_t v;

	if (__builtin_add_overflow(a, b, &v))
		return false;
	*out = v;
	return true;
}

static inline bool mul_ok(uint64_t a, uint64_t b, uint64_t *out)
{
	uint64_t v;

	if (__builtin_mul_overflow(a, b, &v))
		return false;
	*out = v;
	return true;
}

/* The next multiple of `to`, a power of two. The caller rules out wrapping. */
static inline uint64_t align_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) & ~(to - 1);
}

/* a / b, rounded up; both are sizes of images, so the sum cannot wrap. */
static inline uint32_t div_round_up(uint32_t a, uint32_t b)
{
	return (a + b - 1) / b;
}

static inline bool is_power_of_two(uint64_t v)
{
	return v && !(v & (v - 1));
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif
