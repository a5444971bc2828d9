/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of MosaicML Streaming: index.json and shards (.mds). */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/util/bytes.h"
#include "loader/tools/input/foreign/records.h"
#include "loader/tools/input/foreign/values.h"

/* --- arrays -------------------------------------------------------------- */

/* The format's numbers of dtypes. */
static const struct {
	uint8_t number;
	const char *name;
} dtypes[] = {
	{ 8, "uint8" },	 { 9, "int8" },	    { 16, "uint16" },
	{ 17, "int16" }, { 18, "float16" }, { 32, "uint32" },
	{ 33, "int32" }, { 34, "float32" }, { 64, "uint64" },
	{ 65, "int64" }, { 66, "float64" },
};

static bool read_dtype(uint8_t number, struct record_array *out)
{
	for (size_t i = 0; i < ARRAY_LEN(dtypes); i++)
		if (dtypes[i].number == number)
			return record_set_dtype(out, dtypes[i].name);
	return false;
}

/* A byte has the number of dimensions and the size of a length. */
static bool read_shape(const uint8_t *bytes, uint64_t size,
		       struct record_array *out)
{
	uint64_t width;

	if (out->at >= size)
		return false;
	width = 1u << (bytes[out->at] & 3);
	out->ndim = bytes[out->at++] >> 2;
	if (out->ndim > BETON_MAX_NDIM ||
	    !range_ok(out->at, out->ndim * width, size))
		return false;
	for (uint32_t d = 0; d < out->ndim; d++, out->at += width) {
		out->shape[d] = 0;
		memcpy(&out->shape[d], bytes + out->at, width);
	}
	return true;
}

/* Each value describes the dtype and shape that its encoding lacks. */
static bool read_array(const struct record_column *c, const uint8_t *bytes,
		       uint64_t size, struct record_array *out)
{
	if (!c->array.element && (!size || !read_dtype(bytes[out->at++], out)))
		return false;
	return c->array.ndim || read_shape(bytes, size, out);
}

/* --- encodings ----------------------------------------------------------- */

#define INTEGER(name, size, is_unsigned)                                       \
	{                                                                      \
		name, INPUT_INT, NULL, size, is_unsigned, record_read_integer, \
			NULL                                                   \
	}
#define FLOAT(name, size)                                                      \
	{                                                                      \
		name, INPUT_FLOAT, NULL, size, false, record_read_float, NULL  \
	}
#define PLAIN(name, type)                                                      \
	{                                                                      \
		name, type, NULL, 0, false, NULL, NULL                         \
	}
#define REFUSED(name, why)                                                     \
	{                                                                      \
		name, INPUT_BYTES, why, 0, false, NULL, NULL                   \
	}

static const struct record_codec codecs[] = {
	PLAIN("bytes", INPUT_BYTES),
	PLAIN("str", INPUT_TEXT),
	PLAIN("json", INPUT_JSON),
	PLAIN("jpeg", INPUT_IMAGE),
	PLAIN("png", INPUT_IMAGE),
	INTEGER("int", 8, false),
	INTEGER("int8", 1, false),
	INTEGER("int16", 2, false),
	INTEGER("int32", 4, false),
	INTEGER("int64", 8, false),
	INTEGER("uint8", 1, true),
	INTEGER("uint16", 2, true),
	INTEGER("uint32", 4, true),
	INTEGER("uint64", 8, true),
	FLOAT("float16", 2),
	FLOAT("float32", 4),
	FLOAT("float64", 8),
	{ "pil", INPUT_IMAGE, NULL, 0, false, record_read_pixels, NULL },
	{ "ndarray", INPUT_ARRAY, NULL, 0, false, NULL, read_array },
	{ "str_int", INPUT_INT, NULL, 0, false, record_read_decimal, NULL },
	{ "str_float", INPUT_FLOAT, NULL, 0, false, record_read_decimal, NULL },
	REFUSED("str_decimal", "decimal numbers"),
	REFUSED("pkl", "pickled Python objects"),
};

static const struct record_codec unknown =
	REFUSED("?", "an encoding that a dataset cannot hold");

static const struct record_codec *find_codec(const char *encoding)
{
	size_t n = strcspn(encoding, ":");

	for (size_t i = 0; i < ARRAY_LEN(codecs); i++)
		if (strlen(codecs[i].name) == n &&
		    !memcmp(codecs[i].name, encoding, n) &&
		    (!encoding[n] || codecs[i].array))
			return &codecs[i];
	return &unknown;
}

/* "ndarray", "ndarray:float32", "ndarray:float32:2,3". */
static bool parse_array(const char *encoding, struct record_array *out)
{
	const char *dtype = strchr(encoding, ':'), *shape;
	char name[16] = "";
	size_t n;

	if (!dtype)
		return true;
	dtype++;
	n = strcspn(dtype, ":");
	if (n >= sizeof(name))
		return false;
	memcpy(name, dtype, n);
	if (!record_set_dtype(out, name))
		return false;
	shape = dtype[n] ? dtype + n + 1 : NULL;
	while (shape && out->ndim < BETON_ARRAY_MAX_NDIM) {
		char *end;

		out->shape[out->ndim++] = strtoull(shape, &end, 10);
		if (end == shape || (*end && *end != ','))
			return false;
		shape = *end ? end + 1 : NULL;
	}
	return !shape;
}

/* --- index.json ---------------------------------------------------------- */

static int refuse_index(struct records *q, const char *path, const char *what)
{
	log_error(q->in.log, "%s: %s", path, what);
	return -EBADMSG;
}

