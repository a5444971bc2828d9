/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual file: a list of segments, each computed from an offset when it is
 * read. A segment is bytes in memory, bytes printed when they are read, a range
 * of the dataset, zeros, or a strided run over the metadata. Every file of a
 * mount consists of these; vfile_read() reads all of them.
 */
#ifndef FS_DATA_DATASET_VFILE_H
#define FS_DATA_DATASET_VFILE_H

#include <sys/types.h>

#include "fs/data/dataset/dataset.h"

enum segment_kind {
	SEGMENT_LITERAL,
	SEGMENT_RANGE,
	SEGMENT_ZERO,
	SEGMENT_STRIDED, /* `width` bytes of every record */
	SEGMENT_MADE, /* printed by `make`, which is cheaper than storing it */
};

struct vfile;

struct segment {
	enum segment_kind kind;
	uint64_t start; /* in the virtual file */
	uint64_t size;
	const void *literal; /* valid as long as the file */
	uint64_t off;	 /* in the dataset file; STRIDED: of the first piece */
	uint64_t stride; /* STRIDED: from piece to piece */
	uint32_t width;	 /* STRIDED: of a piece */
	uint32_t field;	 /* for failures: the field of the value */
	uint32_t index;
	bool is_payload; /* RANGE: of `sample`; a cache may contain it */
	uint64_t sample;
	/* MADE: prints bytes [skip, skip + size) of the segment to `buf`. */
	void (*make)(const struct vfile *file, const struct segment *segment,
		     uint64_t skip, void *buf, size_t size);
};

struct vfile {
	struct dataset *ds;
	uint64_t size;
	/* Counts payloads that are read through a cache, and the time spent
	   waiting for them; may be NULL. */
	struct payload_tally *tally;
	/* Computes the segment that contains `off`, which is less than size. */
	void (*segment_at)(const struct vfile *file, uint64_t off,
			   struct segment *out);
};

/*
 * Called for each range that could not be read; its bytes are zeros in the
 * result. Called by the thread that reads, when all reads are done.
 */
typedef void vfile_failed(void *arg, const struct segment *segment, int error);

/*
 * Reads up to `size` bytes at `off`, fewer only at the end of the file, like
 * pread(). Returns the number of bytes, or -errno. If `failed` is not NULL, a
 * range that cannot be read is reported to it and is no error.
 */
ssize_t vfile_read(const struct vfile *file, void *buf, size_t size,
		   uint64_t off, vfile_failed *failed, void *arg);

/* Like vfile_read(), for callers that must not wait. -EAGAIN: vfile_read() may
   have to wait, or fails. */
ssize_t vfile_read_cached(const struct vfile *file, void *buf, size_t size,
			  uint64_t off);

#endif
