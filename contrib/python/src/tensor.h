/* SPDX-License-Identifier: Apache-2.0 */
/*
 * betonfs._beton.Tensor: memory of a batch, which the buffer protocol and
 * DLPack export without a copy. Each tensor and each export holds the batch.
 */
#ifndef PYTHON_TENSOR_H
#define PYTHON_TENSOR_H

#include "handle.h"
#include "python.h"

/* The content of a tensor. Its pointers are valid as long as the batch is
   held. */
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
