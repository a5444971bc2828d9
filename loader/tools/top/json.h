/* SPDX-License-Identifier: Apache-2.0 */
/* A view of a mount as JSON. */
#ifndef LOADER_TOOLS_TOP_JSON_H
#define LOADER_TOOLS_TOP_JSON_H

#include <stdbool.h>
#include <stdio.h>

#include "loader/tools/top/view.h"

/* Prints one object, indented over several lines or compact in one. 0 or
   -ENOMEM. */
int top_json(const struct top_view *view, const char *mount, bool in_lines,
	     FILE *out);

#endif
