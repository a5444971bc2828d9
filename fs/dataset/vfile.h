/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual file: segments, computed from an offset. Literal bytes, bytes that
 * are made when they are read, a range of the dataset, zeros, or a strided run
 * over the metadata; every file of a mount is made of these, and reading is one
 * function.
 */
#ifndef FS_DATASET_VFILE_H
#define FS_DATASET_VFILE_H

#include <sys/types.h>

#include "fs/dataset/dataset.h"

enum segment_kind {
	SEGMENT_LITERAL,
	SEGMENT_RANGE,
	SEGMENT_ZERO,
	SEGMENT_STRIDED, /* `width` bytes of every record */
	SEGMENT_MADE,	 /* by `make`: many small ones, not worth keeping */
};

struct vfile;

struct segment {
	enum segment_kind kind;
	uint64_t start; /* in the virtual file */
	uint64_t size;
	const void *literal; /* valid as long as the file */
	uint64_t off;	     /* RANGE: in the dataset file; STRIDED: of the
				first piece */
	uint64_t stride;     /* STRIDED: from piece to piece */
	uint32_t width;	     /* STRIDED: of a piece */
	uint32_t field;	     /* whose value it is, for failures */
	uint32_t row;
	bool is_payload; /* RANGE: of `sample`, and may come from a cache */
	uint64_t sample;
	/* MADE: writes bytes [skip, skip + size) of it. */
	void (*make)(const struct vfile *file, const struct segment *segment,
		     uint64_t skip, void *buf, size_t size);
};

struct vfile {
	struct dataset *ds;
	uint64_t size;
	/* Of payloads that are read through a cache, and of waiting for any;
	   may be NULL. */
	struct payload_tally *tally;
	/* The segment that covers `off`, which is below size. */
	void (*segment_at)(const struct vfile *file, uint64_t off,
			   struct segment *out);
};

/*
 * Told of a range that could not be read, which then is zeros in the result.
 * Called by the thread that reads, after all of the reading is over.
 */
typedef void vfile_failed(void *arg, const struct segment *segment, int error);

/*
 * Reads up to `size` bytes at `off`; less only at the end of the file, as
 * pread. The number of bytes, or -errno. With `failed`, a range that cannot be
 * read is reported there and is no error.
 */
ssize_t vfile_read(const struct vfile *file, void *buf, size_t size,
		   uint64_t off, vfile_failed *failed, void *arg);

#endif
