/* SPDX-License-Identifier: Apache-2.0 */
/* betonfs._beton.Loader and its batches: the calls of <beton/loader.h> for
   Python. */
#ifndef PYTHON_LOADER_H
#define PYTHON_LOADER_H

#include "python.h"

extern PyType_Spec loader_spec;
extern PyType_Spec batch_spec;

#endif
