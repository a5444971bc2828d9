/* SPDX-License-Identifier: Apache-2.0 */
/* The file-name form of each field of a dataset. */
#ifndef FS_DATA_DATASET_FIELD_NAMES_H
#define FS_DATA_DATASET_FIELD_NAMES_H

#include <stddef.h>

#include "fs/data/dataset/field.h"

/*
 * Sets the file-name form of every field: its name, escaped. If a file of the
 * field would have the name of an earlier field's file, the form ends in "~2",
 * "~3" and so on. Takes O(n log n) time for any names. -ENOMEM.
 */
int name_fields(struct field *fields, size_t n);

#endif
