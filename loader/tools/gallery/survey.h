/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers about a dataset: frequencies of labels, sizes of values, damage. In a
 * large dataset the survey inspects some samples only, spread evenly, and the
 * same ones each time. Memory and time are bounded for any size. One thread.
 */
#ifndef LOADER_TOOLS_GALLERY_SURVEY_H
#define LOADER_TOOLS_GALLERY_SURVEY_H

#include "fs/dataset/dataset.h"
#include "loader/tools/gallery/census.h"

enum {
	/* Up to SURVEY_ALL records are all read. If there are more,
	   SURVEY_SPREAD are. */
	SURVEY_ALL = 4 << 20,
	SURVEY_SPREAD = 1 << 18,
	/* Values whose size is looked up. A lookup in a large allocation table
	   costs one read per thread that wrote the file. If all lookups
	   together exceed SURVEY_READS, fewer values are looked up. */
	SURVEY_VALUES = 1 << 14,
	SURVEY_VALUES_LEAST = 256,
	SURVEY_READS = 16 * SURVEY_VALUES,
	/* Fields beyond this number are not surveyed. */
	SURVEY_FIELDS_MAX = 64,
	SURVEY_DAMAGED = 8, /* damaged samples that are listed */
};

/* Numbers in ascending order. */
struct series {
	double *v;
	size_t n;
};

enum survey_series {
	SURVEY_NUMBERS, /* finite values of int and float fields */
	SURVEY_SIZES,	/* stored bytes, of all other fields */
	SURVEY_WIDTHS,	/* of images, in pixels */
	SURVEY_HEIGHTS,
	SURVEY_SERIES,
};

struct survey_field {
	const struct field *field;
	uint32_t index;
	/* Int and float fields, over survey.records: */
	uint64_t finite;
	double least, most, mean; /* of the finite values */
	struct census *census;	  /* int fields; otherwise NULL */
	/* Over survey.values: */
	struct series series[SURVEY_SERIES];
	double stored; /* bytes of all inspected values */
	uint64_t jpegs;
	uint64_t raws;
	uint64_t damaged; /* metadata that points outside the data */
	uint64_t damaged_samples[SURVEY_DAMAGED]; /* the first ones */
};

struct survey {
	struct dataset *ds;
	uint64_t samples;
	uint64_t records; /* inspected records */
	uint64_t values;
	size_t num_fields;
	struct survey_field *fields;
	/* `label` is the int field whose values are printed below images.
	   `classes` is the same field if its values are classes, by which
	   images are chosen. NULL: there is none. */
	const struct survey_field *label;
	const struct survey_field *classes;
};

/* Surveys a dataset, and shows progress on a terminal. -errno, which is logged
   unless it is -ENOMEM. */
int survey_open(struct dataset *ds, struct survey **out);
void survey_close(struct survey *s);

/* Sample i of n samples that are spread over the dataset; i itself if n is
   all. */
uint64_t survey_place(uint64_t samples, uint64_t n, uint64_t i);

/*
 * Chooses at most `n` samples. Each class gets equally many or, if there are
 * more classes than `n`, one sample of some classes is chosen. Without classes
 * the samples are spread evenly. The caller frees *ids, which is ordered by
 * class and sample.
 */
int survey_pick(const struct survey *s, uint64_t n, uint64_t **ids,
		size_t *num_ids);

#endif
