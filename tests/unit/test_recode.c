/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/codec/recode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/codec/codec.h"
#include "loader/image/jpeg/baseline.h"
#include "tests/unit/arithmetic.h"
#include "tests/unit/encoded.h"
#include "tests/unit/jpegs.h"
#include "tests/unit/t.h"

static struct codec_recoder *recoder;
static struct baseline *baseline;
static struct codec *codec;

static struct image decode(const uint8_t *bytes, size_t size)
{
	struct codec_info info;
	struct image image;

	CHECK(!codec_probe(codec, bytes, size, &info));

	struct rect all = { 0, 0, info.width, info.height };

	image.width = info.width;
	image.height = info.height;
	image.stride = (size_t)info.width * 3;
	image.pixels = malloc(image.stride * info.height);
	CHECK(image.pixels);
	CHECK(!codec_decode(codec, bytes, size, &all, &image));
	return image;
}

static void check_same_pixels(const uint8_t *a, size_t a_size, const uint8_t *b,
			      size_t b_size)
{
	struct image x = decode(a, a_size);
	struct image y = decode(b, b_size);

	CHECK(x.width == y.width && x.height == y.height);
	CHECK(!memcmp(x.pixels, y.pixels, x.stride * x.height));
	free(x.pixels);
	free(y.pixels);
}

static struct recoded recode(const uint8_t *bytes, size_t size, int step)
{
	struct recoded r = { 0 };

	CHECK(!codec_recode(recoder, bytes, size, step, NULL, &r));
	check_same_pixels(bytes, size, r.bytes, r.size);
	return r;
}

static bool has_index(const struct recoded *r)
{
	struct baseline_image image;
	struct entry_index index;

	return !baseline_header(baseline, r->bytes, r->size, &image) &&
	       !baseline_stored_index(baseline, &image, &index);
}

