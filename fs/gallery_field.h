/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a gallery's page that is about one field. */
#ifndef FS_GALLERY_FIELD_H
#define FS_GALLERY_FIELD_H

#include <stdio.h>

#include "fs/gallery.h"

/* "arrays, <f4 (2, 3)" */
void gallery_field_holds(FILE *out, const struct field *f);

/* Nothing where the line above says all. */
void gallery_field_write(FILE *out, const struct survey *s,
			 const struct survey_field *f, const struct exhibit *e);

#endif
