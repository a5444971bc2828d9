/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that have a name of their own in a dataset: its top directories,
 * and files of text. A mount of several datasets has a root above them, which
 * has .betonfs/ alone. Their rows are one array, by the number of the object.
 */
#ifndef FS_MOUNT_NAMESPACE_FIXED_H
#define FS_MOUNT_NAMESPACE_FIXED_H

#include "fs/mount/namespace/object.h"

extern const struct ns_row ns_fixed_rows[NS_FIXED_END];

/* Creates the texts of a tree whose dataset is set. Copies `options`. After a
   failure, ns_fixed_close() frees the texts. */
int ns_fixed_open(struct ns_tree *tree, const char *options);
void ns_fixed_close(struct ns_tree *tree);

#endif
