/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SPEC as text: its keys, their defaults, and the canonical spelling,
 * beton-orders(7). Pure functions of the text and of two facts about the
 * dataset.
 */
#ifndef FS_SPEC_TEXT_H
#define FS_SPEC_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/spec.h"
#include "fs/subset.h"

enum {
	SPEC_TEXT_MAX = 256, /* of a canonical SPEC, with its NUL */
	SPEC_WHY_SIZE = 160,
};

/* What defaults and byte sizes depend on. */
struct spec_facts {
	uint64_t samples;
	uint64_t data_bytes; /* dataset_data_bytes() */
	/* That a SPEC may name; NULL: none. They outlive all specs. */
	const struct subset *subsets;
};

/* -EINVAL, and why in one line. The empty text is all defaults. */
int spec_parse(const char *text, const struct spec_facts *facts,
	       struct spec *out, char why[SPEC_WHY_SIZE]);

/* The named subset that a text asks for, which need not be a SPEC. False: it
   names none. */
bool spec_names_subset(const char *text, struct subset_ref *out);

/* The one canonical text. */
void spec_canonical(const struct spec *spec, char out[SPEC_TEXT_MAX]);

#endif
