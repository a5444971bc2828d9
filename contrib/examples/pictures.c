/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a small set of pictures to play with: DIR/warm/N.png, DIR/cold/N.png.
   cc -o pictures pictures.c -lpng && ./pictures DIR 40 */
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Squares that fade into each other, reddish or bluish. */
static void paint(unsigned char *rgb, int width, int height, int n, int warm)
{
	for (int y = 0; y < height; y++) {
		for (int x = 0; x < width; x++, rgb += 3) {
			int shade = (x / 16 + y / 16 + n) % 8 * 12 + x % 16;

			rgb[0] = (unsigned char)(warm ? 150 + shade : shade);
			rgb[1] = (unsigned char)(60 + n * 3 % 100);
			rgb[2] = (unsigned char)(warm ? shade : 150 + shade);
		}
	}
}

static int write_picture(const char *path, int n, int warm)
{
	png_image image = { .version = PNG_IMAGE_VERSION,
			    .width = (png_uint_32)(120 + n % 7 * 16),
			    .height = (png_uint_32)(100 + n % 5 * 16),
			    .format = PNG_FORMAT_RGB };
	unsigned char *rgb = malloc(PNG_IMAGE_SIZE(image));
	int ok;

	if (!rgb)
		return 0;
	paint(rgb, (int)image.width, (int)image.height, n, warm);
	ok = png_image_write_to_file(&image, path, 0, rgb, 0, NULL);
	free(rgb);
	return ok;
}

int main(int argc, char **argv)
{
	const char *classes[] = { "cold", "warm" };
	int count = argc > 2 ? atoi(argv[2]) : 40;
	char path[4096];

	if (argc < 2 || strlen(argv[1]) > 4000) {
		fprintf(stderr, "usage: pictures DIR [COUNT]\n");
		return 2;
	}
	mkdir(argv[1], 0777);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%.4000s/%s", argv[1], classes[i]);
		mkdir(path, 0777);
	}
	for (int n = 0; n < count; n++) {
		snprintf(path, sizeof(path), "%.4000s/%s/%03d.png", argv[1],
			 classes[n % 2], n);
		if (!write_picture(path, n, n % 2)) {
			fprintf(stderr, "pictures: cannot write %s\n", path);
			return 1;
		}
	}
	printf("%d pictures in %s\n", count, argv[1]);
	return 0;
}
