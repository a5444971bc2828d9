/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structs that data sources, pipelines and outputs share: a field of a dataset,
 * a value of a sample, a row, and an output.
 */
#ifndef LOADER_UTIL_VALUE_H
#define LOADER_UTIL_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "beton/batch.h"
#include "fs/data/dataset/field.h"
#include "loader/util/array.h"

/* A field of a dataset. Arrays of fields have the order of the dataset. */
struct pipeline_field {
	const char *name; /* name in the dataset, and in pipeline strings */
	const char *stem; /* unique file-name form; outputs' name */
	enum field_column column;
	bool usable; /* false: the offset of its values is unknown */
	char dtype[BETON_DTYPE_SIZE]; /* arrays; else "<i8", "<f8", "|u1" */
	uint32_t ndim;
	uint64_t shape[BETON_MAX_NDIM];
	uint32_t width, height; /* images: those of sample 0; 0: unknown */
	struct array array; /* bytes: that of sample 0; ndim 0: it is none */
};

/* One sample's value of one field. */
struct pipeline_value {
	const uint8_t *bytes;
	uint64_t size;
	enum beton_mode mode; /* images only, as width and height */
	uint32_t width;
	uint32_t height;
	/* If the output follows another field (pipeline_output.of): the
	   sample's value of that field. */
	const struct pipeline_value *of;
};

/* The key of a row's random numbers (beton-orders(7)), and how to write the
   row. */
struct pipeline_row {
	uint64_t seed;
	uint64_t epoch;
	uint64_t id;
	uint64_t occurrence;
	uint64_t view;	  /* of several of a sample, from 0 */
	bool is_streamed; /* the row leaves the CPU's caches before it is read */
};

enum { VALUE_NO_FIELD = UINT32_MAX };

struct pipeline_output {
	const char *name;
	uint32_t field; /* index of its source field */
	/* The field that it follows, and the one that this follows, or
	   VALUE_NO_FIELD. */
	uint32_t of[2];
	bool ragged;  /* values joined, of no fixed size: bytes, JSON, lists */
	bool is_list; /* the number of rows differs between samples */
	bool is_padded; /* lists, which a batch pads to its longest */
	bool plain;	/* the stored bytes: where the batch file has a
			   column of row_size, that is the output */
	char dtype[BETON_DTYPE_SIZE];
	uint32_t ndim; /* of one row */
	uint64_t shape[BETON_MAX_NDIM];
	uint64_t row_size;  /* bytes; 0: ragged, or no image is known */
	uint64_t item_size; /* lists: bytes of one of a sample's rows */
	uint64_t most;	    /* lists: rows of a batch */
	uint8_t filler[8];  /* padded lists: an element of the new rows */
	uint32_t multiple;  /* their length is a multiple of it */
	bool pads_left;	    /* the new rows come first */
	int device;	    /* number of its GPU; -1: none */
	/* Bytes that pipeline_run() writes: row_size, unless a kernel makes the
	   row from the output of pipeline_split(). */
	uint64_t made_size;
	/* Bytes of a row as a maker sends it (pipeline_finish()). */
	uint64_t sent_size;
	/* Bytes that pipeline_run() writes of a row that is mixed with another
	   one. pipeline_pair() then makes made_size of two such rows. 0: rows
	   are not mixed. */
	uint64_t part_size;
};

/* Whether the rows of samples have different sizes. */
static inline bool pipeline_output_varies(const struct pipeline_output *o)
{
	return o->ragged || o->is_list;
}

/* Two rows of a batch that pipeline_pair() mixes to one. */
struct pipeline_pair {
	const void *own;   /* output of pipeline_run(), aligned */
	const void *other; /* of the row before, of the first row the last; as
			      own: could not be made */
	const struct pipeline_row *row;
	const struct pipeline_row *last; /* last row of the batch */
};

#endif
