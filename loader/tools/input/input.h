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
#include "fs/base/util/log.h"

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
	   A mapping refuses such a field unless --fields drops it, or names one
	   of `types`. */
	char refused[INPUT_WHY_SIZE];
	/* The types that the kind's cast() makes, "mask|list". NULL: none. */
	const char *types;
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

/* The samples that a reading needs, in the order in which they are read. */
struct input_order {
	uint64_t (*at)(const void *arg, uint64_t i);
	const void *arg;
	uint64_t count;
};

/* A path of the command line. */
struct input_path {
	const char *path; /* "-" is standard input */
	struct stat st;	  /* all zero for standard input and a URL */
	/* The first bytes of a regular file. */
	uint8_t head[16];
	size_t head_size;
};

/* The sources of an input, and how to read them. */
struct input_setup {
	const struct input_path *paths;
	size_t num_paths;
	/* For kinds that have them: the split of a dataset, NULL if none is
	   named, and how to encode images that become parts of a value. */
	const char *split;
	const char *mode;
	int quality;
	int max_resolution;
	struct log *log;
};

struct input_kind {
	const char *name;  /* "webdataset" */
	const char *words; /* in messages: "WebDataset shards (.tar)" */
	bool has_splits;
	bool (*matches)(const struct input_path *path);
	/*
	 * Opens sources of this kind as one input; their samples follow each
	 * other. Finds fields and the number of samples, checks what it can at
	 * a bounded cost, and logs failures with the path and the place in it.
	 */
	int (*open)(const struct input_setup *setup, struct input **out);
	/* Adds a field with the values of another one in a type that its
	   `types` contains. Failures are logged. NULL: fields have no types. */
	int (*cast)(struct input *in, size_t field, const char *type);
	/*
	 * Begins a reading of the fields i with wanted[i]: from now on, only
	 * these samples are read, about in this order. No reader is open.
	 * Failures are logged. NULL: any sample can be read at any time.
	 */
	int (*begin)(struct input *in, const bool *wanted,
		     const struct input_order *order);
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

/* The first member of every kind's own struct. Immutable once open, except for
   cast() and begin(). */
struct input {
	const struct input_kind *kind;
	const char *title; /* in messages; NULL: the kind's words */
	struct log *log;
	uint64_t num_samples;
	struct input_field *fields; /* only cast() adds some to an open input */
	size_t num_fields;
	uint64_t ignored;  /* files that are no samples, for the summary */
	bool keeps_images; /* unless an option asks for another form */
};

/* The first member of every kind's reader. */
struct input_reader {
	struct input *input;
	struct input_memory *memory; /* one per field, for its values */
};

void input_close(struct input *in); /* takes NULL */

/* Returns a name of the input for messages. */
const char *input_title(const struct input *in);

/* Begins a reading, see struct input_kind. */
int input_begin(struct input *in, const bool *wanted,
		const struct input_order *order);

/* Bytes of the text of input_advice(). */
enum { INPUT_ADVICE_SIZE = 256 };

/* "; did you mean `NEAREST'?", or "; it has A, B" with the fields, for a name
   that no field has. Returns `out`. */
const char *input_advice(const struct input *in, const char *name,
			 char out[INPUT_ADVICE_SIZE]);

/* --- for kinds ----------------------------------------------------------- */

/* Makes an input of `size` bytes, zeros but for its kind and its log. Returns
   NULL if memory is short; logged. */
void *input_new(const struct input_kind *kind, size_t size, struct log *log);

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

/* Returns the bytes of a value of an array field. */
uint64_t input_array_size(const struct input_field *f);

/* Returns whether a name ends in one of the extensions, "jpg|jpeg", in upper or
   lower case. */
bool input_has_extension(const char *name, const char *extensions);

#endif
