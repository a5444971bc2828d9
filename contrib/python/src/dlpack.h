/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of the DLPack 1.0 specification. */
#ifndef PYTHON_DLPACK_H
#define PYTHON_DLPACK_H

#include <stdint.h>

struct dl_device {
	int32_t type;
	int32_t id;
};

enum dl_code {
	DL_INT = 0,
	DL_UINT = 1,
	DL_FLOAT = 2,
	DL_BFLOAT = 4,
	DL_COMPLEX = 5,
	DL_BOOL = 6,
};

struct dl_type {
	uint8_t code; /* enum dl_code */
	uint8_t bits;
	uint16_t lanes;
};

struct dl_tensor {
	void *data;
	struct dl_device device;
	int32_t ndim;
	struct dl_type dtype;
	int64_t *shape;
	int64_t *strides;
	uint64_t byte_offset;
};

struct dl_managed {
	struct dl_tensor tensor;
	void *context;
	void (*deleter)(struct dl_managed *self);
};

enum dl_flag {
	DL_IS_COPIED = 2,
};

struct dl_versioned {
	uint32_t major;
	uint32_t minor;
	void *context;
	void (*deleter)(struct dl_versioned *self);
	uint64_t flags; /* enum dl_flag */
	struct dl_tensor tensor;
};

#endif
