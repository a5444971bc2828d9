/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes checkpoints: the position of a loader as a short JSON text
   (beton-orders(7)). */
#ifndef LOADER_RUN_LOOP_STATE_H
#define LOADER_RUN_LOOP_STATE_H

#include "beton/batch.h"
#include "fs/base/order/spec_text.h"

enum { STATE_VERSION = 1 };

struct state {
	char fingerprint[2 * BETON_FINGERPRINT_SIZE + 1];
	char spec[SPEC_TEXT_MAX];
	uint64_t epoch;
	uint64_t batches; /* consumed batches of the epoch's global sequence */
	char source[16];  /* source of synthetic data; "": real data */
};

/* Writes a checkpoint. Returns -ENOSPC if the text does not fit. */
int state_format(const struct state *state, char *buffer, size_t size);

/* Parses a checkpoint. If the text is not a checkpoint, returns -EINVAL, and
   `why` receives the reason in one line. */
int state_parse(const char *text, struct state *out, char why[SPEC_WHY_SIZE]);

#endif
