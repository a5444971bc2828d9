/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/util/crc32c.h"

#include "fs/base/util/bytes.h"

#ifdef __x86_64__
#	include <immintrin.h>
#elif defined(__aarch64__)
#	include <arm_acle.h>
#	include <sys/auxv.h>
#endif

/* The polynomial, reflected: the highest power is the lowest bit. */
#define POLYNOMIAL 0x82f63b78u

/* --- by tables --- */

/* The CRC of four bits after 4 * (row + 1) further bits. */
static const uint32_t nibbles[16][16] = {
	{ 0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc,
	  0x5125dad3, 0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17,
	  0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a,
	  0xf36e6f75 },
	{ 0x00000000, 0xf26b8303, 0xe13b70f7, 0x1350f3f4, 0xc79a971f,
	  0x35f1141c, 0x26a1e7e8, 0xd4ca64eb, 0x8ad958cf, 0x78b2dbcc,
	  0x6be22838, 0x9989ab3b, 0x4d43cfd0, 0xbf284cd3, 0xac78bf27,
	  0x5e133c24 },
	{ 0x00000000, 0x3fc5f181, 0x7f8be302, 0x404e1283, 0xff17c604,
	  0xc0d23785, 0x809c2506, 0xbf59d487, 0xfbc3faf9, 0xc4060b78,
	  0x844819fb, 0xbb8de87a, 0x04d43cfd, 0x3b11cd7c, 0x7b5fdfff,
	  0x449a2e7e },
	{ 0x00000000, 0x13a29877, 0x274530ee, 0x34e7a899, 0x4e8a61dc,
	  0x5d28f9ab, 0x69cf5132, 0x7a6dc945, 0x9d14c3b8, 0x8eb65bcf,
	  0xba51f356, 0xa9f36b21, 0xd39ea264, 0xc03c3a13, 0xf4db928a,
	  0xe7790afd },
	{ 0x00000000, 0x70a27d8a, 0xe144fb14, 0x91e6869e, 0xc76580d9,
	  0xb7c7fd53, 0x26217bcd, 0x56830647, 0x8b277743, 0xfb850ac9,
	  0x6a638c57, 0x1ac1f1dd, 0x4c42f79a, 0x3ce08a10, 0xad060c8e,
	  0xdda47104 },
	{ 0x00000000, 0xa541927e, 0x4f6f520d, 0xea2ec073, 0x9edea41a,
	  0x3b9f3664, 0xd1b1f617, 0x74f06469, 0x38513ec5, 0x9d10acbb,
	  0x773e6cc8, 0xd27ffeb6, 0xa68f9adf, 0x03ce08a1, 0xe9e0c8d2,
	  0x4ca15aac },
	{ 0x00000000, 0xe964b13d, 0xd725148b, 0x3e41a5b6, 0xaba65fe7,
	  0x42c2eeda, 0x7c834b6c, 0x95e7fa51, 0x52a0c93f, 0xbbc47802,
	  0x8585ddb4, 0x6ce16c89, 0xf90696d8, 0x106227e5, 0x2e238253,
	  0xc747336e },
	{ 0x00000000, 0xdd45aab8, 0xbf672381, 0x62228939, 0x7b2231f3,
	  0xa6679b4b, 0xc4451272, 0x1900b8ca, 0xf64463e6, 0x2b01c95e,
	  0x49234067, 0x9466eadf, 0x8d665215, 0x5023f8ad, 0x32017194,
	  0xef44db2c },
	{ 0x00000000, 0x8f2261d3, 0x1ba8b557, 0x948ad484, 0x37516aae,
	  0xb8730b7d, 0x2cf9dff9, 0xa3dbbe2a, 0x6ea2d55c, 0xe180b48f,
	  0x750a600b, 0xfa2801d8, 0x59f3bff2, 0xd6d1de21, 0x425b0aa5,
	  0xcd796b76 },
	{ 0x00000000, 0x38116fac, 0x7022df58, 0x4833b0f4, 0xe045beb0,
	  0xd854d11c, 0x906761e8, 0xa8760e44, 0xc5670b91, 0xfd76643d,
	  0xb545d4c9, 0x8d54bb65, 0x2522b521, 0x1d33da8d, 0x55006a79,
	  0x6d1105d5 },
	{ 0x00000000, 0xc00c303e, 0x85f4168d, 0x45f826b3, 0x0e045beb,
	  0xce086bd5, 0x8bf04d66, 0x4bfc7d58, 0x1c08b7d6, 0xdc0487e8,
	  0x99fca15b, 0x59f09165, 0x120cec3d, 0xd200dc03, 0x97f8fab0,
	  0x57f4ca8e },
	{ 0x00000000, 0xef306b19, 0xdb8ca0c3, 0x34bccbda, 0xb2f53777,
	  0x5dc55c6e, 0x697997b4, 0x8649fcad, 0x6006181f, 0x8f367306,
	  0xbb8ab8dc, 0x54bad3c5, 0xd2f32f68, 0x3dc34471, 0x097f8fab,
	  0xe64fe4b2 },
	{ 0x00000000, 0x9c5bfaa6, 0x3d5b83bd, 0xa100791b, 0x7ab7077a,
	  0xe6ecfddc, 0x47ec84c7, 0xdbb77e61, 0xf56e0ef4, 0x6935f452,
	  0xc8358d49, 0x546e77ef, 0x8fd9098e, 0x1382f328, 0xb2828a33,
	  0x2ed97095 },
	{ 0x00000000, 0x68032cc8, 0xd0065990, 0xb8057558, 0xa5e0c5d1,
	  0xcde3e919, 0x75e69c41, 0x1de5b089, 0x4e2dfd53, 0x262ed19b,
	  0x9e2ba4c3, 0xf628880b, 0xebcd3882, 0x83ce144a, 0x3bcb6112,
	  0x53c84dda },
	{ 0x00000000, 0x847609b4, 0x0d006599, 0x89766c2d, 0x1a00cb32,
	  0x9e76c286, 0x1700aeab, 0x9376a71f, 0x34019664, 0xb0779fd0,
	  0x3901f3fd, 0xbd77fa49, 0x2e015d56, 0xaa7754e2, 0x230138cf,
	  0xa777317b },
	{ 0x00000000, 0x493c7d27, 0x9278fa4e, 0xdb448769, 0x211d826d,
	  0x6821ff4a, 0xb3657823, 0xfa590504, 0x423b04da, 0x0b0779fd,
	  0xd043fe94, 0x997f83b3, 0x632686b7, 0x2a1afb90, 0xf15e7cf9,
	  0xb86201de },
};

