/* SPDX-License-Identifier: Apache-2.0 */
/* betonfs._beton.Writer and encode(): <beton/writer.h>. */
#ifndef PYTHON_WRITER_H
#define PYTHON_WRITER_H

#include "python.h"

extern PyType_Spec writer_spec;

/* encode(pixels, width, height, raw, quality, max_resolution) and keep(jpeg)
   return (bytes, mode, width, height) for Writer.append(). */
PyObject *writer_encode(PyObject *module, PyObject *args);
PyObject *writer_keep(PyObject *module, PyObject *args);

#endif
