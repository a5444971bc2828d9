/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/stuffing.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* Copies bytes up to the first 0xff, or all. Returns their number. */
typedef size_t copy_fn(const uint8_t *bytes, size_t size, uint8_t *out);

INLINE size_t copy_plain(const uint8_t *bytes, size_t size, uint8_t *out)
{
	const uint8_t *ff = memchr(bytes, 0xff, size);
	size_t n = ff ? (size_t)(ff - bytes) : size;

	memcpy(out, bytes, n);
	return n;
}

INLINE size_t copy_data(const uint8_t *bytes, size_t size, uint8_t *out,
			size_t *n, copy_fn *copy)
{
	size_t at = 0;
	size_t to = 0;

	while (at < size) {
		size_t run = copy(bytes + at, size - at, out + to);

		at += run;
		to += run;
		if (size - at < 2 || bytes[at + 1])
			break;
		out[to++] = 0xff;
		at += 2;
	}
	*n = to;
	return at;
}

#ifdef __x86_64__
#	include <immintrin.h>

#	define AVX2 __attribute__((target("avx2,bmi")))

/*
 * About one byte of a hundred is 0xff, so calls of functions take longer than
 * copying.
 */
AVX2 INLINE size_t copy_avx2(const uint8_t *bytes, size_t size, uint8_t *out)
{
	const __m256i ff = _mm256_set1_epi8(-1);
	size_t at = 0;

	for (; size - at >= sizeof(ff); at += sizeof(ff)) {
		__m256i v = _mm256_loadu_si256((const void *)(bytes + at));
		__m256i equal = _mm256_cmpeq_epi8(v, ff);
		uint32_t which = (uint32_t)_mm256_movemask_epi8(equal);

		_mm256_storeu_si256((void *)(out + at), v);
		if (which)
			return at + (size_t)__builtin_ctz(which);
	}
	return at + copy_plain(bytes + at, size - at, out + at);
}

AVX2 static size_t remove_avx2(const uint8_t *bytes, size_t size, uint8_t *out,
			       size_t *n)
{
	return copy_data(bytes, size, out, n, copy_avx2);
}
#endif

size_t stuffing_remove(const uint8_t *bytes, size_t size, uint8_t *out,
		       size_t *n)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi"))
		return remove_avx2(bytes, size, out, n);
#endif
	return copy_data(bytes, size, out, n, copy_plain);
}

size_t stuffing_fill(const uint8_t *bytes, size_t size)
{
	size_t n = 0;

	while (size - n >= 2 && bytes[n] == 0xff && bytes[n + 1] == 0xff)
		n++;
	return n;
}
