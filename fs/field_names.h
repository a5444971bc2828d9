/* SPDX-License-Identifier: Apache-2.0 */
/* The file-name form of each field of a dataset. A pure function. */
#ifndef FS_FIELD_NAMES_H
#define FS_FIELD_NAMES_H

#include <stddef.h>

#include "fs/field.h"

/*
 * Gives every field its stem, its name escaped. One whose files would have the
 * name of an earlier field's gets "~2", "~3" and so on.
 */
void name_fields(struct field *fields, size_t n);

#endif
