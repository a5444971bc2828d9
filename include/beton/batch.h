/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The batch file: the samples that betonfs delivers to a trainer for one
 * training step. beton-batch(5) describes it in prose, with an example.
 *
 * The file consists of these parts, in this order:
 *
 *   struct beton_batch_header                   at 0
 *   struct beton_batch_field [num_fields]       at fields_off
 *   the sampling spec, spec_size bytes of text  at spec_off, without NUL
 *   uint64_t ids [num_samples]                  at ids_off
 *   for each field: int32_t error [num_samples]  at error_off
 *   for each field: its column                   at column_off
 *
 * Everything is little-endian. The ids, every error array and every column
 * start at multiples of BETON_BATCH_ALIGN from the start of the file; gaps are
 * zero. A column has one of two forms:
 *
 *   BETON_COLUMN_FIXED     num_samples values of `stride` bytes each, in C
 *                          order, without gaps: the array is the tensor
 *                          (num_samples, shape...)
 *   BETON_COLUMN_VARIABLE  struct beton_batch_value [num_samples] at
 *                          column_off. Each points at its payload, which starts
 *                          at a multiple of BETON_BATCH_ALIGN.
 *
 * error[i] is 0, or the positive Linux errno of reading sample i of this field:
 * EUCLEAN for damaged metadata, EIO for bytes that could not be read,
 * EOPNOTSUPP if a custom field hides the offsets of records. The value of such
 * a sample is all zero. In a variable column it has the size that the dataset
 * declares, or 0 if that size is unknown.
 *
 * A reader checks the magic, the version, the CRC, and file_size against the
 * size of the file. Every offset and size that it uses must lie inside the
 * file.
 */
#ifndef BETON_BATCH_H
#define BETON_BATCH_H

#include "beton/beton.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BETON_BATCH_MAGIC "BETONBAT"
enum {
	BETON_BATCH_VERSION = 1,
	BETON_BATCH_ALIGN = 64,
	BETON_MAX_NDIM = 32,
	BETON_FINGERPRINT_SIZE = 16,
	/* Bytes of a field's file-name form with its NUL: a name has at most 16
	   bytes, each escaped as %XX, and a suffix such as "~65535". */
	BETON_STEM_SIZE = 64,
	BETON_NAME_SIZE = 24,
	BETON_DTYPE_SIZE = 16,
};

/* Types of fields. The numbers are those of the file format. */
enum beton_type {
	BETON_TYPE_FLOAT = 0, /* float64 */
	BETON_TYPE_INT = 1,   /* int64 */
	BETON_TYPE_IMAGE = 2, /* JPEG or raw RGB */
	BETON_TYPE_BYTES = 3,
	BETON_TYPE_NDARRAY = 4,
	BETON_TYPE_JSON = 5, /* text, without the NUL of the dataset */
	BETON_TYPE_TENSOR = 6,
	BETON_TYPE_CUSTOM =
		255, /* metadata whose layout a Python class defines */
};

enum beton_column {
	BETON_COLUMN_FIXED = 0,
	BETON_COLUMN_VARIABLE = 1,
	/* The loader cannot compute the field's offset, because the dataset has
	   a custom field. Every sample has an error. */
	BETON_COLUMN_NONE = 2,
};

enum beton_mode {
	BETON_MODE_JPG = 0,
	BETON_MODE_RAW = 1, /* width * height * 3 bytes, RGB, rows from top */
};

enum beton_order {
	BETON_ORDER_SEQUENTIAL = 0,
	BETON_ORDER_RANDOM = 1,
	BETON_ORDER_QUASI_RANDOM = 2,
	BETON_ORDER_WEIGHTED = 3,
	BETON_ORDER_BUCKETED = 4,
};

struct beton_batch_header {
	char magic[8];	      /* BETON_BATCH_MAGIC, no NUL */
	uint32_t version;     /* BETON_BATCH_VERSION */
	uint32_t header_size; /* of this struct; later versions append */
	uint64_t file_size;
	uint8_t fingerprint[BETON_FINGERPRINT_SIZE]; /* of the dataset */
	uint64_t samples;			     /* of the dataset */
	uint64_t epoch;
	uint64_t batch;	  /* number in the epoch's global sequence */
	uint64_t batches; /* in the epoch */
	uint64_t seed;
	uint64_t batch_size; /* of the spec; the last batch may be shorter */
	uint64_t block;	     /* 0 unless quasi_random, like window */
	uint64_t window;
	/* Range [first, end) of the dataset's samples. If the spec names a
	   subset, first is 0 and end is the number of its ids. */
	uint64_t subset_first;
	uint64_t subset_end;
	uint64_t subset_hash; /* hash of a named subset's ids, which the spec
				 also contains; else 0 */
	uint32_t order;	      /* enum beton_order */
	uint32_t drop_last;
	uint32_t num_samples;
	uint32_t num_fields;
	uint64_t fields_off;
	uint64_t spec_off;
	uint64_t ids_off;
	uint32_t spec_size;
	/*
	 * CRC-32C (Castagnoli, reflected, as in iSCSI) of the bytes from 0 to
	 * spec_off + spec_size, with this member taken as 0.
	 */
	uint32_t crc;
	/* 1: a sample can occur several times in an epoch. Its random numbers
	   then also depend on its position in the epoch. */
	uint64_t repeats;
};

struct beton_batch_field {
	char name[BETON_NAME_SIZE];   /* in the dataset, NUL padded */
	char stem[BETON_STEM_SIZE];   /* the file-name form, NUL padded */
	char dtype[BETON_DTYPE_SIZE]; /* NumPy's string, NUL padded */
	uint32_t type;		      /* enum beton_type */
	uint32_t column;	      /* enum beton_column */
	uint32_t ndim;		      /* of one sample, 0 for a scalar */
	uint32_t mode; /* enum beton_mode of a fixed image column */
	uint64_t shape[BETON_MAX_NDIM]; /* of one sample */
	uint64_t stride;    /* bytes of a sample, fixed columns; else 0 */
	uint64_t error_off; /* int32_t error[num_samples] */
	uint64_t column_off;
	uint64_t column_size; /* including payloads */
};

struct beton_batch_value {
	uint64_t offset; /* from the start of the file */
	uint64_t size;
	uint32_t mode; /* enum beton_mode of an image, else 0 */
	uint32_t width;
	uint32_t height;
	uint32_t reserved; /* 0 */
};

/*
 * An array whose number of rows differs between samples, such as boxes or
 * tokens. It is the value of a bytes field. The value contains this header,
 * uint64_t shape[ndim], and the elements in C order up to its end. shape[0] is
 * the number of rows, which may be 0; the other lengths are at least 1 and the
 * same for all samples. Programs that do not parse the header read plain bytes.
 *
 * A reader checks the magic, the type, the number of dimensions, and the
 * product of the shape against the size of the value.
 */
#define BETON_ARRAY_MAGIC "BETONARR"
enum { BETON_ARRAY_MAX_NDIM = 8 };

struct beton_array_header {
	char magic[8]; /* BETON_ARRAY_MAGIC, no NUL */
	char dtype[4]; /* NumPy's string of bool, an integer of 8 to 64 bits
			  or a float of 16 to 64, NUL padded: "<f4" */
	uint32_t ndim; /* 1 to BETON_ARRAY_MAX_NDIM */
};

#ifdef __cplusplus
}
#endif

#endif
