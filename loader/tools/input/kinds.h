/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of sources, and the choice of one. */
#ifndef LOADER_TOOLS_INPUT_KINDS_H
#define LOADER_TOOLS_INPUT_KINDS_H

#include "loader/tools/input/input.h"

extern const struct input_kind input_beton, input_directory, input_library,
	input_list, input_manifest, input_numpy, input_webdataset;

/*
 * Opens SOURCE operands as one input. All are of one kind, which their names
 * and first bytes determine. The caller sets
 * all of the setup but the paths. Failures are logged.
 */
int input_open(char *const *sources, size_t num_sources,
	       struct input_setup *setup, struct input **out);

#endif
