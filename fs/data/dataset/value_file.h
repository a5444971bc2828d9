/* SPDX-License-Identifier: Apache-2.0 */
/* The files below samples/ and columns/ as virtual files. */
#ifndef FS_DATA_DATASET_VALUE_FILE_H
#define FS_DATA_DATASET_VALUE_FILE_H

#include "fs/base/util/npy.h"
#include "fs/data/dataset/value.h"
#include "fs/data/dataset/vfile.h"

/* One value as a file: first bytes in memory (text, or the header of a .npy or
   .ppm), then a range of the dataset. */
struct sample_file {
	struct vfile vfile;
	struct value value;
	uint64_t head_size;
	char head[NPY_HEADER_MAX];
};

/* Prepares the file of a value of this field, as read by dataset_value(). */
void sample_file_init(struct sample_file *file, struct dataset *ds,
		      uint32_t field, const struct value *value);

/* Returns the size of the file, without preparing it. */
uint64_t sample_file_size(const struct dataset *ds, uint32_t field,
			  const struct value *value);

/* Prepares all values of a field of scalars as one .npy file. */
struct column_file {
	struct vfile vfile;
	uint32_t field;
	uint64_t head_size;
	char head[NPY_HEADER_MAX];
};

void column_file_init(struct column_file *file, struct dataset *ds,
		      uint32_t field);

#endif
