/* SPDX-License-Identifier: Apache-2.0 */
#include "python.h"

#include <string.h>

/* Makes a str from a file name, which can contain any bytes, or from a
   truncated message. */
static PyObject *new_text(const char *bytes)
{
	return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)strlen(bytes),
				    "backslashreplace");
}

PyObject *raise_error(int error, const char *message, const char *path)
{
	PyObject *errors = PyImport_ImportModule("betonfs._errors"), *e;

	if (!errors)
		return NULL;
	message = message && *message ? message : strerror(error);
	e = PyObject_CallMethod(errors, "make", "iNN", error, new_text(message),
				path ? new_text(path) : Py_NewRef(Py_None));
	Py_DECREF(errors);
	if (!e)
		return NULL;
	PyErr_SetObject((PyObject *)Py_TYPE(e), e);
	Py_DECREF(e);
	return NULL;
}

struct types *types_of(PyObject *object)
{
	return PyType_GetModuleState(Py_TYPE(object));
}

void free_object(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc f = (freefunc)PyType_GetSlot(type, Py_tp_free);

	f(self);
	Py_DECREF(type);
}
