/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of LitData: index.json and chunks (.bin). */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"
#include "loader/tools/input/foreign/records.h"
#include "loader/tools/input/foreign/values.h"

/* Trees within trees of a sample. */
enum { DEPTH_MAX = 8 };

/* --- arrays -------------------------------------------------------------- */

/* By the format's numbers; NULL: no array of a dataset. */
static const char *const numpy_dtypes[] = {
	"int8",	  "int16",   "int32",	"int64",   "uint8", "uint16", "uint32",
	"uint64", "float16", "float32", "float64", NULL,    NULL,     "bool",
};

static const char *const torch_dtypes[] = {
	"float32", "float32", "float64", "float64", NULL,    NULL,   NULL,
	NULL,	   "float16", "float16", NULL,	    "uint8", "int8", "int16",
	"int16",   "int32",   "int32",	 "int64",   "int64", "bool", "uint16",
};

static bool set_numpy(struct record_array *a, uint32_t number)
{
	return number < ARRAY_LEN(numpy_dtypes) && numpy_dtypes[number] &&
	       record_set_dtype(a, numpy_dtypes[number]);
}

static bool set_torch(struct record_array *a, uint32_t number)
{
	return number < ARRAY_LEN(torch_dtypes) && torch_dtypes[number] &&
	       record_set_dtype(a, torch_dtypes[number]);
}

static uint32_t load_number(const uint8_t *bytes, bool is_big)
{
	uint32_t v = load32(bytes);

	return is_big ? __builtin_bswap32(v) : v;
}

/* {dtype, ndim, shape} in 32 bits each: little-endian for NumPy, big-endian for
   PyTorch. */
static bool read_head(const uint8_t *bytes, uint64_t size, bool is_torch,
		      struct record_array *out)
{
	if (size < 8 || !(is_torch ? set_torch(out, load_number(bytes, true))
				   : set_numpy(out, load_number(bytes, false))))
		return false;
	out->ndim = load_number(bytes + 4, is_torch);
	if (out->ndim > BETON_MAX_NDIM || !range_ok(8, 4 * out->ndim, size))
		return false;
	for (uint32_t d = 0; d < out->ndim; d++)
		out->shape[d] =
			load_number(bytes + 8 + (size_t)4 * d, is_torch);
	out->at = 8 + (uint64_t)4 * out->ndim;
	return true;
}

static bool read_numpy(const struct record_column *c, const uint8_t *bytes,
		       uint64_t size, struct record_array *out)
{
	(void)c;
	return read_head(bytes, size, false, out);
}

static bool read_tensor(const struct record_column *c, const uint8_t *bytes,
			uint64_t size, struct record_array *out)
{
	(void)c;
	return read_head(bytes, size, true, out);
}

/* One dimension; the index has the dtype. */
static bool read_flat(const struct record_column *c, const uint8_t *bytes,
		      uint64_t size, struct record_array *out)
{
	(void)bytes;
	out->ndim = 1;
	out->shape[0] = size / c->array.element;
	return size > 0;
}

/* --- formats of values --------------------------------------------------- */

#define PLAIN(name, type)                                                      \
	{                                                                      \
		name, type, NULL, 0, false, NULL, NULL                         \
	}
#define REFUSED(name, why)                                                     \
	{                                                                      \
		name, INPUT_BYTES, why, 0, false, NULL, NULL                   \
	}

static const struct record_codec codecs[] = {
	PLAIN("str", INPUT_TEXT),
	PLAIN("text", INPUT_TEXT),
	PLAIN("bytes", INPUT_BYTES),
	PLAIN("file", INPUT_BYTES),
	PLAIN("audio", INPUT_BYTES),
	PLAIN("video", INPUT_BYTES),
	PLAIN("pdf", INPUT_BYTES),
	PLAIN("mesh", INPUT_BYTES),
	PLAIN("nifti", INPUT_BYTES),
	PLAIN("jpeg", INPUT_IMAGE),
	PLAIN("png", INPUT_IMAGE),
	PLAIN("image", INPUT_IMAGE),
	PLAIN("tiff", INPUT_IMAGE),
	PLAIN("tifffile", INPUT_IMAGE),
	{ "int", INPUT_INT, NULL, 8, false, record_read_integer, NULL },
	{ "bool", INPUT_INT, NULL, 1, true, record_read_integer, NULL },
	{ "float", INPUT_FLOAT, NULL, 8, false, record_read_float, NULL },
	{ "pil", INPUT_IMAGE, NULL, 0, false, record_read_pixels, NULL },
	{ "numpy", INPUT_ARRAY, NULL, 0, false, NULL, read_numpy },
	{ "tensor", INPUT_ARRAY, NULL, 0, false, NULL, read_tensor },
	{ "no_header_numpy", INPUT_ARRAY, NULL, 0, false, NULL, read_flat },
	{ "no_header_tensor", INPUT_ARRAY, NULL, 0, false, NULL, read_flat },
	REFUSED("pickle", "pickled Python objects"),
	REFUSED("json", "LitData's binary form of lists and dictionaries"),
	REFUSED("jpeg_array", "several images in a value"),
	REFUSED("graph", "graphs"),
};

