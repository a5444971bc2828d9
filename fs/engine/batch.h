/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch file, as include/beton/batch.h describes it. Opening computes the
 * whole layout from metadata; payloads are read only by reading the file.
 * Immutable, except for its tally.
 */
#ifndef FS_ENGINE_BATCH_H
#define FS_ENGINE_BATCH_H

#include <stdatomic.h>

#include "fs/dataset/vfile.h"
#include "fs/order/spec.h"

/* One field's part of the file. */
struct batch_column {
	struct beton_batch_field desc;
	int32_t *errors;   /* rows; only those that the metadata shows */
	uint8_t *scalars;  /* rows * desc.stride, of a column of scalars */
	uint64_t *sources; /* rows: dataset offsets of the payloads */
	struct beton_batch_value *values; /* rows; scalars: NULL */
};

struct budget;

/* Identifies a batch. */
struct batch_key {
	struct dataset *ds;
	const struct spec *spec;
	uint64_t epoch;
	uint64_t number;
};

struct batch {
	struct vfile vfile; /* first: a batch is a virtual file */
	struct batch_key key;
	struct payload_tally tally; /* vfile.tally points to it */
	struct spec spec;	    /* key.spec points to it */
	atomic_uint refs;
	uint32_t rows;
	uint8_t *head; /* header, field table, SPEC */
	uint64_t head_size;
	uint64_t ids_off;
	uint64_t *ids;
	uint32_t num_columns;
	struct batch_column *columns;
	struct budget *budget; /* has been charged for `charged` bytes */
	uint64_t charged;
	bool has_io_errors; /* metadata could not be read; it may be readable
			       later */
};

/*
 * Lays out a batch and gives the caller one reference to it. The budget, which
 * may be NULL, is charged for its memory until the last reference is dropped,
 * and must outlive it. -ENOENT: no such batch. -EFBIG: it has too many samples
 * and fields. -ENOMEM: its layout found no room in the budget. Samples whose
 * metadata cannot be read have an error in it. Failures are logged.
 */
int batch_open(const struct batch_key *key, struct budget *budget,
	       struct batch **out);

void batch_get(struct batch *batch);
/* Drops a reference and sets the caller's pointer to NULL. Takes NULL. */
void batch_put(struct batch **batch);

/*
 * Reads the whole file into `buf`, of vfile.size bytes. Samples whose payload
 * cannot be read become zeros and have an error. *failed: there are some.
 */
int batch_assemble(const struct batch *batch, void *buf, bool *failed);

/* A hash of the errors in `bytes`, the content of a batch file. Never 0. Other
   errors have another hash, except with probability 2^-64. */
uint64_t batch_marks(const struct batch *batch, const void *bytes);

#endif
