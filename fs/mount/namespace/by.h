/* SPDX-License-Identifier: Apache-2.0 */
/*
 * by/: samples in a directory per value of an int field. The namespace caches
 * the groups of by/FIELD/ while there is room.
 */
#ifndef FS_MOUNT_NAMESPACE_BY_H
#define FS_MOUNT_NAMESPACE_BY_H

#include "fs/mount/namespace/object.h"

extern const struct ns_row ns_by_field_row, ns_by_value_row;

int ns_by_lookup(struct ns *ns, const struct ns_object *dir, const char *name,
		 struct ns_entry *out);
int ns_by_list(struct ns *ns, const struct ns_object *dir,
	       const struct ns_listing *listing);

/* Opens ns->groups; memo_close() closes it. */
int ns_groups_open(struct ns *ns);

#endif
