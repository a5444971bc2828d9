/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of a dataset, each made of a field of the source by a conversion.
 * A conversion is a row of a table in mapping.c. Immutable once open.
 */
#ifndef LOADER_TOOLS_MKFS_MAPPING_H
#define LOADER_TOOLS_MKFS_MAPPING_H

#include <stdio.h>

#include "fs/base/util/log.h"
#include "fs/data/dataset/field.h"
#include "fs/data/writer/schema.h"
#include "loader/tools/input/input.h"
#include "loader/tools/mkfs/encode.h"

struct conversion;

struct mapping_field {
	size_t from; /* index of the source's field */
	const struct conversion *conversion;
	char name[17];
	char **classes; /* of texts: sorted, each once; owned */
	size_t num_classes;
};

struct mapping {
	struct input *input;
	size_t num_fields;
	struct mapping_field *fields;
	struct writer_field *written; /* the same fields for a writer */
	bool *wanted;		      /* fields of the source that are read */
};

/*
 * Maps the fields that `fields` lists, "NAME[:TYPE][=SOURCE],...", or all of
 * the source if it is NULL. May read all samples for the names of classes.
 * Failures are logged: -EINVAL if a field cannot be in a dataset.
 */
int mapping_open(struct input *in, const char *fields, struct log *log,
		 struct mapping **out);
void mapping_close(struct mapping *mapping); /* takes NULL */

/* Returns the number of classes of the first field that has classes, or 0. */
size_t mapping_num_classes(const struct mapping *mapping);

/* Returns whether the dataset has images. */
bool mapping_has_images(const struct mapping *mapping);

/* Prints a line per field. */
void mapping_print(const struct mapping *mapping, FILE *out);

/* --- values -------------------------------------------------------------- */

/* The values of one sample, ready for a writer. */
struct made {
	int status; /* 0, or -errno: then `error`, and no values */
	struct input_error error;
	struct writer_value *values; /* owned, as the bytes of each */
	uint64_t size;		     /* bytes of all values */
	unsigned jpegs, raws;	     /* images by their form */
};

/*
 * Makes the values of the sample out of those of the source. `number` is its
 * position in the new dataset, which the random draws of --mode=proportion
 * depend on. Failures are in made->status.
 */
void mapping_make(const struct mapping *mapping, struct encoder *encoder,
		  const struct input_value *values, uint64_t number,
		  struct made *made);

void made_fini(const struct mapping *mapping, struct made *made);

#endif
