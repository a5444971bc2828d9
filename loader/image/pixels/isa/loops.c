/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/pixels/loops.h"

#include <string.h>
#ifdef __AVX2__
#	include <immintrin.h>
#endif

#include "loader/image/pixels/byte_map.h"
#include "loader/util/byte16.h"

enum { LOT = 32 };

static inline uint8_t blended(float v, float base, float factor)
{
	v = base + factor * (v - base);
	v = v > 0 ? v : 0;
	return (uint8_t)(int)(v < 255 ? v : 255);
}

static void blend(uint8_t *restrict bytes, size_t count, float base,
		  float factor)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = blended(bytes[i], base, factor);
}

static void blend_bytes(uint8_t *restrict bytes, const uint8_t *restrict base,
			size_t count, float factor)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = blended(bytes[i], base[i], factor);
}

/* Planes of LOT pixels. */
struct loops_lot {
	uint8_t of[3][LOT];
};

static inline void lot_load(struct loops_lot *lot, const uint8_t *p)
{
	for (size_t i = 0; i < LOT; i += BYTE16) {
		byte16 r, g, b;

		byte16_load_rgb(p + 3 * i, &r, &g, &b);
		byte16_store(lot->of[0] + i, r);
		byte16_store(lot->of[1] + i, g);
		byte16_store(lot->of[2] + i, b);
	}
}

static inline void lot_store(const struct loops_lot *lot, uint8_t *p)
{
	for (size_t i = 0; i < LOT; i += BYTE16)
		byte16_store_rgb(p + 3 * i, byte16_load(lot->of[0] + i),
				 byte16_load(lot->of[1] + i),
				 byte16_load(lot->of[2] + i));
}

static inline unsigned gray_of(unsigned r, unsigned g, unsigned b)
{
	return (19595 * r + 38470 * g + 7471 * b + 32768) >> 16;
}

static void blend_gray_lot(uint8_t *p, float factor)
{
	struct loops_lot lot;

	lot_load(&lot, p);
	for (size_t i = 0; i < LOT; i++) {
		float gray = (float)(int)gray_of(lot.of[0][i], lot.of[1][i],
						 lot.of[2][i]);

		for (unsigned c = 0; c < 3; c++)
			lot.of[c][i] = blended(lot.of[c][i], gray, factor);
	}
	lot_store(&lot, p);
}

static void blend_gray(uint8_t *pixels, size_t count, float factor)
{
	uint8_t rest[3 * LOT] = { 0 };

	for (; count >= LOT; count -= LOT, pixels += 3 * LOT)
		blend_gray_lot(pixels, factor);
	if (!count)
		return;
	memcpy(rest, pixels, 3 * count);
	blend_gray_lot(rest, factor);
	memcpy(pixels, rest, 3 * count);
}

static uint32_t gray_sum_lot(const uint8_t *p)
{
	struct loops_lot lot;
	uint32_t sum = 0;

	lot_load(&lot, p);
	for (size_t i = 0; i < LOT; i++)
		sum += gray_of(lot.of[0][i], lot.of[1][i], lot.of[2][i]);
	return sum;
}

static uint64_t gray_sum(const uint8_t *p, size_t count)
{
	uint64_t sum = 0;

	for (; count >= LOT; count -= LOT, p += 3 * LOT)
		sum += gray_sum_lot(p);
	for (size_t i = 0; i < 3 * count; i += 3)
		sum += gray_of(p[i], p[i + 1], p[i + 2]);
	return sum;
}

BYTE16_INLINE byte16 chosen(byte16 where, byte16 a, byte16 b)
{
	return (a & where) | (b & ~where);
}

static void extremes(const uint8_t *p, size_t count, struct pixel_extremes *e)
{
	enum { VECTORS = EXTREMES / BYTE16 };
	byte16 low[VECTORS], high[VECTORS];
	size_t n = 3 * count, i = 0;

	memcpy(low, e->low, EXTREMES);
	memcpy(high, e->high, EXTREMES);
	for (; i + EXTREMES <= n; i += EXTREMES) {
		for (size_t k = 0; k < VECTORS; k++) {
			byte16 v = byte16_load(p + i + BYTE16 * k);

			low[k] = chosen((byte16)(v < low[k]), v, low[k]);
			high[k] = chosen((byte16)(v > high[k]), v, high[k]);
		}
	}
	memcpy(e->low, low, EXTREMES);
	memcpy(e->high, high, EXTREMES);
	for (size_t k = 0; i + k < n; k++) {
		e->low[k] = p[i + k] < e->low[k] ? p[i + k] : e->low[k];
		e->high[k] = p[i + k] > e->high[k] ? p[i + k] : e->high[k];
	}
}

