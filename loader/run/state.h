/* SPDX-License-Identifier: Apache-2.0 */
/* A loader's position as a small JSON text, beton-orders(7). */
#ifndef LOADER_RUN_STATE_H
#define LOADER_RUN_STATE_H

#include "beton/batch.h"
#include "fs/order/spec_text.h"

enum { STATE_VERSION = 1 };

struct state {
	char fingerprint[2 * BETON_FINGERPRINT_SIZE + 1];
	char spec[SPEC_TEXT_MAX];
	uint64_t epoch;
	uint64_t batches; /* consumed of the epoch's global sequence */
	char source[16];  /* of synthetic data; "": the data was real */
};

/* -ENOSPC: the text does not fit. */
int state_format(const struct state *state, char *buffer, size_t size);

/* -EINVAL: the text is no state. `why` receives the reason in one line. */
int state_parse(const char *text, struct state *out, char why[SPEC_WHY_SIZE]);

#endif
