/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic data instead of a loader's batches or its dataset, for measuring.
 * This module parses the text of `source` and $BETON_SYNTHETIC, in the grammar
 * of pipelines (beton-synthetic(7)), and explains what is wrong with it.
 */
#ifndef LOADER_RUN_FEED_SYNTHETIC_TEXT_H
#define LOADER_RUN_FEED_SYNTHETIC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "beton/batch.h"
#include "loader/pipeline/op/dtype.h"

enum {
	SYNTHETIC_NAME_MAX = 16, /* size of a field's name, as in a dataset */
	SYNTHETIC_FIELDS_MAX = 1024,
};

/* Whether the loader replays its first batches. */
enum synthetic_replay {
	SYNTHETIC_REPLAY_NONE,
	SYNTHETIC_REPLAY_CONSTANT, /* one batch, which stays on the GPU */
	SYNTHETIC_REPLAY_MEMORY,   /* several, uploaded each time */
};

struct synthetic_field {
	char name[SYNTHETIC_NAME_MAX + 1];
	enum beton_type type;
	enum dtype dtype; /* of elements */
	uint32_t ndim;	  /* of one row; images have 3 */
	uint64_t shape[BETON_MAX_NDIM];
	uint64_t count; /* elements of one row, at least 1 */
	uint64_t limit; /* integers are below it */
};

struct log;

struct synthetic {
	enum synthetic_replay replay;
	uint64_t memory;  /* bytes to keep; 0: the batches of a ring */
	uint64_t samples; /* of a synthetic dataset; 0: the dataset is real */
	uint32_t num_fields;
	struct synthetic_field *fields;
	uint8_t fingerprint[BETON_FINGERPRINT_SIZE]; /* of that dataset */
};

/* Parses $BETON_SYNTHETIC or, if that is not set, `source`. If both are unset
   or the string is empty, all data is real. If the variable is set, writes a
   warning to the log and, unless `has_log`, to standard error. -EINVAL is
   logged. */
int synthetic_open(const char *source, struct log *log, bool has_log,
		   struct synthetic *out);
void synthetic_fini(struct synthetic *f);

/* The name for beton_loader_info.source. NULL: all data is real. */
const char *synthetic_name(const struct synthetic *f);

#endif
