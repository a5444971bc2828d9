/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of datasets as pipelines see them: what most tests have. */
#ifndef TESTS_UNIT_FIELDS_H
#define TESTS_UNIT_FIELDS_H

#include "loader/run/transform/pipeline.h"

#define FIELD_IMAGE(w, h)                                                      \
	{                                                                      \
		.name = "image", .stem = "image", .column = COLUMN_IMAGE,      \
		.usable = true, .dtype = "|u1", .width = (w), .height = (h)    \
	}
#define FIELD_LABEL                                                            \
	{                                                                      \
		.name = "label", .stem = "label", .column = COLUMN_SCALAR,     \
		.usable = true, .dtype = "<i8"                                 \
	}

#endif
