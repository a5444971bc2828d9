/* SPDX-License-Identifier: Apache-2.0 */
/* Converts arguments to whole numbers, because the unsigned formats of
   PyArg_ParseTuple() drop excess bits. */
#ifndef PYTHON_NUMBER_H
#define PYTHON_NUMBER_H

#include <stdint.h>

#include "python.h"

struct number {
	const char *name; /* for messages */
	const char *unit; /* advice for a TypeError, or NULL */
	uint64_t max;
	uint64_t value;
};

/* Converts an argument of format O& to a struct number. Unless it is from 0 to
   `max`, raises a ValueError with name and range. */
int number_convert(PyObject *object, void *number);

#endif
