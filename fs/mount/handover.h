/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's end of the hand-over: loaders that connect to an abstract Unix
 * socket are handed the memory that batches were assembled in, and give it back
 * by message, or by closing. Nobody else is written there, and nothing is left
 * behind by a daemon that is killed.
 *
 * A peer is hostile until its message is checked: it may see what the kernel
 * would let it read in the mount, and whoever breaks the rules is cut off.
 *
 * One thread of its own does everything, but that the engine's threads tell it
 * when a batch is there. handover.lock guards what they pass; nothing follows
 * it.
 */
#ifndef FS_MOUNT_HANDOVER_H
#define FS_MOUNT_HANDOVER_H

#include "fs/metrics/jobs.h"
#include "fs/namespace/ns.h"

enum {
	HANDOVER_CONNECTIONS_MAX = 256,
	HANDOVER_NAME_SIZE = 64,
};

/* Whom the kernel lets see the mount, beside the daemon's own user. */
enum handover_allow {
	HANDOVER_ALLOW_ROOT,  /* whatever the options: root */
	HANDOVER_ALLOW_OTHER, /* and who has the permissions */
};

struct handover_options {
	struct log *log;
	enum handover_allow allow;
	/* Memory that loaders may hold at a time; what they ask for beyond that
	   they are to read as files. */
	uint64_t max_bytes;
	struct jobs *jobs; /* where batches are counted, or NULL */
};

struct handover;

/* Listens; nobody is answered yet. */
int handover_open(const struct handover_options *options,
		  struct handover **out);
/* Puts and cancels everything, before the namespace and the engine close.
   Takes NULL. */
void handover_close(struct handover *handover);

/* The address, without the leading NUL that stands for abstract. */
const char *handover_name(const struct handover *handover);

/* Begins to answer; the namespace must outlive the hand-over. */
int handover_serve(struct handover *handover, struct ns *ns);

#endif
