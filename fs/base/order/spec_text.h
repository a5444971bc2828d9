/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sampling spec as text: its keys, their defaults, and the canonical
 * spelling, beton-orders(7). Pure functions of the text and of two facts about
 * the dataset.
 */
#ifndef FS_BASE_ORDER_SPEC_TEXT_H
#define FS_BASE_ORDER_SPEC_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/base/order/spec.h"
#include "fs/base/order/subset.h"

enum {
	SPEC_TEXT_MAX = 256, /* of a canonical spec, with its NUL */
	SPEC_WHY_SIZE = 256, /* of a reason, with its NUL */
};

/* The properties of the dataset on which defaults and sizes in bytes depend. */
struct spec_facts {
	uint64_t samples;
	uint64_t data_bytes; /* dataset_data_bytes() */
	/* The subsets that a spec may name, or NULL. They outlive all specs. */
	const struct subset *subsets;
};

/* Parses a spec; the empty text means all defaults. If the text is wrong,
   returns -EINVAL and writes the reason as one line to `why`. */
int spec_parse(const char *text, const struct spec_facts *facts,
	       struct spec *out, char why[SPEC_WHY_SIZE]);

/* Finds the named subset in a text, even if other parts of the text are wrong.
   Returns false if the text names none. */
bool spec_names_subset(const char *text, struct subset_ref *out);

/* Writes the canonical text. Equal specs have equal texts. */
void spec_canonical(const struct spec *spec, char out[SPEC_TEXT_MAX]);

#endif
