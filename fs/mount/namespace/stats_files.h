/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .betonfs/stats.json, metrics and jobs/: statistics of the mount. If
 * there are several datasets, each one has its own.
 */
#ifndef FS_MOUNT_NAMESPACE_STATS_FILES_H
#define FS_MOUNT_NAMESPACE_STATS_FILES_H

#include "fs/mount/namespace/object.h"

extern const struct ns_row ns_job_row;

/* Fills ns->stats, which points to the strings of `options`. */
void ns_stats_open(struct ns *ns, const struct ns_options *options);
int ns_stats_attr(struct ns *ns, const struct ns_object *object,
		  struct ns_entry *out);
int ns_stats_open_file(struct ns *ns, const struct ns_object *object,
		       struct ns_file *out);
int ns_jobs_attr(struct ns *ns, const struct ns_object *object,
		 struct ns_entry *out);
int ns_jobs_lookup(struct ns *ns, const struct ns_object *dir, const char *name,
		   struct ns_entry *out);
int ns_jobs_list(struct ns *ns, const struct ns_object *dir,
		 const struct ns_listing *listing);

#endif