static const struct record_codec unknown =
	REFUSED("?", "a format that a dataset cannot hold");

static const struct record_codec *find_codec(const char *format)
{
	size_t n = strcspn(format, ":");

	for (size_t i = 0; i < ARRAY_LEN(codecs); i++)
		if (strlen(codecs[i].name) == n &&
		    !memcmp(codecs[i].name, format, n))
			return &codecs[i];
	return &unknown;
}

/* --- names of values ----------------------------------------------------- */

/* The leaves of a sample, a tree of dictionaries, lists and tuples. */
struct names {
	json_t *out; /* array of strings */
	const struct records *q;
	const char *path;
};

static int refuse_index(const struct records *q, const char *path,
			const char *what)
{
	log_error(q->in.log, "%s: %s", path, what);
	return -EBADMSG;
}

static bool child_name(const char *prefix, const json_t *keys, size_t i,
		       char *out, size_t size)
{
	const char *dot = *prefix ? "." : "";
	const json_t *key = json_array_get(keys, i);
	int n;

	if (json_is_string(key))
		n = snprintf(out, size, "%s%s%s", prefix, dot,
			     json_string_value(key));
	else
		n = snprintf(out, size, "%s%s%zu", prefix, dot, i);
	return n >= 0 && n < (int)size;
}

/* A node is {type, context, children_spec}; a leaf has no type. */
static bool walk(struct names *n, const json_t *node, const char *prefix,
		 unsigned depth)
{
	json_t *children = json_object_get(node, "children_spec");
	const char *context =
		json_string_value(json_object_get(node, "context"));
	char name[INPUT_NAME_SIZE];
	json_t *keys;
	bool is_good = true;

	if (json_is_null(json_object_get(node, "type")))
		return !json_array_append_new(
			n->out, json_string(*prefix ? prefix : "value"));
	if (depth == DEPTH_MAX || !json_is_array(children))
		return false;
	keys = context ? json_loads(context, JSON_DECODE_ANY, NULL) : NULL;
	for (size_t i = 0; i < json_array_size(children) && is_good; i++)
		is_good = child_name(prefix, keys, i, name, sizeof(name)) &&
			  walk(n, json_array_get(children, i), name, depth + 1);
	json_decref(keys);
	return is_good;
}

/* Sets *out to the names of n values. If the index has none, they are
   numbers. */
static int find_names(const struct records *q, const char *path,
		      const json_t *config, size_t n, json_t **out)
{
	const char *text =
		json_string_value(json_object_get(config, "data_spec"));
	json_t *spec = text ? json_loads(text, 0, NULL) : NULL;
	struct names names = { json_array(), q, path };
	char name[24];

	if (!names.out)
		return -ENOMEM;
	if (spec && (!walk(&names, json_array_get(spec, 1), "", 0) ||
		     json_array_size(names.out) != n)) {
		json_decref(spec);
		json_decref(names.out);
		return refuse_index(q, path, "damaged data_spec");
	}
	for (size_t i = 0; !spec && i < n; i++) {
		snprintf(name, sizeof(name), "%zu", i);
		json_array_append_new(names.out, json_string(name));
	}
	json_decref(spec);
	*out = names.out;
	return 0;
}

/* --- index.json ---------------------------------------------------------- */

static int add_column(struct records *q, const char *path, const char *name,
		      const char *format)
{
	const struct record_codec *codec = format ? find_codec(format) : NULL;
	const char *number = format ? strchr(format, ':') : NULL;
	struct record_column *c;
	unsigned long dtype;
	int r;

	if (!format || !name || !*name)
		return refuse_index(q, path, "damaged data_format");
	if (codec->array == read_flat) {
		struct record_array a = { .element = 0 };

		dtype = number ? strtoul(number + 1, NULL, 10) : UINT32_MAX;
		if (!(strstr(format, "tensor")
			      ? set_torch(&a, (uint32_t)dtype)
			      : set_numpy(&a, (uint32_t)dtype)))
			codec = &unknown;
		r = records_add_column(q, name, codec, &c);
		if (!r)
			c->array = a;
	} else {
		r = records_add_column(q, name, codec, &c);
	}
	if (!r && strstr(format, "tensor"))
		q->in.fields[q->in.num_fields - 1].is_tensor = true;
	return r;
}

static int add_columns(struct records *q, const char *path,
		       const json_t *config)
{
	json_t *formats = json_object_get(config, "data_format"), *names;
	size_t n = json_array_size(formats);
	int r;

	if (!n)
		return refuse_index(q, path, "no data_format");
	r = find_names(q, path, config, n, &names);
	if (r)
		return r;
	for (size_t i = 0; i < n && !r; i++)
		r = add_column(q, path,
			       json_string_value(json_array_get(names, i)),
			       json_string_value(json_array_get(formats, i)));
	json_decref(names);
	return r;
}

