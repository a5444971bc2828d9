/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard output, with a check that all of it was written. If the reader ends,
 * SIGPIPE ends the program.
 */
#ifndef LOADER_TOOLS_UI_OUTPUT_H
#define LOADER_TOOLS_UI_OUTPUT_H

#include "fs/base/util/log.h"

/* Call it first in main(). Opens the standard descriptors that are closed, so
   that none of the program's files becomes one of them. Reads and writes of
   these descriptors fail. */
void output_begin(void);

/* Writes what is buffered. -errno: some of the output was not written. Logs a
   failure once. */
int output_flush(struct log *log);

/* Call it last in main(). Flushes and closes standard output. Returns `code`,
   or EXIT_FAILURE if that was a success and the output was not written. */
int output_end(struct log *log, int code);

#endif
