/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands for a loader's batches or for its dataset, for measuring: the
 * text of `source` and of $BETON_FAKE, in the grammar of pipelines,
 * beton-transforms(7). Knows what the text says, and how to say no to it.
 */
#ifndef LOADER_FEED_FAKE_TEXT_H
#define LOADER_FEED_FAKE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "beton/batch.h"
#include "loader/graph/dtype.h"

enum {
	FAKE_NAME_MAX = 16, /* of a field, as in a dataset */
	FAKE_FIELDS_MAX = 1024,
};

/* Whether the first batches are given again. */
enum fake_replay {
	FAKE_REPLAY_NONE,
	FAKE_REPLAY_CONSTANT, /* one, and on a GPU it stays where it is */
	FAKE_REPLAY_MEMORY,   /* some, and they are shipped each time */
};

struct fake_field {
	char name[FAKE_NAME_MAX + 1];
	enum beton_type type;
	enum dtype dtype; /* of elements */
	uint32_t ndim;	  /* of one row; images have 3 */
	uint64_t shape[BETON_MAX_NDIM];
	uint64_t count; /* elements of one row, at least 1 */
	uint64_t limit; /* integers are below that */
};

struct log;

struct fake {
	enum fake_replay replay;
	uint64_t memory;  /* bytes to keep; 0: as many batches as a ring has */
	uint64_t samples; /* of a dataset of `fields`; 0: it is not fake */
	uint32_t num_fields;
	struct fake_field *fields;
	uint8_t fingerprint[BETON_FINGERPRINT_SIZE]; /* of the dataset */
};

/*
 * What $BETON_FAKE says or, where that is not set, `source`; NULL and the empty
 * text: nothing is fake. A program that is run again as it is, but for the
 * variable, is told so: by the log or, if nobody hears that, on standard error.
 * -EINVAL is logged.
 */
int fake_open(const char *source, struct log *log, bool is_heard,
	      struct fake *out);
void fake_fini(struct fake *f);

/* As beton_loader_info has it; NULL: nothing is fake. */
const char *fake_name(const struct fake *f);

#endif
