/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies bytes that will not be read soon: past the CPU's caches, where the CPU
 * can. That saves reading the destination from memory first, and other data
 * stays in the caches.
 */
#ifndef FS_BASE_UTIL_STREAM_COPY_H
#define FS_BASE_UTIL_STREAM_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#	include <emmintrin.h>
#endif

/* If a destination is larger, its first bytes have left the caches before the
   last ones are written. */
enum { STREAM_COPY_MIN = 16 << 20 };

/* Bytes of a line of the cache. */
enum { STREAM_COPY_LINE = 64 };

#ifdef __SSE2__
enum { STREAM_COPY_IS_STREAM = 1 };

static inline void stream_copy_line(uint8_t *to, const uint8_t *from)
{
	const __m128i *in = (const __m128i *)from;
	const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
	const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
	__m128i *out = (__m128i *)to;

	_mm_stream_si128(out, a);
	_mm_stream_si128(out + 1, b);
	_mm_stream_si128(out + 2, c);
	_mm_stream_si128(out + 3, d);
}

/* After a later unlock, other threads see the bytes of stream_piece(). */
static inline void stream_fence(void)
{
	_mm_sfence();
}
#else
/* The copies below are those of memcpy(). */
enum { STREAM_COPY_IS_STREAM = 0 };

static inline void stream_fence(void)
{
}
#endif

/* Copies as memcpy() does, but call stream_fence() after the last piece. A fence
   waits for the memory, so one per piece would be slower than memcpy(). */
static inline void stream_piece(void *to, const void *from, size_t size)
{
	uint8_t *out = to;
	const uint8_t *in = from;
#ifdef __SSE2__
	size_t head = -(uintptr_t)out % STREAM_COPY_LINE;

	if (head < size) {
		if (head)
			memcpy(out, in, head);
		out += head;
		in += head;
		size -= head;
		for (; size >= STREAM_COPY_LINE; size -= STREAM_COPY_LINE) {
			stream_copy_line(out, in);
			out += STREAM_COPY_LINE;
			in += STREAM_COPY_LINE;
		}
	}
#endif
	if (size)
		memcpy(out, in, size);
}

/* Copies as memcpy() does. */
static inline void stream_copy(void *to, const void *from, size_t size)
{
	stream_piece(to, from, size);
	stream_fence();
}

#endif