static uint32_t table_word(uint32_t crc, uint64_t word)
{
	uint32_t out = 0;

	word ^= crc;
	for (unsigned i = 0; i < 16; i++)
		out ^= nibbles[15 - i][word >> 4 * i & 15];
	return out;
}

static uint32_t table_byte(uint32_t crc, uint8_t byte)
{
	crc ^= byte;
	crc = crc >> 4 ^ nibbles[0][crc & 15];
	return crc >> 4 ^ nibbles[0][crc & 15];
}

uint32_t crc32c_by_table(uint32_t crc, const void *bytes, size_t size)
{
	const uint8_t *p = bytes;

	crc = ~crc;
	for (; size >= 8; p += 8, size -= 8)
		crc = table_word(crc, load64(p));
	for (; size; p++, size--)
		crc = table_byte(crc, *p);
	return ~crc;
}

/* --- by instructions --- */

#ifdef __x86_64__
#	define CPU_TARGET __attribute__((target("sse4.2,pclmul")))
#	define crc_of_word _mm_crc32_u64

/*
 * An instruction takes three cycles, and one can start in each. Therefore
 * three parts of LANE bytes are computed at once and then joined.
 */
enum { LANE = 2048 };

/* x^(8 * n - 33) modulo the polynomial, reflected, for n bytes. */
static const uint32_t past_one_lane = 0xa51b6135;  /* n = LANE */
static const uint32_t past_two_lanes = 0x82f89c77; /* n = 2 * LANE */

static bool has_instructions(void)
{
	return __builtin_cpu_supports("sse4.2") &&
	       __builtin_cpu_supports("pclmul");
}

/* Returns the CRC after further bytes of zeros, whose power is given. */
CPU_TARGET static uint64_t skip_zeros(uint64_t crc, uint32_t power)
{
	__m128i product =
		_mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc),
				     _mm_cvtsi32_si128((int)power), 0);

	return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

