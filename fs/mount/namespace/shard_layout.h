/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of a dataset as tar archives that WebDataset reads
 * (beton-tree(7)): SHARD_SAMPLES in each, a member per value. The offsets of
 * the members follow from the metadata of the samples, which is read when a
 * shard is opened. The contents are ranges of the dataset. Immutable once open.
 */
#ifndef FS_MOUNT_NAMESPACE_SHARD_LAYOUT_H
#define FS_MOUNT_NAMESPACE_SHARD_LAYOUT_H

#include "fs/data/dataset/value.h"

enum { SHARD_SAMPLES = 1000 };

struct shard_member {
	uint64_t start; /* of its header */
	uint64_t size;	/* of its contents */
	uint64_t sample;
	uint32_t field;
	struct value value;
};

struct shard {
	struct dataset *ds;
	uint64_t size;
	uint64_t end; /* of the last member: zeros follow */
	size_t num_members;
	struct shard_member *members; /* owned */
};

/* Returns the number of shards. */
uint64_t shard_count(const struct dataset *ds);

/* Leaves out values with damaged metadata, which is already logged. The dataset
   must outlive the result. */
int shard_open(struct dataset *ds, uint64_t index, struct shard **out);
/* Takes NULL. */
void shard_close(struct shard *shard);

uint64_t shard_bytes(const struct shard *shard);
/* The most bytes that shard_open() uses, and then the shard. */
uint64_t shard_need(const struct dataset *ds);

struct shard_file {
	struct vfile vfile;
	const struct shard *shard;
};

void shard_file_init(struct shard_file *file, const struct shard *shard);

/* Headers of members of a tar archive, POSIX ustar. */
enum {
	TAR_BLOCK = 512, /* a header's size; contents are padded to it */
	TAR_NAME_MAX = 99,
	TAR_END_SIZE = 2 * TAR_BLOCK, /* zeros at the end of an archive */
};

/* The largest file size that a header can contain. */
#define TAR_SIZE_MAX (((uint64_t)1 << 33) - 1)

#endif
