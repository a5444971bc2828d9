/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sample ids of an argument: "3,17,40", or a file with one id per line in
 * the format of a subset (beton-orders(7)). Immutable.
 */
#ifndef LOADER_PIPELINE_OP_SAMPLE_IDS_H
#define LOADER_PIPELINE_OP_SAMPLE_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sample_ids {
	uint64_t *ids; /* ascending */
	size_t count;
};

/* Returns -EINVAL, with the reason in `why`, or -ENOMEM. */
int sample_ids_open(const char *text, struct sample_ids **out, char *why,
		    size_t size);
/* Takes NULL. */
void sample_ids_close(struct sample_ids *ids);

bool sample_ids_has(const struct sample_ids *ids, uint64_t id);

#endif
