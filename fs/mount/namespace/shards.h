/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shards/: samples as tars. The namespace caches some layouts.
 */
#ifndef FS_MOUNT_NAMESPACE_SHARDS_H
#define FS_MOUNT_NAMESPACE_SHARDS_H

#include "fs/mount/namespace/object.h"

extern const struct ns_row ns_shard_row;

int ns_shards_lookup(struct ns *ns, const struct ns_object *dir,
		     const char *name, struct ns_entry *out);
int ns_shards_list(struct ns *ns, const struct ns_object *dir,
		   const struct ns_listing *listing);

/* Opens ns->shards; memo_close() closes it. */
int ns_shards_open(struct ns *ns);

#endif
