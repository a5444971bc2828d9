/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of the files that a dataset is split into. */
#ifndef LOADER_TOOLS_COMBINE_OUTPUTS_H
#define LOADER_TOOLS_COMBINE_OUTPUTS_H

#include <stddef.h>

#include "fs/base/util/log.h"

/* Zero-initialize. */
struct outputs {
	size_t num;
	char **names; /* of the parts */
	char **paths;
};

/* Sets the names 0, 1, ... with as many digits as the last one. Returns
   -ENOMEM, logged. */
int outputs_number(struct outputs *o, size_t num, struct log *log);

/* Sets the names of a list, "train,val". -EINVAL, logged: the list does not
   have `num` different names that can be parts of file names. */
int outputs_list(struct outputs *o, size_t num, const char *list,
		 struct log *log);

/*
 * Adds the name of part `i` as a part of a file name: special characters are
 * escaped (fs/base/util/name.h), a long name is cut, and a name that an earlier
 * part has gets "~VALUE" at its end. Returns -ENOMEM, logged.
 */
int outputs_add(struct outputs *o, const char *name, long long value,
		struct log *log);

/*
 * Makes the paths of all names. In a pattern, the name replaces "{}". Any other
 * target is a directory of files NAME.beton, which is made if the name is free,
 * or the beginning of their URLs. Failures are logged, with the path.
 */
int outputs_place(struct outputs *o, const char *target, struct log *log);

void outputs_fini(struct outputs *o);

#endif
