/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/parquet/unpack.h"

#include <errno.h>
#include <lz4.h>
#include <string.h>
#include <zlib.h>
#ifdef HAVE_ZSTD
#	include <zstd.h>
#endif

#include "fs/util/bytes.h"
#include "loader/tools/input/parquet/snappy.h"

static bool unpack_none(const uint8_t *packed, size_t packed_size, uint8_t *out,
			size_t size)
{
	if (packed_size != size)
		return false;
	memcpy(out, packed, size);
	return true;
}

static bool unpack_lz4(const uint8_t *packed, size_t packed_size, uint8_t *out,
		       size_t size)
{
	return packed_size <= INT32_MAX && size <= INT32_MAX &&
	       LZ4_decompress_safe((const char *)packed, (char *)out,
				   (int)packed_size,
				   (int)size) == (int64_t)size;
}

static bool unpack_gzip(const uint8_t *packed, size_t packed_size, uint8_t *out,
			size_t size)
{
	enum { GZIP_OR_ZLIB = 32 + MAX_WBITS };
	z_stream z = {
		.next_in = (Bytef *)(uintptr_t)packed,
		.avail_in = (uInt)packed_size,
		.next_out = out,
		.avail_out = (uInt)size,
	};
	bool is_whole;

	if (packed_size > UINT32_MAX || size > UINT32_MAX ||
	    inflateInit2(&z, GZIP_OR_ZLIB) != Z_OK)
		return false;
	is_whole = inflate(&z, Z_FINISH) == Z_STREAM_END && !z.avail_out;
	inflateEnd(&z);
	return is_whole;
}

#ifdef HAVE_ZSTD
static bool unpack_zstd(const uint8_t *packed, size_t packed_size, uint8_t *out,
			size_t size)
{
	return ZSTD_decompress(out, size, packed, packed_size) == size;
}
#else
#	define unpack_zstd NULL
#endif

/* By the numbers of the format. */
static const struct codec_row {
	const char *name;
	bool (*unpack)(const uint8_t *packed, size_t packed_size, uint8_t *out,
		       size_t size);
	const char *package;
} codecs[] = {
	[0] = { "none", unpack_none, NULL },
	[1] = { "Snappy", snappy_unpack, NULL },
	[2] = { "gzip", unpack_gzip, NULL },
	[3] = { "LZO", NULL, NULL },
	[4] = { "Brotli", NULL, NULL },
	[5] = { "LZ4 in Hadoop's frames", NULL, NULL },
	[6] = { "zstd", unpack_zstd, "libzstd-dev" },
	[7] = { "LZ4", unpack_lz4, NULL },
};

int pq_unpack(int codec, const uint8_t *packed, size_t packed_size,
	      uint8_t *out, size_t size, struct input_error *error)
{
	const struct codec_row *row;

	if (codec < 0 || (size_t)codec >= ARRAY_LEN(codecs))
		return input_refuse(error, -EBADMSG, "unknown compression %d",
				    codec);
	row = &codecs[codec];
	if (!row->unpack && row->package)
		return input_refuse(error, -ENOTSUP,
				    "compressed by %s: install %s, and build "
				    "betonfs again",
				    row->name, row->package);
	if (!row->unpack)
		return input_refuse(error, -ENOTSUP,
				    "compressed by %s: write the file again "
				    "with zstd or Snappy",
				    row->name);
	if (!row->unpack(packed, packed_size, out, size))
		return input_refuse(error, -EBADMSG,
				    "a page does not decompress to %zu bytes "
				    "(%s)",
				    size, row->name);
	return 0;
}
