/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a JPEG: probed, and a rectangle decoded that depends on their
 * number. With -DFUZZ_MAIN a program that replays files.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/image/codec/codec.h"

/* More pixels are right, and slow. */
enum { PIXELS_MAX = 1 << 20, FILE_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The middle of the image, moved about by `seed`. */
static struct rect rect_in(const struct codec_info *info, size_t seed)
{
	uint32_t x = (uint32_t)(seed % info->width);
	uint32_t y = (uint32_t)(seed / 3 % info->height);

	return (struct rect){
		.x = x,
		.y = y,
		.width = 1 + (info->width - x - 1) / 2,
		.height = 1 + (info->height - y - 1) / 2,
	};
}

static void decode(struct codec *codec, const uint8_t *bytes, size_t size,
		   const struct rect *rect)
{
	size_t stride = (size_t)rect->width * 3;
	struct image out = {
		.pixels = malloc(stride * rect->height),
		.width = rect->width,
		.height = rect->height,
		.stride = stride,
	};

	if (out.pixels && codec_decode(codec, bytes, size, rect, &out) &&
	    !codec_message(codec)[0])
		abort(); /* refused without a word */
	free(out.pixels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct codec *codec; /* kept, as a worker keeps its own */
	uint8_t *bytes = malloc(size ? size : 1);
	struct codec_info info;

	if (!bytes || (!codec && codec_open(&codec))) {
		free(bytes);
		return 0;
	}
	memcpy(bytes, data, size);
	if (!codec_probe(codec, bytes, size, &info) &&
	    (uint64_t)info.width * info.height <= PIXELS_MAX) {
		struct rect rect = rect_in(&info, size);

		decode(codec, bytes, size, &rect);
	}
	free(bytes);
	return 0;
}

#ifdef FUZZ_MAIN
static int replay(const char *path)
{
	uint8_t *data = malloc(FILE_MAX);
	FILE *f = fopen(path, "rb");

	if (!f || !data) {
		perror(path);
		free(data);
		return 1;
	}
	LLVMFuzzerTestOneInput(data, fread(data, 1, FILE_MAX, f));
	fclose(f);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	int r = 0;

	for (int i = 1; i < argc; i++)
		r |= replay(argv[i]);
	return r;
}
#endif
