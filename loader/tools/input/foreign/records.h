/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shards of samples, as MosaicML's MDS and LitData write them: a shard is the
 * number of samples, a table of offsets, and the samples. A sample is the sizes
 * of its values, then the values.
 */
#ifndef LOADER_TOOLS_INPUT_FOREIGN_RECORDS_H
#define LOADER_TOOLS_INPUT_FOREIGN_RECORDS_H

#include <jansson.h>

#include "loader/tools/input/foreign/unpacked.h"
#include "loader/tools/input/input.h"

struct record_column;

/* An array as a value describes it. */
struct record_array {
	char dtype[BETON_DTYPE_SIZE];
	unsigned element; /* bytes */
	uint32_t ndim;
	uint64_t shape[BETON_MAX_NDIM];
	uint64_t at; /* of the elements, in the value */
};

/* How a library writes values of one type. A row has one function at most:
   without one, the value is its bytes. */
struct record_codec {
	const char *name;
	enum input_type type;
	const char *refused; /* why a field of this type cannot be read */
	unsigned size;	     /* of a number */
	bool is_unsigned;
	int (*read)(const struct record_codec *codec, const uint8_t *bytes,
		    uint64_t size, struct input_value *out,
		    struct input_error *error);
	/* Returns false if the value is damaged. Members that the column has
	   are set before. */
	bool (*array)(const struct record_column *column, const uint8_t *bytes,
		      uint64_t size, struct record_array *out);
};

struct record_column {
	const struct record_codec *codec;
	uint64_t fixed; /* bytes of each value; 0: a sample contains them */
	struct record_array array; /* as far as the index describes it */
};

enum record_packing {
	RECORD_PLAIN,
	RECORD_WHOLE,	/* the file is compressed */
	RECORD_SAMPLES, /* each sample is */
	RECORD_FRAMES,	/* some samples together, as LitData's "batch" */
};

struct record_shard {
	char *path;
	enum record_packing packing;
	uint64_t most; /* bytes of the decompressed file; 0: not known */
	uint64_t first;
	uint64_t num_samples;
};

struct records {
	struct input in;
	struct record_column *columns; /* one per field */
	struct record_shard *shards;
	size_t num_shards;
	size_t room;
	struct unpacked unpacked;
};

/* Adds the fields and shards of a directory. *first is an object for the
   caller's use, NULL at first, and freed at the end. */
typedef int records_add_fn(struct records *q, const char *directory,
			   json_t **first);

/* Opens directories of a kind, and reads their first samples for the shapes of
   arrays and for bytes that are images. Failures are logged. */
int records_open(const struct input_kind *kind, const struct input_path *paths,
		 size_t num_paths, struct log *log, records_add_fn *add,
		 struct input **out);
/* Adds a field. The caller sets members of *out. */
int records_add_column(struct records *q, const char *name,
		       const struct record_codec *codec,
		       struct record_column **out);
/* Adds a shard; takes over nothing. `name` is a file name in `directory`, and
   refused if it is anything else. */
int records_add_shard(struct records *q, const char *directory,
		      const char *name, const struct record_shard *shard);
/* The functions of a kind. */
int records_reader_open(struct input *in, struct input_reader **out);
int records_read(struct input_reader *reader, uint64_t sample,
		 const bool *wanted, struct input_value *values,
		 struct input_error *error);
void records_reader_close(struct input_reader *reader);
void records_describe(const struct input *in, uint64_t sample, char *out,
		      size_t size);
void records_close(struct input *in);

/* Functions of codecs: a little-endian integer or float of codec->size bytes;
   an integer or float as text; pixels as Pillow has them. */
int record_read_integer(const struct record_codec *codec, const uint8_t *bytes,
			uint64_t size, struct input_value *out,
			struct input_error *error);
int record_read_float(const struct record_codec *codec, const uint8_t *bytes,
		      uint64_t size, struct input_value *out,
		      struct input_error *error);
int record_read_decimal(const struct record_codec *codec, const uint8_t *bytes,
			uint64_t size, struct input_value *out,
			struct input_error *error);
int record_read_pixels(const struct record_codec *codec, const uint8_t *bytes,
		       uint64_t size, struct input_value *out,
		       struct input_error *error);

/* Sets the dtype of an array by NumPy's name, "float32". Returns false if a
   dataset has no such array. */
bool record_set_dtype(struct record_array *a, const char *name);

#endif
