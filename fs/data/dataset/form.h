/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form of a field as text: everything that two sources must share so that
 * their values mean the same. It is "int", or "ndarray <f4 (2, 3)", or what a
 * library calls it, for example "timestamp[us, tz=UTC]". Class names are united
 * instead (class_union.h).
 */
#ifndef FS_DATA_DATASET_FORM_H
#define FS_DATA_DATASET_FORM_H

#include "fs/data/dataset/field.h"

enum {
	FORM_SIZE = 768, /* has room for 32 dimensions */
	FORM_WHY_SIZE = 640,
};

/* Prints the form of a field of such a type; the rest is for arrays only.
   Returns `out`. */
const char *form_print(const struct field_type *type, const char *dtype,
		       uint32_t ndim, const uint64_t *shape,
		       char out[FORM_SIZE]);

const char *form_of_field(const struct field *field, char out[FORM_SIZE]);

/* Compares the form of a field with that in the first source. If they differ,
   returns -EINVAL and writes a text to `why` that has both and follows "field
   'NAME'". */
int form_check(const char *its, const char *ours, const char *first,
	       char why[FORM_WHY_SIZE]);

#endif
