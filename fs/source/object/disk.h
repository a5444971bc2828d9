/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk tier: a source in front of a remote one that keeps what was read on a
 * local disk, also after the process has ended. If the whole object is there,
 * reads are those of a local file.
 *
 * Each page is compared with its checksum each time it is read from the tier. A
 * page that is damaged, or that the disk fails to read, is read from the inner
 * source instead. A reader gets the right bytes whatever the directory
 * contains.
 *
 * Readers never wait for writes: a thread writes copies of what they read
 * (disk_fill.h). While pages are missing, requests are extended to
 * whole pages, so that one epoch fills the tier.
 */
#ifndef FS_SOURCE_OBJECT_DISK_H
#define FS_SOURCE_OBJECT_DISK_H

#include "fs/source/local/options.h"
#include "fs/source/local/source.h"
#include "fs/source/tier/index.h"

/*
 * Puts a tier in options->disk in front of `inner`, which the new source owns
 * from then on; after a failure it remains the caller's. Opens all files, so
 * that a sandbox may follow; starts a thread with the first request. While it is
 * filled, it uses about 5/8 of options->memory, but 5 MiB at least and 40 MiB at
 * most.
 *
 * -EPERM: the directory or a file in it belongs to another user, or others may
 * write to it. Failures are logged.
 */
int disk_open(struct source *inner, const struct tier_identity *identity,
	      const struct source_options *options, struct log *log,
	      struct source **out);

/* Stores bytes from offset `off` on, a multiple of a page, that were read
   before. Whole pages are stored, and the last one of the object. */
void disk_keep(struct source *source, const void *bytes, size_t size,
	       uint64_t off);

struct disk_stats {
	uint64_t size;	  /* of the object */
	uint64_t present; /* bytes in the tier */
	uint64_t allowed; /* bytes that may be there */
	uint64_t hits;	  /* bytes read from the tier */
	uint64_t misses;  /* bytes read from the inner source for readers */
	uint64_t filled;  /* bytes read from it while the link was idle */
	uint64_t skipped; /* bytes not stored because the disk was slow */
	uint64_t waiting; /* bytes that wait to be written */
	uint64_t dropped; /* pages that were damaged */
	uint64_t memory;  /* that it uses at most */
	bool is_writer;	  /* this process fills the tier */
	const char *why;  /* why it is not filled, or "" */
};

/* Fills *out and returns true if the source, or one behind it, is a tier.
   Thread-safe. */
bool disk_stats(const struct source *source, struct disk_stats *out);

/* Adds the figures of another tier. */
void disk_stats_add(struct disk_stats *to, const struct disk_stats *s);

#endif
