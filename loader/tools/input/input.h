/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of samples for mkfs.beton: directories of images, archives, tables
 * or datasets. A source has a fixed number of samples with the same named
 * fields. It returns the values of any sample, in any order, to several
 * threads. Each kind of source is a row of kinds[] in input.c. All bytes of a
 * source are hostile until they were checked.
 */
#ifndef LOADER_TOOLS_INPUT_INPUT_H
#define LOADER_TOOLS_INPUT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "beton/batch.h"
#include "fs/util/log.h"

enum {
	INPUT_NAME_SIZE = 256, /* of a field, with its NUL */
	INPUT_WHY_SIZE = 160,
	/* A larger value does not fit into a dataset, whose pages have at most
	   2 GiB. */
	INPUT_FIELDS_MAX = 256,
};

#define INPUT_VALUE_MAX ((uint64_t)2 << 30)

/* The types of values that sources have. mkfs/mapping.c maps them to types of
   fields. */
enum input_type {
	INPUT_IMAGE, /* an image file, or pixels: see struct input_value */
	INPUT_INT,   /* `integer` */
	INPUT_FLOAT, /* `real` */
	INPUT_TEXT,  /* `bytes`: UTF-8 without a NUL; it can become a class */
	INPUT_BYTES, /* `bytes` */
	INPUT_JSON,  /* `bytes`: JSON without a NUL */
	INPUT_ARRAY, /* `bytes`: dtype and shape of the field, C order, packed
		      */
};

struct input_field {
	char name[INPUT_NAME_SIZE];
	enum input_type type;
	char dtype[BETON_DTYPE_SIZE]; /* arrays: as NumPy, "<f4" */
	uint32_t ndim;
	uint64_t shape[BETON_MAX_NDIM];
	/* Integers: value i has the i-th name. NULL: no names. Owned by the
	   input. */
	const char *const *classes;
	size_t num_classes;
	bool is_tensor; /* arrays: of PyTorch, not of NumPy */
	uint32_t index; /* for the kind's own use */
	/* Why no value can be read, with what to do. Empty: values can be read.
	   A mapping refuses such a field unless --fields drops it. */
	char refused[INPUT_WHY_SIZE];
};

struct input_value {
	const void *bytes; /* valid until the reader's next call */
	uint64_t size;
	int64_t integer;
	double real;
	/* Images: 0 if `bytes` are an image file. Otherwise they are rows of
	   8-bit pixels without gaps, gray (1 channel), RGB or RGBA. */
	uint32_t channels;
	uint32_t width;
	uint32_t height;
	/* Images: as an existing dataset stores them. mkfs.beton keeps the form
	   of such an image unless an option asks for another. */
	bool stored;
};

/* Why a sample cannot be read. */
struct input_error {
	bool fatal; /* not the sample's fault: the next sample would fail too */
	char why[INPUT_WHY_SIZE];
};

struct input;
struct input_reader;

/* A path of the command line. */
struct input_path {
	const char *path; /* "-" is standard input */
	struct stat st;	  /* all zero for standard input and a URL */
	/* The first bytes of a regular file. */
	uint8_t head[16];
	size_t head_size;
};

struct input_kind {
	const char *name;  /* "webdataset" */
	const char *words; /* in messages: "WebDataset shards (.tar)" */
	/* The library that this build lacks, with what to install: "libhdf5:
	   install libhdf5-dev". NULL: the kind works. */
	const char *missing;
	bool (*matches)(const struct input_path *path);
	/*
	 * Opens sources of this kind as one input; their samples follow each
	 * other. Finds fields and the number of samples, checks what it can at
	 * a bounded cost, and logs failures with the path and the place in it.
	 */
	int (*open)(const struct input_path *paths, size_t num_paths,
		    struct log *log, struct input **out);
	/* Makes the state of one thread. */
	int (*reader_open)(struct input *in, struct input_reader **out);
	/*
	 * Reads the fields i with wanted[i] of a sample into values[i]. 0 or
	 * -errno with *error set; not logged.
	 */
	int (*read)(struct input_reader *reader, uint64_t sample,
		    const bool *wanted, struct input_value *values,
		    struct input_error *error);
	void (*reader_close)(struct input_reader *reader); /* takes NULL */
	/* Prints where a sample comes from, for messages: a path, with a line
	   or an index if the path has several samples. */
	void (*describe)(const struct input *in, uint64_t sample, char *out,
			 size_t size);
	void (*close)(struct input *in); /* takes NULL */
};

/* The first member of every kind's own struct. Immutable once open. */
struct input {
	const struct input_kind *kind;
	struct log *log;
	uint64_t num_samples;
	struct input_field *fields;
	size_t num_fields;
	uint64_t ignored; /* files that are no samples, for the summary */
};

/* The first member of every kind's reader. */
struct input_reader {
	struct input *input;
	struct input_memory *memory; /* one per field, for its values */
};

extern const struct input_kind input_beton, input_directory, input_hdf5,
	input_list, input_litdata, input_lmdb, input_manifest, input_mds,
	input_numpy, input_parquet, input_tfrecord, input_webdataset;

/* Returns the kinds and sets *n to their number. */
const struct input_kind *const *input_kinds(size_t *n);

/*
 * Opens SOURCE operands as one input. All are of one kind, which their names
 * and first bytes determine. Failures are logged.
 */
int input_open(char *const *sources, size_t num_sources, struct log *log,
	       struct input **out);
void input_close(struct input *in); /* takes NULL */

/* Bytes of the text of input_advice(). */
enum { INPUT_ADVICE_SIZE = 256 };

/* "; did you mean `NEAREST'?", or "; it has A, B" with the fields, for a name
   that no field has. Returns `out`. */
const char *input_advice(const struct input *in, const char *name,
			 char out[INPUT_ADVICE_SIZE]);

/* --- for kinds ----------------------------------------------------------- */

/* Memory of a reader that only grows. */
struct input_memory {
	uint8_t *bytes;
	size_t room;
};

/* Makes room for `size` bytes and one more. Growing loses the content.
   -ENOMEM. */
int input_reserve(struct input_memory *memory, size_t size);
void input_memory_fini(struct input_memory *memory);

/* Makes a reader of `size` bytes, zeros but for its input and its memory.
   -ENOMEM. */
int input_reader_new(struct input *in, size_t size, void *out);
void input_reader_free(struct input_reader *reader); /* takes NULL */

/* Reads a whole regular file; never waits for a FIFO. -errno, -EINVAL if it is
   another kind of file, -EFBIG above INPUT_VALUE_MAX. */
int input_read_file(const char *path, struct input_memory *memory,
		    uint64_t *size);

/* Words for an error of input_read_file(). */
const char *input_file_why(int error);

/* Returns whether -errno is the fault of a sample or its file. Otherwise it is
   that of the machine, a disk or a server, which affects other samples too. */
bool input_is_own_fault(int error);

/* Sets *error by a format, and returns `code`. -ENOMEM and errors of a disk or
   server are fatal. */
int input_refuse(struct input_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds a field to in->fields, with name, type and zeros. Returns NULL if memory
   is short; logged. A name of more than 255 bytes is refused. */
struct input_field *input_add_field(struct input *in, const char *name,
				    enum input_type type);

/* Returns whether a name ends in one of the extensions, "jpg|jpeg", in upper or
   lower case. */
bool input_has_extension(const char *name, const char *extensions);

#endif
