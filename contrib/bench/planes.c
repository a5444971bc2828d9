/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measure the cost of decoding a random crop of JPEGs to planes.
 *
 *   planes PASSES FILE...
 *
 * Each way decodes all files, pass by pass, in turns with the other ways. The
 * table has a line per way: the median over passes of the CPU time per file, in
 * microseconds, and the time of the first way divided by it. If the decoder of
 * the loader cannot decode a file with entry points, the file is left out.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "loader/image/jpeg/baseline.h"
#include "loader/image/jpeg/entry_index.h"

/* Room for 16 rows of three planes of any width, or 4 of RGB. */
enum { PASSES_MAX = 1000, TRIES = 10, ROW = 1 << 17, ROOM = 48 * ROW };

struct file {
	uint8_t *bytes;
	size_t size;
	struct rect rect;
	struct entry_index rows;   /* an entry point per row of MCUs */
	struct entry_index eights; /* an entry point every 8 MCUs */
};

static struct baseline *baseline;
static struct jpeg_decompress_struct jpeg;
static uint8_t *output;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "planes: %s: %s\n", what, why);
	exit(1);
}

static void *need(void *p)
{
	if (!p)
		fail("memory", strerror(errno));
	return p;
}

static void start(const struct file *f)
{
	jpeg_mem_src(&jpeg, f->bytes, f->size);
	jpeg_read_header(&jpeg, TRUE);
}

/* The whole image, before upsampling. */
static void raw(const struct file *f)
{
	JSAMPROW rows[3][16];
	JSAMPARRAY planes[] = { rows[0], rows[1], rows[2] };

	start(f);
	jpeg.raw_data_out = TRUE;
	jpeg_start_decompress(&jpeg);
	for (int i = 0; i < jpeg.num_components; i++)
		for (size_t k = 0; k < 16; k++)
			rows[i][k] = output + (k + 16 * (size_t)i) *
						      (jpeg.output_width + 64);
	while (jpeg.output_scanline < jpeg.output_height)
		jpeg_read_raw_data(&jpeg, planes,
				   (JDIMENSION)jpeg.max_v_samp_factor * 8);
	jpeg_abort_decompress(&jpeg);
}

/* RGB of the crop alone. */
static void crop(const struct file *f)
{
	JSAMPROW rows[] = { output, output + ROW, output + 2 * ROW,
			    output + 3 * ROW };
	JDIMENSION x = f->rect.x - (f->rect.x > 0);
	JDIMENSION width;

	start(f);
	jpeg_start_decompress(&jpeg);
	width = (JDIMENSION)min_u64(f->rect.width + 2, jpeg.output_width - x);
	if (width >= 16)
		jpeg_crop_scanline(&jpeg, &x, &width);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		rows[i] = output + i * (jpeg.output_width * 3 + 64);
	if (f->rect.y)
		jpeg_skip_scanlines(&jpeg, f->rect.y);
	while (jpeg.output_scanline < f->rect.y + f->rect.height)
		jpeg_read_scanlines(&jpeg, rows, 4);
	jpeg_abort_decompress(&jpeg);
}

static void decode(const struct file *f, const struct rect *rect,
		   const struct entry_index *index)
{
	struct baseline_plane planes[BASELINE_COMPONENTS];
	struct baseline_image image;

	if (baseline_header(baseline, f->bytes, f->size, &image) ||
	    baseline_decode(baseline, &image, rect ? rect : &f->rect, 1, index,
			    planes))
		fail("a file", baseline_message(baseline));
}

static void own_raw(const struct file *f)
{
	struct baseline_image image;

	if (baseline_header(baseline, f->bytes, f->size, &image))
		fail("a file", baseline_message(baseline));
	decode(f, &(struct rect){ 0, 0, image.width, image.height }, NULL);
}

/* One block is wanted, the last, so that there is next to no IDCT. */
static void own_entropy(const struct file *f)
{
	struct baseline_image image;

	if (baseline_header(baseline, f->bytes, f->size, &image))
		fail("a file", baseline_message(baseline));
	decode(f, &(struct rect){ image.width - 1, image.height - 1, 1, 1 },
	       NULL);
}

static void own_crop(const struct file *f)
{
	decode(f, NULL, NULL);
}

static void own_crop_rows(const struct file *f)
{
	decode(f, NULL, &f->rows);
}

static void own_crop_eights(const struct file *f)
{
	decode(f, NULL, &f->eights);
}

