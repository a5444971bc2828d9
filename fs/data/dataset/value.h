/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the values of a dataset lie: the records of samples, the value of a
 * field, and requests for both before they are needed; and values as virtual
 * files, for samples/ and columns/ of a mount. Thread-safe.
 */
#ifndef FS_DATA_DATASET_VALUE_H
#define FS_DATA_DATASET_VALUE_H

#include "fs/base/util/npy.h"
#include "fs/data/dataset/dataset.h"
#include "fs/data/dataset/vfile.h"

/* Reads the metadata records of samples [first, first + n), itemsize each. */
int dataset_records(struct dataset *ds, uint64_t first, uint64_t n, void *buf);

/* Returns the offset in the source of a sample's record. *n is the number of
   samples whose records follow there without a gap. */
uint64_t dataset_record_at(const struct dataset *ds, uint64_t sample,
			   uint64_t *n);

/*
 * Finds the value of a field of a sample, whose record the caller has.
 * -BETON_ECORRUPT, logged: it does not lie inside one page. -EOPNOTSUPP: the
 * field is unusable.
 */
int dataset_value(struct dataset *ds, uint32_t field, uint64_t sample,
		  const uint8_t *record, struct value *out);

/* Like dataset_value(), but does not log damage. For prefetching. */
int dataset_place(struct dataset *ds, uint32_t field, uint64_t sample,
		  const uint8_t *record, struct value *out);

/*
 * Like dataset_value(), for callers that look at few samples. Over a network,
 * the first ones do not wait until the whole allocation table has been read
 * (alloc_probe.h).
 */
int dataset_value_alone(struct dataset *ds, uint32_t field, uint64_t sample,
			const uint8_t *record, struct value *out);

/* Reads one record, then dataset_value_alone(). */
int dataset_value_at(struct dataset *ds, uint32_t field, uint64_t sample,
		     struct value *out);

/* Returns whether dataset_records() and dataset_value() of the sample need
   neither wait nor read anything that is not in memory. */
bool dataset_is_at_hand(struct dataset *ds, uint64_t sample);

/*
 * Requests what dataset_records() and dataset_value() are about to read for
 * some samples, so that a remote source needs two round trips for all of them.
 * Requires samples of the dataset. Local files ignore it.
 */
void dataset_prefetch(struct dataset *ds, const uint64_t *samples, size_t n);

/* Like dataset_prefetch(), for dataset_records() alone. */
void dataset_prefetch_records(struct dataset *ds, const uint64_t *samples,
			      size_t n);

/* Requests the records of samples [first, first + n), or the first ones of
   them if there are too many. */
void dataset_prefetch_run(struct dataset *ds, uint64_t first, uint64_t n);

/*
 * Sets *out to the number of reads that dataset_value() may need for the size
 * of a JPEG. It is 0 if none are needed or the allocation table is damaged.
 * -errno: reading the table failed.
 */
int dataset_size_reads(struct dataset *ds, size_t *out);

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
