/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the bytes of one value. */
#ifndef LOADER_TOOLS_FSCK_VALUE_H
#define LOADER_TOOLS_FSCK_VALUE_H

#include "loader/tools/fsck/decode.h"
#include "loader/tools/fsck/scan.h"

/* Belongs to one thread. */
struct value_checker {
	const struct format *format;
	struct decoder *decoder;
	bool is_deep;
};

/*
 * Returns whether the value is sound; otherwise the finding has the check and
 * the reason. A value is at most one finding.
 */
bool value_check(struct value_checker *c, const struct value_span *v,
		 const uint8_t *bytes, struct finding *out);

/* Returns whether value_check() reads the bytes of a field's values. */
bool value_has_rules(const struct field *f);

#endif
