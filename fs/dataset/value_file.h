/* SPDX-License-Identifier: Apache-2.0 */
/* The files of samples/ and columns/ as virtual files. */
#ifndef FS_DATASET_VALUE_FILE_H
#define FS_DATASET_VALUE_FILE_H

#include "fs/dataset/vfile.h"
#include "fs/util/npy.h"

/* One value as a file: a literal head (text, or the header of a .npy or a
   .ppm) and a range of the dataset. */
struct sample_file {
	struct vfile vfile;
	struct value value;
	uint64_t head_size;
	char head[NPY_HEADER_MAX];
};

/* The file of a value that dataset_value() gave for this field. */
void sample_file_init(struct sample_file *file, struct dataset *ds,
		      uint32_t field, const struct value *value);

/* The st_size alone: cheaper. */
uint64_t sample_file_size(const struct dataset *ds, uint32_t field,
			  const struct value *value);

/* All values of an int or float field as one .npy. */
struct column_file {
	struct vfile vfile;
	uint32_t field;
	uint64_t head_size;
	char head[NPY_HEADER_MAX];
};

void column_file_init(struct column_file *file, struct dataset *ds,
		      uint32_t field);

#endif
