/* SPDX-License-Identifier: Apache-2.0 */
/* The options that every command of the programs has. */
#ifndef LOADER_TOOLS_UI_COMMON_H
#define LOADER_TOOLS_UI_COMMON_H

#include <stdbool.h>

#include "loader/tools/ui/option.h"

struct common_options {
	unsigned level; /* enum beton_log_level: messages to print */
	bool help;
	bool version;
	bool list;     /* the hidden --options */
	bool describe; /* the hidden --completions */
};

/* Sets the defaults, and returns the rows of an option set. */
struct option_group common_init(struct common_options *options);

#endif