static void count_pixels(const uint8_t *p, size_t count,
			 struct pixel_counts *counts)
{
	for (size_t i = 0; i < 3 * count; i += 3) {
		counts->of[0][p[i]]++;
		counts->of[1][p[i + 1]]++;
		counts->of[2][p[i + 2]]++;
	}
}

/* --- maps of bytes --- */

/* As wide as one register. */
#ifdef __AVX2__
enum { WIDE = 32 };
#else
enum { WIDE = 16 };
#endif

typedef uint8_t wide_bytes __attribute__((vector_size(WIDE)));
typedef uint16_t wide_words __attribute__((vector_size(WIDE)));
typedef int16_t wide_signed __attribute__((vector_size(WIDE)));

/*
 * The map of words below 256. A product of 32 bits is made of three of 16:
 * floor((256 a + b) / 65536) is floor((a + floor(b / 256)) / 256).
 */
BYTE16_INLINE wide_words scale_words(wide_words v, const struct byte_map *m)
{
	const uint32_t part = m->part, add = m->add_part;
	wide_words all = v * (uint16_t)(part & 255) + (uint16_t)(add & 255);
	wide_signed scaled;

	all = v * (uint16_t)(part >> 8 & 255) + (uint16_t)(add >> 8 & 255) +
	      (all >> 8);
	all = v * (uint16_t)(part >> 16) + (uint16_t)(add >> 16) + (all >> 8);
	all >>= 8;
	scaled = (wide_signed)(v * m->whole + all) + m->add;
	scaled &= scaled > 0;
	return ((wide_words)scaled | (wide_words)(scaled > 255)) & 255;
}

/* Those at even places and those at odd places, of either byte order. */
BYTE16_INLINE wide_bytes scale_bytes(wide_bytes v, const struct byte_map *m)
{
	wide_words low = scale_words((wide_words)v & 255, m);
	wide_words high = scale_words((wide_words)v >> 8, m);

	return (wide_bytes)(low | high << 8);
}

BYTE16_INLINE wide_bytes map_bytes(wide_bytes v, const struct byte_map *m,
				   enum byte_map_kind kind)
{
	switch (kind) {
	case BYTE_MAP_BITS:
		return (v & m->keep) ^ m->flip;
	case BYTE_MAP_FLIP:
		return v ^ (wide_bytes)(v >= m->from);
	default:
		return scale_bytes(v, m);
	}
}

BYTE16_INLINE void map_all(struct byte_map m, enum byte_map_kind kind,
			   const uint8_t *in, size_t count, uint8_t *out)
{
	size_t i = 0;

	for (; i + WIDE <= count; i += WIDE) {
		wide_bytes v;

		memcpy(&v, in + i, WIDE);
		v = map_bytes(v, &m, kind);
		memcpy(out + i, &v, WIDE);
	}
	for (; i < count; i++)
		out[i] = byte_map_value(&m, kind, in[i]);
}

#ifdef __AVX2__
/*
 * A register has a row of 16 entries. The upper bits of a value choose the row:
 * 16 is subtracted for each row, and what is not below 16 then has its
 * uppermost bit set by a sum that saturates, for which a shuffle gives 0.
 */
static size_t look_up_wide(const uint8_t table[256], const uint8_t *in,
			   size_t count, uint8_t *out)
{
	__m256i rows[16];
	size_t i = 0;

	for (int k = 0; k < 16; k++)
		rows[k] = _mm256_broadcastsi128_si256(
			_mm_loadu_si128((const __m128i *)(table + 16 * k)));
	for (; i + WIDE <= count; i += WIDE) {
		__m256i v = _mm256_loadu_si256((const __m256i *)(in + i));
		__m256i all = _mm256_setzero_si256();

		for (int k = 0; k < 16; k++) {
			__m256i at =
				_mm256_adds_epu8(v, _mm256_set1_epi8(0x70));

			all = _mm256_or_si256(all,
					      _mm256_shuffle_epi8(rows[k], at));
			v = _mm256_sub_epi8(v, _mm256_set1_epi8(16));
		}
		_mm256_storeu_si256((__m256i *)(out + i), all);
	}
	return i;
}
#else
static size_t look_up_wide(const uint8_t table[256], const uint8_t *in,
			   size_t count, uint8_t *out)
{
	(void)table;
	(void)in;
	(void)count;
	(void)out;
	return 0;
}
#endif