static void every_kind_keeps_its_pixels(void)
{
	static const struct {
		const uint8_t *bytes;
		size_t size;
		bool index;
	} kinds[] = {
		{ JPEG_GRAY, sizeof(JPEG_GRAY), true },
		{ JPEG_PROGRESSIVE, sizeof(JPEG_PROGRESSIVE), true },
		{ JPEG_FULL, sizeof(JPEG_FULL), true },
		{ JPEG_HALF, sizeof(JPEG_HALF), true },
		{ JPEG_CMYK, sizeof(JPEG_CMYK), false },
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		for (int step = -1; step < 3; step++) {
			struct recoded r =
				recode(kinds[i].bytes, kinds[i].size, step);

			CHECK(has_index(&r) == (kinds[i].index && step >= 0));
			CHECK(!r.index_size == !has_index(&r));
			free(r.bytes);
		}
}

static void tables_of_its_own_make_it_smaller(void)
{
	struct kind kind = KIND_PHOTO;

	for (unsigned restart = 0; restart < 10; restart += 9) {
		kind.restart = restart;

		struct jpeg jpeg = encode(&kind);
		struct recoded r =
			recode(jpeg.bytes, jpeg.size, RECODE_NO_INDEX);

		CHECK(r.size < jpeg.size && !r.index_size);
		free(r.bytes);
		free(jpeg.bytes);
	}
}

static struct symbols_codes codes_of(const struct jpeg *jpeg)
{
	struct symbols sum = { 0 };
	struct symbols_codes codes;

	CHECK(!codec_count(recoder, jpeg->bytes, jpeg->size, &sum));
	symbols_make_codes(&sum, true, &codes);
	return codes;
}

static struct recoded recode_with(const struct symbols_codes *shared,
				  const struct jpeg *jpeg)
{
	struct recoded r = { 0 };

	CHECK(!codec_recode(recoder, jpeg->bytes, jpeg->size, RECODE_AUTO,
			    shared, &r));
	check_same_pixels(jpeg->bytes, jpeg->size, r.bytes, r.size);
	CHECK(has_index(&r));
	return r;
}

/* Whether the tables of a JPEG are these, luma's alone where it is gray. */
static bool has_codes(const struct recoded *r,
		      const struct symbols_codes *codes)
{
	struct baseline_image image;

	CHECK(!baseline_header(baseline, r->bytes, r->size, &image));
	for (unsigned i = 0; i < image.components; i++) {
		const struct baseline_component *c = &image.component[i];
		const uint8_t(*d)[SYMBOLS_DEFINITION] =
			&codes->definition[i ? SYMBOLS_KINDS : 0];

		if (memcmp(c->dc, d[SYMBOLS_DC], huffman_size(c->dc)) ||
		    memcmp(c->ac, d[SYMBOLS_AC], huffman_size(c->ac)))
			return false;
	}
	return true;
}

static void tables_are_shared(void)
{
	struct kind kind = KIND_PHOTO;
	struct jpeg first = encode(&kind);
	struct symbols_codes codes = codes_of(&first);

	for (int components = 1; components <= 3; components += 2)
		for (kind.noise = 0; kind.noise < 60; kind.noise += 30) {
			kind.components = components;

			struct jpeg jpeg = encode(&kind);
			struct recoded r = recode_with(&codes, &jpeg);

			CHECK(!r.own_codes && has_codes(&r, &codes));
			free(r.bytes);
			free(jpeg.bytes);
		}
	free(first.bytes);
}

/* Where shared ones are far worse, and the JPEG is large. */
static void tables_of_its_own_where_they_gain(void)
{
	struct kind kind = KIND_PHOTO;
	struct jpeg small;
	struct jpeg large;
	struct symbols_codes codes;
	struct recoded own;
	struct recoded alone;

	kind.noise = 0;
	kind.quality = 20;
	small = encode(&kind);
	codes = codes_of(&small);
	kind.noise = 200;
	kind.quality = 100;
	large = encode(&kind);
	own = recode_with(&codes, &large);
	alone = recode(large.bytes, large.size, RECODE_AUTO);
	CHECK(own.own_codes && !has_codes(&own, &codes));
	CHECK(own.size == alone.size && alone.own_codes);
	free(alone.bytes);
	free(own.bytes);
	free(large.bytes);
	free(small.bytes);
}

static void damaged_jpegs_are_not_counted(void)
{
	struct jpeg jpeg = encode(&KIND_PHOTO);
	struct symbols sum = { 0 };
	struct symbols none = { 0 };

	CHECK(codec_count(recoder, jpeg.bytes, jpeg.size / 2, &sum) ==
	      -EBADMSG);
	CHECK(!memcmp(&sum, &none, sizeof(sum)));
	free(jpeg.bytes);
}

static void twice_is_once(void)
{
	struct jpeg jpeg = encode(&KIND_PHOTO);
	struct recoded once = recode(jpeg.bytes, jpeg.size, RECODE_AUTO);
	struct recoded twice = recode(once.bytes, once.size, RECODE_AUTO);
	struct recoded coarse = recode(once.bytes, once.size, RECODE_NO_INDEX);

	CHECK(once.size == twice.size);
	CHECK(!memcmp(once.bytes, twice.bytes, once.size));
	CHECK(coarse.size == once.size - once.index_size);
	free(coarse.bytes);
	free(twice.bytes);
	free(once.bytes);
	free(jpeg.bytes);
}

static void other_segments_stay(void)
{
	static const uint8_t segments[] = {
		0xff, 0xfe, 0, 9, 'c', 'o', 'm', 'm', 'e', 'n', 't',
		0xff, 0xe9, 0, 9, 'f', 'o', 'r', 'e', 'i', 'g', 'n',
	};
	struct jpeg jpeg = encode(&KIND_PHOTO);
	size_t size = jpeg.size + sizeof(segments);
	uint8_t *bytes = malloc(size);
	struct recoded r;

	CHECK(bytes);
	memcpy(bytes, jpeg.bytes, 2);
	memcpy(bytes + 2, segments, sizeof(segments));
	memcpy(bytes + 2 + sizeof(segments), jpeg.bytes + 2, jpeg.size - 2);
	r = recode(bytes, size, RECODE_NO_INDEX);
	CHECK(memmem(r.bytes, r.size, segments, 11));
	CHECK(memmem(r.bytes, r.size, segments + 11, 11));
	free(r.bytes);
	free(bytes);
	free(jpeg.bytes);
}

static void damaged_jpegs_are_refused(void)
{
	struct jpeg jpeg = encode(&KIND_PHOTO);
	struct recoded r = { 0 };

	CHECK(codec_recode(recoder, jpeg.bytes, jpeg.size / 2, 0, NULL, &r) ==
	      -EBADMSG);
	CHECK(codec_recoder_message(recoder)[0]);
	CHECK(codec_recode(recoder, jpeg.bytes, 1, 0, NULL, &r) == -EBADMSG);
	CHECK(!r.bytes);
	free(jpeg.bytes);
}

static void truncated_arithmetic_codes_are_refused(void)
{
	struct recoded r = { 0 };
	uint8_t *bytes;
	size_t size;

	if (!has_arithmetic(__func__))
		return;
	encode_arithmetic(64, 96, true, &bytes, &size);
	r = recode(bytes, size, RECODE_NO_INDEX);
	free(r.bytes);
	r = (struct recoded){ 0 };
	CHECK(codec_recode(recoder, bytes, size / 2, 0, NULL, &r) == -EBADMSG);
	CHECK(strstr(codec_recoder_message(recoder), "premature end"));
	free(bytes);
}

/* 65520 x 61680 pixels of a few hundred bytes. */
static void bombs_are_refused(void)
{
	uint8_t bytes[sizeof(JPEG_HALF)];
	uint8_t *frame;
	struct recoded r = { 0 };

	memcpy(bytes, JPEG_HALF, sizeof(bytes));
	frame = memmem(bytes, sizeof(bytes), "\xff\xc0", 2);
	memset(frame + 5, 0xf0, 4);
	CHECK(codec_recode(recoder, bytes, sizeof(bytes), 0, NULL, &r) ==
	      -EBADMSG);
	CHECK(strstr(codec_recoder_message(recoder), "too many"));
}

int main(void)
{
	CHECK(!codec_recoder_open(&recoder));
	CHECK(!baseline_open(&baseline));
	CHECK(!codec_open(&codec));
	every_kind_keeps_its_pixels();
	tables_of_its_own_make_it_smaller();
	tables_are_shared();
	tables_of_its_own_where_they_gain();
	damaged_jpegs_are_not_counted();
	twice_is_once();
	other_segments_stay();
	damaged_jpegs_are_refused();
	truncated_arithmetic_codes_are_refused();
	bombs_are_refused();
	codec_close(codec);
	baseline_close(baseline);
	codec_recoder_close(recoder);
	codec_recoder_close(NULL);
	return 0;
}
