/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch file, described in include/beton/batch.h. Opening computes the whole
 * layout from metadata; reading the file reads the payloads. Immutable, except
 * for its tally.
 */
#ifndef FS_DATA_ENGINE_BATCH_H
#define FS_DATA_ENGINE_BATCH_H

#include <stdatomic.h>

#include "fs/base/order/spec.h"
#include "fs/data/dataset/vfile.h"

/* One field's part of the file. */
struct batch_column {
	struct beton_batch_field desc;
	int32_t *errors;   /* per sample; only errors that the metadata shows */
	uint8_t *scalars;  /* samples * desc.stride; for a column of scalars */
	uint64_t *sources; /* per sample: dataset offset of the payload */
	struct beton_batch_value *values; /* per sample; scalars: NULL */
};

struct budget;
struct team;

/* Identifies a batch. */
struct batch_key {
	struct dataset *ds;
	const struct spec *spec;
	uint64_t epoch;
	uint64_t number;
};

/* The rank of a loader, which takes one in `world_size` batches. 0: unknown. */
struct batch_share {
	uint32_t rank;
	uint32_t world_size;
};

struct batch {
	struct vfile vfile; /* first: a batch is a virtual file */
	struct batch_key key;
	struct payload_tally tally; /* vfile.tally points to it */
	struct spec spec;	    /* key.spec points to it */
	atomic_uint refs;
	uint32_t samples;
	uint8_t *head; /* header, field table, spec */
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
 * Lays out a batch and gives the caller one reference to it. Charges its memory
 * to the budget, which may be NULL and must outlive the batch, until the last
 * reference is dropped. -ENOENT: no such batch. -EFBIG: it has too many samples
 * and fields. -ENOMEM: the budget has no room for the layout. If the metadata
 * of a sample cannot be read, the batch has an error for it. Failures are
 * logged.
 */
int batch_open(const struct batch_key *key, struct budget *budget,
	       struct batch **out);

void batch_get(struct batch *batch);
/* Drops a reference and sets the caller's pointer to NULL. Takes NULL. */
void batch_put(struct batch **batch);

/* Reads the whole file into `buf`, of vfile.size bytes. A team, unless NULL,
   helps with a large file. If a payload cannot be read, it becomes zeros, the
   sample has an error, and *failed is true. */
int batch_collate(const struct batch *batch, struct team *team, void *buf,
		  bool *failed);

/* Returns a hash of the errors in `bytes`, the content of a batch file. Never
   0. Two sets of errors have the same hash with probability 2^-64. */
uint64_t batch_marks(const struct batch *batch, const void *bytes);

#endif
