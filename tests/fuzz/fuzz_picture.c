/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an image file for mkfs.beton: as they are, and for a PNG again
 * with a correct CRC in each chunk, because no mutation would find it. Pixels
 * depend on the bytes alone, not on the image before.
 */
#include <errno.h>
#include <stdbool.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/picture/format.h"
#include "loader/tools/picture/picture.h"
#include "tests/fuzz/fuzz.h"

/* More pixels are right, and slow. */
enum { PIXELS_MAX = 1 << 14 };

enum { PNG_HEAD = 8, PNG_CHUNK = 12, PNG_SIZE_AT = 16 };

static struct codec *codec;
static struct picture_decoder *decoder;

static uint32_t load_be32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
	       (uint32_t)at[2] << 8 | at[3];
}

static bool is_png(const uint8_t *bytes, size_t size)
{
	return size >= PNG_SIZE_AT + 8 && !memcmp(bytes, "\x89PNG", 4);
}

/* Decodes after filling all memory with one value. Returns a sum of the pixels,
   or 0. */
static uint64_t decode(const uint8_t *bytes, size_t size, int fill)
{
	struct picture p = { .plain = false };
	struct picture_size probed;
	uint64_t sum = 1;
	bool keeps = !picture_probe(decoder, bytes, size, &probed);
	int r;

	if (decoder->decoded.size)
		memset(decoder->decoded.bytes, fill, decoder->decoded.size);
	if (decoder->turned.size)
		memset(decoder->turned.bytes, fill, decoder->turned.size);
	r = picture_decode(decoder, bytes, size, &p);
	if (r) {
		/* -ELIBACC: no Python here for GIF and BMP. */
		MUST(r == -EBADMSG || r == -ENOTSUP || r == -EFBIG ||
		     r == -ELIBACC);
		MUST(picture_message(decoder)[0]);
		return 0;
	}
	MUST(p.image.width && p.image.height);
	MUST(!keeps || (p.plain && p.image.width == probed.width &&
			p.image.height == probed.height));
	MUST(p.image.stride == 3 * (size_t)p.image.width);
	for (size_t i = 0; i < p.image.stride * p.image.height; i++)
		sum = sum * 31 + p.image.pixels[i];
	return sum;
}

static void try(const uint8_t *bytes, size_t size)
{
	MUST(decode(bytes, size, 0x55) == decode(bytes, size, 0xaa));
}

static uint32_t crc_of(const uint8_t *bytes, size_t size)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < size; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static void put_right(uint8_t *bytes, size_t size)
{
	uint64_t n, at = PNG_HEAD;
	uint32_t crc;

	for (; range_ok(at, PNG_CHUNK, size); at += PNG_CHUNK + n) {
		n = load_be32(bytes + at);
		if (!range_ok(at, PNG_CHUNK + n, size))
			break;
		crc = crc_of(bytes + at + 4, n + 4);
		for (int i = 0; i < 4; i++)
			bytes[at + 8 + n + i] = (uint8_t)(crc >> (24 - 8 * i));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size ? size : 1);

	MUST(bytes);
	MUST(codec || !codec_open(&codec));
	MUST(decoder || !picture_decoder_open(codec, &decoder));
	decoder->pixels_max = PIXELS_MAX;
	memcpy(bytes, data, size);
	try(bytes, size);
	if (is_png(bytes, size)) {
		put_right(bytes, size);
		if (memcmp(bytes, data, size))
			try(bytes, size);
	}
	free(bytes);
	return 0;
}
