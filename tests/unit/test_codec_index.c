/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/codec/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/image/jpeg/baseline.h"
#include "tests/unit/encoded.h"
#include "tests/unit/jpegs.h"
#include "tests/unit/t.h"

static struct codec_indexer *indexer;
static struct baseline *baseline;

static struct jpeg add_index(const struct jpeg *jpeg, uint32_t step)
{
	struct jpeg out = { 0 };

	CHECK(!codec_index(indexer, jpeg->bytes, jpeg->size, step, &out.bytes,
			   &out.size));
	return out;
}

static uint32_t stored_step(const struct jpeg *jpeg)
{
	struct baseline_image image;
	struct entry_index index;

	CHECK(!baseline_header(baseline, jpeg->bytes, jpeg->size, &image));
	return baseline_stored_index(baseline, &image, &index) ? 0 : index.step;
}

static void only_a_segment_is_added(void)
{
	struct jpeg jpeg = encode(&KIND_PHOTO);
	struct jpeg with = add_index(&jpeg, 4);
	size_t more = with.size - jpeg.size;
	size_t at = 0;

	while (with.bytes[at] == jpeg.bytes[at] && at < jpeg.size - 1)
		at++;
	/* 0xff of the next marker is the same. */
	CHECK(with.bytes[at] == ENTRY_MARKER && with.bytes[at - 1] == 0xff);
	CHECK(!memcmp(with.bytes + at + more, jpeg.bytes + at, jpeg.size - at));
	CHECK(stored_step(&with) == 4 && !stored_step(&jpeg));
	free(with.bytes);
	free(jpeg.bytes);
}

static void once_is_enough(void)
{
	struct jpeg jpeg = encode(&KIND_PHOTO);
	struct jpeg with = add_index(&jpeg, INDEX_AUTO);
	struct jpeg again = { 0 };

	CHECK(codec_index(indexer, with.bytes, with.size, 1, &again.bytes,
			  &again.size) == -EEXIST);
	CHECK(!again.bytes);
	free(with.bytes);
	free(jpeg.bytes);
}

/* The step that an image gets if the caller asks for none. */
static uint32_t auto_step(const struct kind *kind)
{
	struct jpeg jpeg = encode(kind);
	struct jpeg with = add_index(&jpeg, INDEX_AUTO);
	uint32_t step = stored_step(&with);

	free(with.bytes);
	free(jpeg.bytes);
	return step;
}

static void a_row_has_four_entries(void)
{
	struct kind kind = KIND_PHOTO; /* MCUs of 16 pixels */

	kind.width = 37 * 16;
	CHECK(auto_step(&kind) == 10);
	kind.width = 16 * 16;
	CHECK(auto_step(&kind) == 4);
}

static void narrow_images_have_fewer_entries(void)
{
	struct kind kind = KIND_PHOTO;

	kind.width = 15 * 16;
	CHECK(auto_step(&kind) == 4);
	kind.width = 3 * 16;
	CHECK(auto_step(&kind) == 3);
}

/* 2500 rows of 16 MCUs. Their entries fill a segment more than once. */
static void an_index_too_large_becomes_coarser(void)
{
	const struct kind tall = {
		.width = 128,
		.height = 20000,
		.components = 3,
		.across = 1,
		.down = 1,
		.quality = 20,
	};

	CHECK(auto_step(&tall) == 16);
}

/* An index of other data, and a segment of another application. */
static void the_first_index_counts(void)
{
	static const uint8_t stale[] = "\xff\xe9\0\12beton\0\1";
	static const uint8_t foreign[] = "\xff\xe9\0\6abcd";
	struct jpeg jpeg = encode(&KIND_PHOTO);
	size_t at = 2 + 18; /* behind JFIF's */
	size_t n = 12 + 8;
	struct jpeg odd = { malloc(jpeg.size + n), jpeg.size + n };
	struct jpeg with;

	CHECK(odd.bytes);
	memcpy(odd.bytes, jpeg.bytes, at);
	memcpy(odd.bytes + at, stale, 12);
	memcpy(odd.bytes + at + 12, foreign, 8);
	memcpy(odd.bytes + at + n, jpeg.bytes + at, jpeg.size - at);
	with = add_index(&odd, 2);
	CHECK(stored_step(&with) == 2);
	free(with.bytes);
	free(odd.bytes);
	free(jpeg.bytes);
}

static void some_have_none(void)
{
	struct kind kind = KIND_PHOTO;
	struct jpeg jpeg;
	struct jpeg out;

	kind.restart = 3;
	jpeg = encode(&kind);
	CHECK(codec_index(indexer, jpeg.bytes, jpeg.size, 0, &out.bytes,
			  &out.size) == -ENOTSUP);
	CHECK(codec_index(indexer, jpeg.bytes, 1, 0, &out.bytes, &out.size) ==
	      -ENOTSUP);
	CHECK(codec_index(indexer, JPEG_CMYK, sizeof(JPEG_CMYK), 0, &out.bytes,
			  &out.size) == -ENOTSUP);
	free(jpeg.bytes);
}

int main(void)
{
	CHECK(!codec_indexer_open(&indexer));
	CHECK(!baseline_open(&baseline));
	only_a_segment_is_added();
	once_is_enough();
	a_row_has_four_entries();
	narrow_images_have_fewer_entries();
	an_index_too_large_becomes_coarser();
	the_first_index_counts();
	some_have_none();
	baseline_close(baseline);
	codec_indexer_close(indexer);
	codec_indexer_close(NULL);
	return 0;
}
