/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that are appended in small pieces and read back once. Up to SPILL_KEEP
 * bytes stay in memory; the others go to a file without a name, beside the
 * output. One thread.
 */
#ifndef FS_DATA_WRITER_SPILL_H
#define FS_DATA_WRITER_SPILL_H

#include <stddef.h>
#include <stdint.h>

#include "fs/base/util/log.h"
#include "fs/data/writer/output.h"

enum { SPILL_KEEP = 1 << 20 };

/* Begin with spill_init(). */
struct spill {
	struct output *beside;
	struct log *log;
	const char *path; /* of the output, for messages */
	int fd;		  /* -1: all bytes are in memory */
	uint64_t written; /* bytes in the file */
	uint8_t *bytes;	  /* that follow those */
	size_t num_bytes;
	size_t room;
};

/* If `beside` has no directory, all bytes stay in memory. */
void spill_init(struct spill *s, struct output *beside, const char *path,
		struct log *log);

/* Appends at most SPILL_KEEP bytes. Failures are logged. */
int spill_append(struct spill *s, const void *bytes, size_t size);

uint64_t spill_size(const struct spill *s);

/* Reads bytes back. Failures are logged. */
int spill_read(const struct spill *s, void *bytes, size_t size, uint64_t off);

/* Takes zeros as well. */
void spill_fini(struct spill *s);

#endif
