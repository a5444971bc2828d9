/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses Python's stable ABI, so that one extension serves Python 3.11 and later.
 * A free-threaded interpreter has no stable ABI yet, and needs a separate build
 * of the same source.
 */
#ifndef PYTHON_PYTHON_H
#define PYTHON_PYTHON_H

#define PY_SSIZE_T_CLEAN
/* Selects the ABI. Must precede the include of Python.h. */
#include <pyconfig.h>
#ifndef Py_GIL_DISABLED
#	define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>

/* Raises a Python exception for an error number of the library. `path` may be
   NULL. Always returns NULL. */
PyObject *raise_error(int error, const char *message, const char *path);

/* The module's types. types_of() finds them from any object of one of them. */
struct types {
	PyTypeObject *loader;
	PyTypeObject *batch;
	PyTypeObject *tensor;
	PyTypeObject *dataset;
	PyTypeObject *writer;
};

struct types *types_of(PyObject *object);

/* Frees an object of a heap type. Free its members before. */
void free_object(PyObject *self);

#endif