CPU_TARGET static uint64_t three_lanes(uint64_t crc, const uint8_t *p)
{
	uint64_t second = 0, third = 0;

	for (size_t i = 0; i < LANE; i += 8) {
		crc = _mm_crc32_u64(crc, load64(p + i));
		second = _mm_crc32_u64(second, load64(p + LANE + i));
		third = _mm_crc32_u64(third, load64(p + 2 * LANE + i));
	}
	return skip_zeros(crc, past_two_lanes) ^
	       skip_zeros(second, past_one_lane) ^ third;
}

CPU_TARGET static uint32_t by_instructions(uint32_t crc, const uint8_t *p,
					   size_t size)
{
	uint64_t state = ~crc;

	for (; size >= 3 * LANE; p += 3 * LANE, size -= 3 * LANE)
		state = three_lanes(state, p);
	for (; size >= 8; p += 8, size -= 8)
		state = _mm_crc32_u64(state, load64(p));
	for (; size; p++, size--)
		state = _mm_crc32_u8((uint32_t)state, *p);
	return ~(uint32_t)state;
}

#elif defined(__aarch64__)
/* clang 14 declares the functions of arm_acle.h for the whole file or not. */
#	ifdef __clang__
#		define CPU_TARGET __attribute__((target("crc")))
#		define crc_of_word __builtin_arm_crc32cd
#		define crc_of_byte __builtin_arm_crc32cb
#	else
#		define CPU_TARGET __attribute__((target("+crc")))
#		define crc_of_word __crc32cd
#		define crc_of_byte __crc32cb
#	endif

static bool has_instructions(void)
{
	return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

CPU_TARGET static uint32_t by_instructions(uint32_t crc, const uint8_t *p,
					   size_t size)
{
	crc = ~crc;
	for (; size >= 8; p += 8, size -= 8)
		crc = crc_of_word(crc, load64(p));
	for (; size; p++, size--)
		crc = crc_of_byte(crc, *p);
	return ~crc;
}

#else
#	define CPU_TARGET
#	define crc_of_word table_word

static bool has_instructions(void)
{
	return false;
}

static uint32_t by_instructions(uint32_t crc, const uint8_t *p, size_t size)
{
	return crc32c_by_table(crc, p, size);
}
#endif

/* Three chains, because an instruction of one waits for the one before. */
CPU_TARGET static void three_by_instructions(uint32_t crc[3],
					     const uint8_t *const bytes[3],
					     size_t size)
{
	const uint8_t *a = bytes[0], *b = bytes[1], *c = bytes[2];
	uint64_t x = ~crc[0], y = ~crc[1], z = ~crc[2];
	size_t i = 0;

	for (; i + 8 <= size; i += 8) {
		x = crc_of_word(x, load64(a + i));
		y = crc_of_word(y, load64(b + i));
		z = crc_of_word(z, load64(c + i));
	}
	crc[0] = by_instructions(~(uint32_t)x, a + i, size - i);
	crc[1] = by_instructions(~(uint32_t)y, b + i, size - i);
	crc[2] = by_instructions(~(uint32_t)z, c + i, size - i);
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t size)
{
	return has_instructions() ? by_instructions(crc, bytes, size)
				  : crc32c_by_table(crc, bytes, size);
}

void crc32c_three(uint32_t crc[3], const uint8_t *const bytes[3], size_t size)
{
	if (has_instructions()) {
		three_by_instructions(crc, bytes, size);
		return;
	}
	for (unsigned i = 0; i < 3; i++)
		crc[i] = crc32c_by_table(crc[i], bytes[i], size);
}

/* --- damage --- */

/* CRCs are linear: the difference depends on the flipped bits alone. Steps from
   the last bit, which is the highest of the last byte, to the first one. */
bool crc32c_flipped_bit(uint32_t found, uint32_t expected, size_t size,
			size_t *byte, unsigned *bit)
{
	uint32_t difference = found ^ expected, state = POLYNOMIAL;

	for (size_t i = 0; i < 8 * size; i++) {
		if (state == difference) {
			*byte = size - 1 - i / 8;
			*bit = 7 - i % 8;
			return true;
		}
		state = state >> 1 ^ (state & 1 ? POLYNOMIAL : 0);
	}
	return false;
}
