/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers out of arguments: the formats of PyArg_ParseTuple() for
   unsigned numbers drop the bits that do not fit. */
#ifndef PYTHON_NUMBER_H
#define PYTHON_NUMBER_H

#include <stdint.h>

#include "python.h"

struct number {
	const char *name; /* for messages */
	const char *unit; /* more of a TypeError, or NULL */
	uint64_t max;
	uint64_t value;
};

/* Converts an argument of format O& to a struct number. A ValueError with name
   and range unless it is from 0 to `max`. */
int number_convert(PyObject *object, void *number);

#endif
