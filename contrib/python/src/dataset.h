/* SPDX-License-Identifier: Apache-2.0 */
/* betonfs._beton.Dataset: <beton/dataset.h> for Python, with memory of the
   caller. */
#ifndef PYTHON_DATASET_H
#define PYTHON_DATASET_H

#include "python.h"

extern PyType_Spec dataset_spec;

#endif
