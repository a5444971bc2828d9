/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch file in memory (include/beton/batch.h). batch_view_init() checks it
 * once; reading values needs no further checks.
 */
#ifndef LOADER_RUN_FEED_BATCH_VIEW_H
#define LOADER_RUN_FEED_BATCH_VIEW_H

#include "beton/batch.h"

enum { BATCH_VIEW_WHY_SIZE = 160 };

/* A checked batch file. The bytes must outlive the view. */
struct batch_view {
	const uint8_t *bytes;
	uint64_t size;
	const struct beton_batch_header *header;
	const struct beton_batch_field *fields;
	const char *spec; /* header->spec_size bytes, no NUL */
	const uint64_t *ids;
};

/* One value. `bytes` points into the view. */
struct batch_view_value {
	const uint8_t *bytes;
	uint64_t size;
	enum beton_mode mode;
	uint32_t width;
	uint32_t height;
	int error; /* 0 or a positive errno */
};

/* `bytes` is aligned to 8. -BETON_ENOTBETON: no batch file. -BETON_ECORRUPT: a
   batch file that contradicts itself. `why` receives the reason in one line. */
int batch_view_init(struct batch_view *view, const void *bytes, uint64_t size,
		    char why[BATCH_VIEW_WHY_SIZE]);

/* Requires field < header->num_fields, row < header->rows. */
struct batch_view_value batch_view_at(const struct batch_view *view,
				      uint32_t field, uint32_t row);

#endif
