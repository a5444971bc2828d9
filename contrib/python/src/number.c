/* SPDX-License-Identifier: Apache-2.0 */
#include "number.h"

#include <stdio.h>

int number_convert(PyObject *object, void *number)
{
	struct number *n = number;
	PyObject *whole;
	unsigned long long value = 0;
	char range[140];

	/* Refuse bool, although True is 1. */
	if (PyBool_Check(object) || !PyIndex_Check(object)) {
		snprintf(range, sizeof(range),
			 "%s=%%R: a whole number from 0 to %llu, no text or "
			 "fraction%s",
			 n->name, (unsigned long long)n->max,
			 n->unit ? n->unit : "");
		PyErr_Format(PyExc_TypeError, range, object);
		return 0;
	}
	whole = PyNumber_Index(object);
	if (!whole)
		return 0;
	value = PyLong_AsUnsignedLongLong(whole);
	if (!PyErr_Occurred() && value <= n->max) {
		n->value = value;
	} else {
		PyErr_Clear();
		snprintf(range, sizeof(range),
			 "%s=%%R: a number from 0 to %llu", n->name,
			 (unsigned long long)n->max);
		PyErr_Format(PyExc_ValueError, range, whole);
	}
	Py_DECREF(whole);
	return !PyErr_Occurred();
}