static int add_column(struct records *q, const char *path, const char *name,
		      const char *encoding, const json_t *size)
{
	const struct record_codec *codec = find_codec(encoding);
	struct record_column *c;
	int r = records_add_column(q, name, codec, &c);

	if (r)
		return r;
	if (json_is_integer(size)) {
		if (json_integer_value(size) <= 0 ||
		    (uint64_t)json_integer_value(size) > INPUT_VALUE_MAX)
			return refuse_index(q, path, "damaged column_sizes");
		c->fixed = (uint64_t)json_integer_value(size);
	} else if (!json_is_null(size)) {
		return refuse_index(q, path, "damaged column_sizes");
	}
	if (codec->array && !parse_array(encoding, &c->array))
		return refuse_index(q, path, "damaged encoding of an array");
	return 0;
}

static int add_columns(struct records *q, const char *path, json_t *shard)
{
	json_t *names = json_object_get(shard, "column_names");
	json_t *encodings = json_object_get(shard, "column_encodings");
	json_t *sizes = json_object_get(shard, "column_sizes");
	size_t n = json_array_size(names);
	int r = 0;

	if (!n || json_array_size(encodings) != n ||
	    json_array_size(sizes) != n)
		return refuse_index(q, path, "damaged columns");
	for (size_t i = 0; i < n && !r; i++) {
		const char *name = json_string_value(json_array_get(names, i));
		const char *encoding =
			json_string_value(json_array_get(encodings, i));

		if (!name || !*name || !encoding)
			return refuse_index(q, path, "damaged columns");
		r = add_column(q, path, name, encoding,
			       json_array_get(sizes, i));
	}
	return r;
}

static bool same_columns(const json_t *a, const json_t *b)
{
	static const char *const keys[] = { "column_names", "column_encodings",
					    "column_sizes" };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (!json_equal(json_object_get(a, keys[i]),
				json_object_get(b, keys[i])))
			return false;
	return true;
}

static const char *file_name(const json_t *shard, const char *key)
{
	return json_string_value(
		json_object_get(json_object_get(shard, key), "basename"));
}

/* The library leaves a decompressed file beside the compressed one. */
static bool is_there(const char *directory, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", directory, name) <
		       (int)sizeof(path) &&
	       access(path, R_OK) == 0;
}

static int add_shard(struct records *q, const char *directory, const char *path,
		     const json_t *shard)
{
	const char *format =
		json_string_value(json_object_get(shard, "format"));
	const char *packed = file_name(shard, "zip_data");
	const char *raw = file_name(shard, "raw_data");
	const char *compression =
		json_string_value(json_object_get(shard, "compression"));
	json_int_t n = json_integer_value(json_object_get(shard, "samples"));
	json_int_t size = json_integer_value(
		json_object_get(json_object_get(shard, "raw_data"), "bytes"));
	struct record_shard s = { .num_samples = (uint64_t)n };

	if (!format || strcmp(format, "mds") != 0) {
		log_error(q->in.log,
			  "%s: shards of format '%.40s': write them again by "
			  "MDSWriter",
			  path, format ? format : "?");
		return -ENOTSUP;
	}
	if (!raw || n < 0 || size < 0)
		return refuse_index(q, path, "a damaged shard");
	if (!compression || !packed || is_there(directory, raw))
		return records_add_shard(q, directory, raw, &s);
	if (strncmp(compression, "zstd", 4) != 0) {
		log_error(q->in.log,
			  "%s: shards compressed by %.40s: write them again "
			  "with zstd or without compression",
			  path, compression);
		return -ENOTSUP;
	}
	s.packing = RECORD_WHOLE;
	s.most = (uint64_t)size;
	return records_add_shard(q, directory, packed, &s);
}

static int add_directory(struct records *q, const char *directory,
			 json_t **first)
{
	char path[PATH_MAX];
	json_t *root, *shards, *shard;
	size_t i;
	int r;

	if (snprintf(path, sizeof(path), "%s/index.json", directory) >=
	    (int)sizeof(path))
		return refuse_index(q, directory, "a path too long");
	r = input_load_json(path, q->in.log, &root);
	if (r)
		return r;
	shards = json_object_get(root, "shards");
	if (json_integer_value(json_object_get(root, "version")) != 2 ||
	    !json_is_array(shards))
		r = refuse_index(q, path, "not an index of version 2");
	for (i = 0; !r && i < json_array_size(shards); i++) {
		shard = json_array_get(shards, i);
		if (!*first) {
			*first = json_incref(shard);
			r = add_columns(q, path, shard);
		} else if (!same_columns(*first, shard)) {
			r = refuse_index(q, path,
					 "shards with other columns: convert "
					 "them apart");
		}
		r = r ? r : add_shard(q, directory, path, shard);
	}
	json_decref(root);
	return r;
}

static int mds_open(const struct input_path *paths, size_t num_paths,
		    struct log *log, struct input **out)
{
	return records_open(&input_mds, paths, num_paths, log, add_directory,
			    out);
}

static bool mds_matches(const struct input_path *path)
{
	char key[16];

	return S_ISDIR(path->st.st_mode) &&
	       input_first_key(path->path, "index.json", key, sizeof(key)) &&
	       !strcmp(key, "shards");
}

const struct input_kind input_mds = {
	.name = "mds",
	.words = "a directory of MosaicML Streaming (.mds)",
	.matches = mds_matches,
	.open = mds_open,
	.reader_open = records_reader_open,
	.read = records_read,
	.reader_close = records_reader_close,
	.describe = records_describe,
	.close = records_close,
};
