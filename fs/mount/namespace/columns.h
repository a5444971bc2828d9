/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns/: a directory per field, and an array per field of numbers. The files
 * are those of samples/.
 */
#ifndef FS_MOUNT_NAMESPACE_COLUMNS_H
#define FS_MOUNT_NAMESPACE_COLUMNS_H

#include "fs/mount/namespace/object.h"

extern const struct ns_row ns_column_row, ns_array_row;

int ns_columns_lookup(struct ns *ns, const struct ns_object *dir,
		      const char *name, struct ns_entry *out);
int ns_columns_list(struct ns *ns, const struct ns_object *dir,
		    const struct ns_listing *listing);

#endif