static const struct way {
	const char *name;
	void (*decode)(const struct file *f);
} WAYS[] = {
	{ "libjpeg-turbo, whole image, to planes", raw },
	{ "betonfs, whole image, to planes", own_raw },
	{ "betonfs, whole image, Huffman codes only", own_entropy },
	{ "libjpeg-turbo, crop, to RGB", crop },
	{ "betonfs, crop, to planes", own_crop },
	{ "betonfs, crop, entry point per MCU row", own_crop_rows },
	{ "betonfs, crop, entry point every 8 MCUs", own_crop_eights },
};

static void read_file(const char *path, struct file *f)
{
	FILE *in = fopen(path, "rb");
	long size;

	if (!in || fseek(in, 0, SEEK_END) || (size = ftell(in)) < 0)
		fail(path, strerror(errno));
	rewind(in);
	f->size = (size_t)size;
	f->bytes = need(malloc(f->size + 1));
	if (fread(f->bytes, 1, f->size, in) != f->size)
		fail(path, "cannot be read");
	fclose(in);
}

/* RandomResizedCrop's: 8 to 100 % of the area, 3 : 4 to 4 : 3. */
static struct rect random_crop(struct rng *rng, uint32_t width, uint32_t height)
{
	for (int i = 0; i < TRIES; i++) {
		double u = (double)(rng_next(rng) >> 11) / 0x1p53;
		double v = (double)(rng_next(rng) >> 11) / 0x1p53;
		double area = width * (double)height * (0.08 + 0.92 * u);
		double ratio = exp((2 * v - 1) * log(4. / 3));
		uint32_t w = (uint32_t)lround(sqrt(area * ratio));
		uint32_t h = (uint32_t)lround(sqrt(area / ratio));

		if (w && h && w <= width && h <= height)
			return (struct rect){
				(uint32_t)(rng_next(rng) % (width - w + 1)),
				(uint32_t)(rng_next(rng) % (height - h + 1)),
				w,
				h,
			};
	}
	return (struct rect){ 0, 0, width, height };
}

static bool make_index(const struct baseline_image *image, uint32_t step,
		       struct entry_index *out)
{
	size_t size;
	void *copy;

	if (baseline_index(baseline, image, step, out))
		return false;
	size = out->n * sizeof(*out->entries);
	copy = need(malloc(size));
	out->entries = memcpy(copy, out->entries, size);
	return true;
}

static bool open_file(const char *path, struct rng *rng, struct file *f)
{
	struct baseline_image image;

	read_file(path, f);
	if (baseline_header(baseline, f->bytes, f->size, &image) ||
	    !make_index(&image, 0, &f->rows) ||
	    !make_index(&image, 8, &f->eights)) {
		fprintf(stderr, "planes: %s: left out: %s\n", path,
			baseline_message(baseline));
		return false;
	}
	f->rect = random_crop(rng, image.width, image.height);
	return true;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void measure(const struct file *files, size_t n, int passes)
{
	static double us[ARRAY_LEN(WAYS)][PASSES_MAX];
	double first = 0;

	for (int pass = 0; pass < passes; pass++)
		for (size_t way = 0; way < ARRAY_LEN(WAYS); way++) {
			uint64_t from = cpu_ns();

			for (size_t i = 0; i < n; i++)
				WAYS[way].decode(&files[i]);
			us[way][pass] =
				(double)(cpu_ns() - from) / 1e3 / (double)n;
		}
	printf("%zu file%s, median of %d pass%s\n%-40s %11s  %8s\n", n,
	       n == 1 ? "" : "s", passes, passes == 1 ? "" : "es", "decoder",
	       "CPU us/file", "speed");
	for (size_t way = 0; way < ARRAY_LEN(WAYS); way++) {
		qsort(us[way], (size_t)passes, sizeof(us[way][0]), compare);
		if (!way)
			first = us[way][passes / 2];
		printf("%-40s %11.1f  %8.2f\n", WAYS[way].name,
		       us[way][passes / 2], first / us[way][passes / 2]);
	}
}

int main(int argc, char **argv)
{
	int passes = argc > 2 ? atoi(argv[1]) : 0;
	size_t n = 0;
	struct file *files = need(calloc((size_t)argc, sizeof(*files)));
	struct jpeg_error_mgr error;
	struct rng rng = { .key = 1 };

	if (passes < 1 || passes > PASSES_MAX)
		fail("usage", "planes PASSES FILE..., with 1 to 1000 PASSES");
	jpeg.err = jpeg_std_error(&error);
	jpeg_create_decompress(&jpeg);
	output = need(malloc(ROOM));
	if (baseline_open(&baseline))
		fail("memory", strerror(ENOMEM));
	for (int i = 2; i < argc; i++)
		n += open_file(argv[i], &rng, &files[n]);
	if (!n)
		fail("no file could be measured",
		     "the lines above contain the reasons");
	measure(files, n, passes);
	return 0;
}
