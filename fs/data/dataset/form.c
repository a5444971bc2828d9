/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/form.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *form_print(const struct field_type *type, const char *dtype,
		       uint32_t ndim, const uint64_t *shape,
		       char out[FORM_SIZE])
{
	int n = snprintf(out, FORM_SIZE, "%s", type->name);

	if (type->column != COLUMN_ARRAY)
		return out;
	n += snprintf(out + n, FORM_SIZE - (size_t)n, " %s (", dtype);
	for (uint32_t i = 0; i < ndim; i++)
		n += snprintf(out + n, FORM_SIZE - (size_t)n, "%s%llu",
			      i ? ", " : "", (unsigned long long)shape[i]);
	snprintf(out + n, FORM_SIZE - (size_t)n, ")");
	return out;
}

const char *form_of_field(const struct field *f, char out[FORM_SIZE])
{
	return form_print(f->type, f->dtype, f->ndim, f->shape, out);
}

int form_check(const char *its, const char *ours, const char *first,
	       char why[FORM_WHY_SIZE])
{
	if (!strcmp(its, ours))
		return 0;
	snprintf(why, FORM_WHY_SIZE, "is %.160s, but in %.256s it is %.160s",
		 its, first, ours);
	return -EINVAL;
}