static int refuse(const struct records *q, const char *path, const char *what)
{
	log_error(q->in.log, "%s: %s", path, what);
	return -ENOTSUP;
}

/* Returns 0 if this room can read chunks of a configuration. */
static int find_packing(const struct records *q, const char *path,
			const json_t *config, enum record_packing *out)
{
	const char *compression =
		json_string_value(json_object_get(config, "compression"));
	const char *level =
		json_string_value(json_object_get(config, "compression_level"));
	const char *loader =
		json_string_value(json_object_get(config, "item_loader"));
	json_t *encryption = json_object_get(config, "encryption");

	if (encryption && !json_is_null(encryption))
		return refuse(q, path,
			      "encrypted chunks: write them again without "
			      "encryption");
	if (loader && strcmp(loader, "PyTreeLoader") != 0)
		return refuse(q, path,
			      "chunks of another loader than PyTreeLoader, for "
			      "example of tokens: write each sample as an "
			      "array");
	if (compression && strncmp(compression, "zstd", 4) != 0)
		return refuse(q, path,
			      "chunks in an unknown compression: write them "
			      "again with zstd or without compression");
	*out = !compression			   ? RECORD_PLAIN
	       : level && !strcmp(level, "batch")  ? RECORD_FRAMES
	       : level && !strcmp(level, "sample") ? RECORD_SAMPLES
						   : RECORD_WHOLE;
	return 0;
}

static int add_chunk(struct records *q, const char *directory, const char *path,
		     const json_t *chunk, enum record_packing packing)
{
	const char *name =
		json_string_value(json_object_get(chunk, "filename"));
	json_t *n = json_object_get(chunk, "chunk_size");
	json_int_t size =
		json_integer_value(json_object_get(chunk, "chunk_bytes"));
	struct record_shard s = { .packing = packing };

	if (!name || !json_is_integer(n) || json_integer_value(n) < 0)
		return refuse_index(q, path, "a damaged chunk");
	s.num_samples = (uint64_t)json_integer_value(n);
	/* Older versions leave out the table of offsets. */
	if (size > 0 && s.num_samples <= UINT32_MAX)
		s.most = (uint64_t)size + 4 * (s.num_samples + 2);
	return records_add_shard(q, directory, name, &s);
}

static bool same_config(const json_t *a, const json_t *b)
{
	static const char *const keys[] = { "data_format", "data_spec" };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (!json_equal(json_object_get(a, keys[i]),
				json_object_get(b, keys[i])))
			return false;
	return true;
}

static int add_index(struct records *q, const char *directory, const char *path,
		     const json_t *root, json_t **first)
{
	json_t *chunks = json_object_get(root, "chunks");
	json_t *config = json_object_get(root, "config");
	enum record_packing packing;
	int r;

	if (!json_is_array(chunks) || !json_is_object(config))
		return refuse_index(q, path, "no chunks, or no config");
	r = find_packing(q, path, config, &packing);
	if (!r && !*first) {
		*first = json_incref(config);
		r = add_columns(q, path, config);
	} else if (!r && !same_config(*first, config)) {
		r = refuse_index(q, path,
				 "other values than in the first directory: "
				 "convert the directories apart");
	}
	for (size_t i = 0; i < json_array_size(chunks) && !r; i++)
		r = add_chunk(q, directory, path, json_array_get(chunks, i),
			      packing);
	return r;
}

static int add_directory(struct records *q, const char *directory,
			 json_t **first)
{
	char path[PATH_MAX];
	json_t *root;
	int r;

	if (snprintf(path, sizeof(path), "%s/index.json", directory) >=
	    (int)sizeof(path))
		return refuse_index(q, directory, "a path too long");
	r = input_load_json(path, q->in.log, &root);
	if (r)
		return r;
	r = add_index(q, directory, path, root, first);
	json_decref(root);
	return r;
}

static int litdata_open(const struct input_path *paths, size_t num_paths,
			struct log *log, struct input **out)
{
	return records_open(&input_litdata, paths, num_paths, log,
			    add_directory, out);
}

static bool litdata_matches(const struct input_path *path)
{
	char key[16];

	return S_ISDIR(path->st.st_mode) &&
	       input_first_key(path->path, "index.json", key, sizeof(key)) &&
	       (!strcmp(key, "chunks") || !strcmp(key, "config") ||
		!strcmp(key, "updated_at"));
}

const struct input_kind input_litdata = {
	.name = "litdata",
	.words = "a directory of LitData (.bin)",
	.matches = litdata_matches,
	.open = litdata_open,
	.reader_open = records_reader_open,
	.read = records_read,
	.reader_close = records_reader_close,
	.describe = records_describe,
	.close = records_close,
};
