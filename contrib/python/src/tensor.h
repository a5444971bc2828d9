/* SPDX-License-Identifier: Apache-2.0 */
/*
 * betonfs._beton.Tensor: memory of a batch, as the buffer protocol and DLPack
 * give it to others without a copy. Each of them, and each of what they gave
 * out, holds the batch.
 */
#ifndef PYTHON_TENSOR_H
#define PYTHON_TENSOR_H

#include "handle.h"
#include "python.h"

/* The content of a tensor; all its pointers are valid as long as the hold. */
struct tensor_view {
	const char *name;
	const char *dtype;
	void *data;
	uint64_t size; /* bytes */
	uint32_t ndim;
	const uint64_t *shape; /* NULL: one dimension, of `length` */
	uint64_t length;
	const int64_t *offsets; /* of `rows` values, or NULL */
	uint64_t rows;
	int32_t device_type;
	int32_t device_id;
};

PyObject *tensor_new(struct types *types, struct hold *hold,
		     const struct tensor_view *view);

extern PyType_Spec tensor_spec;

#endif
