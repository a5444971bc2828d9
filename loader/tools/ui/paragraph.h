/* SPDX-License-Identifier: Apache-2.0 */
/* The paragraphs of --help: an option at the left, its explanation at the
   right. */
#ifndef LOADER_TOOLS_UI_PARAGRAPH_H
#define LOADER_TOOLS_UI_PARAGRAPH_H

#include <stdio.h>

/* Prints `left`, and `text` from a fixed column on, wrapped so that no line has
   more than 79 columns. A long `left` has a line of its own. */
void paragraph_print(FILE *out, const char *left, const char *text);

#endif
