/* SPDX-License-Identifier: Apache-2.0 */
/* betonfs._beton.merge(): beton_merge() of <beton/writer.h>. */
#ifndef PYTHON_MERGE_H
#define PYTHON_MERGE_H

#include "python.h"

/*
 * merge(sources, path, page_size, keep_numbers, report) returns the number of
 * samples. `sources` is a tuple of file names as bytes. `report` is None, or a
 * function of the samples done and their total. An exception of it, or of a
 * signal handler such as KeyboardInterrupt, ends the merge.
 */
PyObject *merge(PyObject *module, PyObject *args);

#endif
