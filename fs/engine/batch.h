/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch file, include/beton/batch.h: where everything of it lies is computed
 * from metadata alone; no payload is touched before it is read. Immutable, but
 * for its tally.
 */
#ifndef FS_ENGINE_BATCH_H
#define FS_ENGINE_BATCH_H

#include <stdatomic.h>

#include "fs/dataset/vfile.h"
#include "fs/order/spec.h"

/* One field's part of the file. */
struct batch_column {
	struct beton_batch_field desc;
	int32_t *errors;   /* rows, as the metadata alone tells */
	uint8_t *scalars;  /* rows * desc.stride, of a column of scalars */
	uint64_t *sources; /* rows: dataset offsets of the payloads */
	struct beton_batch_value *values; /* rows, while variable */
};

/* What names a batch. */
struct batch_key {
	struct dataset *ds;
	const struct spec *spec;
	uint64_t epoch;
	uint64_t number;
};

struct batch {
	struct vfile vfile; /* first: a batch is a virtual file */
	struct batch_key key;
	struct payload_tally tally; /* what vfile.tally points at */
	struct spec spec;	    /* what key.spec points at */
	atomic_uint refs;
	uint32_t rows;
	uint8_t *head; /* header, field table, SPEC */
	uint64_t head_size;
	uint64_t ids_off;
	uint64_t *ids;
	uint32_t num_columns;
	struct batch_column *columns;
	bool has_io_errors; /* of its metadata: another try may differ */
};

/*
 * Lays a batch out; one reference. -ENOENT: no such batch. Samples that cannot
 * be read are marked in it. Failures are logged.
 */
int batch_open(const struct batch_key *key, struct batch **out);

void batch_get(struct batch *batch);
/* Drops a reference and the caller's pointer; takes NULL. */
void batch_put(struct batch **batch);

/*
 * Fills `buf`, of vfile.size bytes, with the whole file. Samples whose bytes
 * cannot be read are zero and marked; *failed is set if there are any.
 */
int batch_assemble(const struct batch *batch, void *buf, bool *failed);

/* Of bytes in which samples failed: which ones. Never 0, and another number if
   others did, but by an accident in 2^64. */
uint64_t batch_marks(const struct batch *batch, const void *bytes);

#endif
