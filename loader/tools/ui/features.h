/* SPDX-License-Identifier: Apache-2.0 */
/* The output of --version: the features of this build, and the libraries it
   finds on this machine. */
#ifndef LOADER_TOOLS_UI_FEATURES_H
#define LOADER_TOOLS_UI_FEATURES_H

#include <stdio.h>

/* Prints "PROGRAM VERSION", then a line per feature. */
void features_print(const char *program, FILE *out);

#endif
