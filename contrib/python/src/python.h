/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python's stable ABI, of 3.11 and later: one extension for all of them. A
 * free-threaded interpreter has none yet, and gets an extension of its own from
 * the same source, which keeps to the same functions.
 */
#ifndef PYTHON_PYTHON_H
#define PYTHON_PYTHON_H

#define PY_SSIZE_T_CLEAN
/* Which of them it is; to be known before Python.h is read. */
#include <pyconfig.h>
#ifndef Py_GIL_DISABLED
#	define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>

/* A Python exception for an error of the library's; `path` may be NULL. Always
   returns NULL. */
PyObject *raise_error(int error, const char *message, const char *path);

/* The types of the module, found from any object of theirs. */
struct types {
	PyTypeObject *loader;
	PyTypeObject *batch;
	PyTypeObject *tensor;
	PyTypeObject *dataset;
	PyTypeObject *writer;
};

struct types *types_of(PyObject *object);

/* Frees an object of a heap type, whose own things are gone already. */
void free_object(PyObject *self);

#endif
