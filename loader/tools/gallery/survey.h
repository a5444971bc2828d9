/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a dataset holds, as numbers: how often labels occur, how large values
 * are, what is damaged. Of a large dataset some samples are looked at, evenly
 * spread, and the same ones each time; memory and time have a bound that does
 * not depend on its size. One thread.
 */
#ifndef LOADER_TOOLS_GALLERY_SURVEY_H
#define LOADER_TOOLS_GALLERY_SURVEY_H

#include "fs/dataset/dataset.h"
#include "loader/tools/gallery/census.h"

enum {
	/* So many records are all read; of more only SURVEY_SPREAD. */
	SURVEY_ALL = 4 << 20,
	SURVEY_SPREAD = 1 << 18,
	/* Values whose place is looked up. Where the allocation table is
	   large that costs reads, one for each thread that wrote the file;
	   where they would be more than SURVEY_READS values are fewer. */
	SURVEY_VALUES = 1 << 14,
	SURVEY_VALUES_LEAST = 256,
	SURVEY_READS = 16 * SURVEY_VALUES,
	/* Of fields beyond these only the name is known. */
	SURVEY_FIELDS_MAX = 64,
	SURVEY_DAMAGED = 8, /* that are named */
};

/* Numbers in ascending order. */
struct series {
	double *v;
	size_t n;
};

enum survey_series {
	SURVEY_NUMBERS, /* int and float: those that are finite */
	SURVEY_SIZES,	/* all others: bytes as they are stored */
	SURVEY_WIDTHS,	/* images, as the next */
	SURVEY_HEIGHTS,
	SURVEY_SERIES,
};

struct survey_field {
	const struct field *field;
	uint32_t index;
	/* int and float, of survey.records: */
	uint64_t finite;
	double least, most, mean; /* of the finite ones */
	struct census *census;	  /* int; else NULL */
	/* Of survey.values: */
	struct series series[SURVEY_SERIES];
	double stored; /* bytes */
	uint64_t jpegs;
	uint64_t raws;
	uint64_t damaged; /* point to where no value can be */
	uint64_t damaged_samples[SURVEY_DAMAGED]; /* the first of them */
};

struct survey {
	struct dataset *ds;
	uint64_t samples;
	uint64_t records; /* that were looked at */
	uint64_t values;
	size_t num_fields;
	struct survey_field *fields;
	/* The first int field, whose values stand below images; and if images
	   are chosen by it, because it has classes. NULL: there is none. */
	const struct survey_field *label;
	const struct survey_field *classes;
};

/* Shows its progress on a terminal. -errno: logged, or -ENOMEM. */
int survey_open(struct dataset *ds, struct survey **out);
void survey_close(struct survey *s);

/* The i-th of n that are spread over all samples; i itself where n is all. */
uint64_t survey_place(uint64_t samples, uint64_t n, uint64_t i);

/*
 * Chooses `n` samples at most: of each class as many, or of each of as many
 * classes one, spread over the dataset; without classes evenly. *ids is the
 * caller's, in the order of classes and samples.
 */
int survey_pick(const struct survey *s, uint64_t n, uint64_t **ids,
		size_t *num_ids);

#endif
