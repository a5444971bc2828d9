/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batches/: the directories of sampling specs and epochs, and their batches.
 * Lookups make names of them (streams.h).
 */
#ifndef FS_MOUNT_NAMESPACE_BATCHES_H
#define FS_MOUNT_NAMESPACE_BATCHES_H

#include "fs/mount/namespace/object.h"

extern const struct ns_row ns_spec_row, ns_spec_link_row, ns_epoch_row,
	ns_batch_row;

int ns_batches_find(struct ns *ns, const struct ns_object *dir,
		    const char *name, uid_t user, struct ns_entry *out);
int ns_batches_list(struct ns *ns, const struct ns_object *dir,
		    const struct ns_listing *listing);

#endif