static void look_up(const uint8_t table[256], const uint8_t *in, size_t count,
		    uint8_t *out)
{
	for (size_t i = look_up_wide(table, in, count, out); i < count; i++)
		out[i] = table[in[i]];
}

static void map(const struct byte_map *m, const uint8_t *in, size_t count,
		uint8_t *out)
{
	switch (m->kind) {
	case BYTE_MAP_SAME:
		memmove(out, in, count);
		break;
	case BYTE_MAP_BITS:
		map_all(*m, BYTE_MAP_BITS, in, count, out);
		break;
	case BYTE_MAP_FLIP:
		map_all(*m, BYTE_MAP_FLIP, in, count, out);
		break;
	case BYTE_MAP_SCALE:
		map_all(*m, BYTE_MAP_SCALE, in, count, out);
		break;
	default:
		look_up(m->table, in, count, out);
	}
}

/* Pixels whose planes are mapped at a time. */
enum { PLANE = 512 };

static void map_planes(const struct byte_map *maps, uint8_t *p, size_t count)
{
	uint8_t plane[3][PLANE];
	size_t whole = count / BYTE16 * BYTE16;

	for (size_t x = 0; x < whole; x += BYTE16) {
		byte16 r, g, b;

		byte16_load_rgb(p + 3 * x, &r, &g, &b);
		byte16_store(plane[0] + x, r);
		byte16_store(plane[1] + x, g);
		byte16_store(plane[2] + x, b);
	}
	for (unsigned c = 0; c < 3; c++)
		map(&maps[c], plane[c], whole, plane[c]);
	for (size_t x = 0; x < whole; x += BYTE16)
		byte16_store_rgb(p + 3 * x, byte16_load(plane[0] + x),
				 byte16_load(plane[1] + x),
				 byte16_load(plane[2] + x));
	for (size_t i = 3 * whole; i < 3 * count; i++)
		p[i] = maps[i % 3].table[p[i]];
}

static void map_channels(const struct byte_map *maps, uint8_t *p, size_t count)
{
	size_t n;

	for (; count; count -= n, p += 3 * n) {
		n = count < PLANE ? count : PLANE;
		map_planes(maps, p, n);
	}
}

/* --- others --- */

static inline uint32_t level_of(uint8_t r, uint8_t g, uint8_t b)
{
	return (uint32_t)(int)(0.2989F * r + 0.587F * g + 0.114F * b);
}

static uint32_t level_sum_lot(const uint8_t *p)
{
	struct loops_lot lot;
	uint32_t sum = 0;

	lot_load(&lot, p);
	for (size_t i = 0; i < LOT; i++)
		sum += level_of(lot.of[0][i], lot.of[1][i], lot.of[2][i]);
	return sum;
}

static uint64_t level_sum(const uint8_t *p, size_t count)
{
	uint64_t sum = 0;

	for (; count >= LOT; count -= LOT, p += 3 * LOT)
		sum += level_sum_lot(p);
	for (size_t i = 0; i < count; i++)
		sum += level_of(p[3 * i], p[3 * i + 1], p[3 * i + 2]);
	return sum;
}

static void flip(uint8_t *bytes, size_t count, uint8_t from)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)(bytes[i] >= from ? ~bytes[i] : bytes[i]);
}

static void mask(uint8_t *bytes, size_t count, uint8_t keep)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] &= keep;
}

/* (sum + 6) / 13, by a product that is exact for sums up to 13 * 255. */
static inline uint8_t thirteenth(uint16_t sum)
{
	return (uint8_t)(((sum + 6U) * 5042U) >> 16);
}

static void smooth(const uint8_t *const rows[3], size_t count,
		   uint8_t *restrict out)
{
	const uint8_t *a = rows[0], *b = rows[1], *c = rows[2];

	for (size_t i = 0; i < count; i++) {
		const uint8_t *p = a + i, *q = b + i, *r = c + i;
		uint16_t sum =
			(uint16_t)(p[-3] + p[0] + p[3] + q[-3] + 5 * q[0] +
				   q[3] + r[-3] + r[0] + r[3]);

		out[i] = thirteenth(sum);
	}
}

const struct pixel_loops ISA_NAME(pixel_loops) = {
	.blend = blend,
	.blend_gray = blend_gray,
	.blend_bytes = blend_bytes,
	.gray_sum = gray_sum,
	.level_sum = level_sum,
	.map_channels = map_channels,
	.extremes = extremes,
	.count = count_pixels,
	.map = map,
	.flip = flip,
	.mask = mask,
	.smooth = smooth,
};
