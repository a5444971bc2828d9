/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nouns that data sources, pipelines and outputs share: a field of a
 * dataset, one sample's value of it, the row that a value belongs to, and the
 * output that the row becomes. Plain structs without functions.
 */
#ifndef LOADER_UTIL_VALUE_H
#define LOADER_UTIL_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "beton/batch.h"
#include "fs/dataset/field.h"

/* A dataset's field as a pipeline needs it; arrays are in field order. */
struct pipeline_field {
	const char *name; /* as in the dataset, what texts name it by */
	const char *stem; /* unique; texts may use it too; outputs' name */
	enum field_column column;
	bool usable; /* false: the place of its values is unknown */
	char dtype[BETON_DTYPE_SIZE]; /* arrays; else "<i8", "<f8", "|u1" */
	uint32_t ndim;
	uint64_t shape[BETON_MAX_NDIM];
	uint32_t width, height; /* images: sample 0's, 0 if it is not known */
};

/* One sample's value of one field. */
struct pipeline_value {
	const uint8_t *bytes;
	uint64_t size;
	enum beton_mode mode; /* images, as the next two */
	uint32_t width;
	uint32_t height;
};

/* What the random numbers of a row are keyed by (beton-orders(7)). */
struct pipeline_row {
	uint64_t seed;
	uint64_t epoch;
	uint64_t id;
	uint64_t occurrence;
};

struct pipeline_output {
	const char *name;
	uint32_t field; /* index of its source */
	bool ragged;	/* bytes and JSON: rows joined, no fixed size */
	bool plain;	/* no operation: where the batch file has a
			   column of row_size, that is the output */
	char dtype[BETON_DTYPE_SIZE];
	uint32_t ndim; /* of one row */
	uint64_t shape[BETON_MAX_NDIM];
	uint64_t row_size; /* bytes; 0 if ragged, or if no image tells */
	int device;	   /* the GPU that gets it, by cuda(); -1: none */
	/* Bytes that pipeline_run() makes: row_size, unless a kernel makes the
	   row of it, of pipeline_split(). */
	uint64_t made_size;
	/* Instead, of a row that is mixed with another: then pipeline_pair()
	   makes made_size of two. 0: it is not. */
	uint64_t part_size;
};

/* Two rows of a batch of which one becomes the output. */
struct pipeline_pair {
	const void *own;   /* what pipeline_run() made, aligned */
	const void *other; /* of the row before, of the first row the last; as
			      own: could not be made */
	const struct pipeline_row *row;
	const struct pipeline_row *last; /* of the batch */
};

#endif
