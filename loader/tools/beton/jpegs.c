/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/beton/jpegs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/image/codec/codec.h"
#include "loader/image/jpeg/baseline.h"

enum { TABLE = 64, GRAY = 0, OTHER = JPEGS_SAMPLINGS - 1 };

struct jpegs {
	struct baseline *baseline;
	struct codec *codec;
	struct jpegs_figures figures;
};

/* Luma's table of quality 50 in the standard's annex K, along the zigzag. */
static const uint8_t STANDARD[TABLE] = {
	16,  11, 12, 14,  12,  10,  16,	 14,  13, 14,  18,  17,	 16,
	19,  24, 40, 26,  24,  22,  22,	 24,  49, 35,  37,  29,	 40,
	58,  51, 61, 60,  57,  51,  56,	 55,  64, 72,  92,  78,	 64,
	68,  87, 69, 55,  56,  80,  109, 81,  87, 95,  98,  103, 104,
	103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99,
};

static const struct sampling {
	const char *name;
	uint8_t across;
	uint8_t down;
} SAMPLINGS[JPEGS_SAMPLINGS] = {
	[GRAY] = { "gray", 0, 0 }, { "4:4:4", 1, 1 },
	{ "4:2:2", 2, 1 },	   { "4:4:0", 1, 2 },
	{ "4:2:0", 2, 2 },	   [OTHER] = { "other", 0, 0 },
};

int jpegs_open(struct jpegs **out)
{
	struct jpegs *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	r = baseline_open(&j->baseline);
	r = r ? r : codec_open(&j->codec);
	if (r)
		jpegs_close(j);
	else
		*out = j;
	return r;
}

void jpegs_close(struct jpegs *j)
{
	if (!j)
		return;
	codec_close(j->codec);
	baseline_close(j->baseline);
	free(j);
}

const struct jpegs_figures *jpegs_figures(const struct jpegs *j)
{
	return &j->figures;
}

/* Scales an entry of the table as libjpeg does. */
static unsigned scale_entry(unsigned standard, unsigned quality)
{
	unsigned percent = quality < 50 ? 5000 / quality : 200 - 2 * quality;
	unsigned v = (standard * percent + 50) / 100;

	return v < 1 ? 1 : v > 255 ? 255 : v;
}

static unsigned table_distance(const uint8_t *quant, unsigned quality)
{
	unsigned sum = 0;

	for (int i = 0; i < TABLE; i++)
		sum += (unsigned)abs((int)scale_entry(STANDARD[i], quality) -
				     quant[i]);
	return sum;
}

/* Returns the quality with the nearest table. */
static unsigned quality_of(const uint8_t *quant)
{
	unsigned best = 100;

	for (unsigned q = 99; q > 0; q--)
		if (table_distance(quant, q) < table_distance(quant, best))
			best = q;
	return best;
}

static int sampling_of(const struct baseline_image *image)
{
	const struct baseline_component *c = image->component;

	if (image->components == 1)
		return GRAY;
	if (c[1].across == c[2].across && c[1].down == c[2].down)
		for (int i = GRAY + 1; i < OTHER; i++)
			if (SAMPLINGS[i].across == c[1].across &&
			    SAMPLINGS[i].down == c[1].down)
				return i;
	return OTHER;
}

void jpegs_look(struct jpegs *j, const uint8_t *bytes, size_t n, uint64_t size)
{
	struct jpegs_figures *f = &j->figures;
	struct baseline_image image;
	unsigned quality = 0;
	int sampling = OTHER;

	if (!baseline_header(j->baseline, bytes, n, &image)) {
		quality = quality_of(image.component[0].quant);
		sampling = sampling_of(&image);
	}
	f->qualities[quality]++;
	f->samplings[sampling]++;
	f->smallest = f->jpegs ? min_u64(f->smallest, size) : size;
	f->largest = max_u64(f->largest, size);
	f->size += size;
	f->jpegs++;
}

/* The caller frees out->pixels, also after a failure. */
static int decode_jpeg(struct jpegs *j, const uint8_t *bytes, size_t size,
		       struct image *out)
{
	struct codec_info info;
	int r = codec_probe(j->codec, bytes, size, &info);
	struct rect all;

	*out = (struct image){ 0 };
	if (r)
		return r;
	out->width = info.width;
	out->height = info.height;
	out->stride = (size_t)info.width * 3;
	out->pixels = malloc(out->stride * info.height);
	if (!out->pixels)
		return -ENOMEM;
	all = (struct rect){ 0, 0, info.width, info.height };
	return codec_decode(j->codec, bytes, size, &all, out);
}

static bool is_same(const struct image *a, const struct image *b)
{
	return a->width == b->width && a->height == b->height &&
	       !memcmp(a->pixels, b->pixels, a->stride * a->height);
}

int jpegs_compare(struct jpegs *j, const uint8_t *a, size_t a_size,
		  const uint8_t *b, size_t b_size)
{
	struct image x;
	struct image y;
	int r = decode_jpeg(j, a, a_size, &x);
	int s = decode_jpeg(j, b, b_size, &y);

	if (!r) {
		j->figures.compared++;
		j->figures.different += s || !is_same(&x, &y);
	}
	free(x.pixels);
	free(y.pixels);
	return r == -ENOMEM || s == -ENOMEM ? -ENOMEM : 0;
}

void jpegs_add(struct jpegs_figures *to, const struct jpegs_figures *more)
{
	if (more->jpegs)
		to->smallest = to->jpegs ? min_u64(to->smallest, more->smallest)
					 : more->smallest;
	to->largest = max_u64(to->largest, more->largest);
	to->jpegs += more->jpegs;
	to->size += more->size;
	for (int i = 0; i < JPEGS_QUALITIES; i++)
		to->qualities[i] += more->qualities[i];
	for (int i = 0; i < JPEGS_SAMPLINGS; i++)
		to->samplings[i] += more->samplings[i];
	to->compared += more->compared;
	to->different += more->different;
}

void jpegs_print(const struct jpegs_figures *f, FILE *out)
{
	typedef unsigned long long ull;

	for (int i = 1; i < JPEGS_QUALITIES; i++)
		if (f->qualities[i])
			fprintf(out, "quality %d: %llu\n", i,
				(ull)f->qualities[i]);
	if (f->qualities[0])
		fprintf(out, "quality unknown: %llu\n", (ull)f->qualities[0]);
	for (int i = 0; i < JPEGS_SAMPLINGS; i++)
		if (f->samplings[i])
			fprintf(out, "sampling %s: %llu\n", SAMPLINGS[i].name,
				(ull)f->samplings[i]);
	if (f->jpegs)
		fprintf(out, "size: %llu to %llu bytes, %llu on average\n",
			(ull)f->smallest, (ull)f->largest,
			(ull)(f->size / f->jpegs));
	fprintf(out, "pixels: %llu of %llu compared are the same\n",
		(ull)(f->compared - f->different), (ull)f->compared);
}
