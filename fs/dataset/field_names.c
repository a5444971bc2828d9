/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/dataset/field_names.h"

#include <stdio.h>
#include <string.h>

#include "fs/util/name.h"

enum { FILE_NAMES_MAX = 3, FILE_NAME_SIZE = BETON_STEM_SIZE + 8 };

/* The names under which a field's files and directories appear. */
static unsigned file_names_of(const struct field *f,
			      char names[FILE_NAMES_MAX][FILE_NAME_SIZE])
{
	unsigned n = 0;

	snprintf(names[n++], FILE_NAME_SIZE, "%s", f->stem);
	if (field_is_image(f)) {
		snprintf(names[n++], FILE_NAME_SIZE, "%s.jpg", f->stem);
		snprintf(names[n++], FILE_NAME_SIZE, "%s.ppm", f->stem);
	} else {
		snprintf(names[n++], FILE_NAME_SIZE, "%s%s", f->stem,
			 field_is_scalar(f) ? ".npy" : f->type->extension);
	}
	return n;
}

static bool fields_collide(const struct field *a, const struct field *b)
{
	char x[FILE_NAMES_MAX][FILE_NAME_SIZE];
	char y[FILE_NAMES_MAX][FILE_NAME_SIZE];
	unsigned nx = file_names_of(a, x), ny = file_names_of(b, y);

	for (unsigned i = 0; i < nx * ny; i++) {
		if (!strcmp(x[i / ny], y[i % ny]))
			return true;
	}
	return false;
}

static bool is_stem_taken(const struct field *fields, size_t i)
{
	for (size_t j = 0; j < i; j++) {
		if (fields_collide(&fields[j], &fields[i]))
			return true;
	}
	return false;
}

void name_fields(struct field *fields, size_t n)
{
	char plain[BETON_STEM_SIZE];

	for (size_t i = 0; i < n; i++) {
		name_escape(fields[i].name, plain);
		memcpy(fields[i].stem, plain, sizeof(plain));
		for (unsigned k = 2; is_stem_taken(fields, i); k++)
			snprintf(fields[i].stem, BETON_STEM_SIZE, "%.50s~%u",
				 plain, k);
	}
}
