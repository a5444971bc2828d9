/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/util/array.h"

#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/data/dataset/field.h"

/* Whether pipelines can convert this type of numbers. */
static bool is_dtype(const char *dtype)
{
	static const char names[][4] = { "|b1", "|i1", "|u1", "<i2", "<u2",
					 "<i4", "<u4", "<i8", "<u8", "<f2",
					 "<f4", "<f8", "<V2" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!memcmp(names[i], dtype, sizeof(names[i])))
			return true;
	}
	return false;
}

/* Reads the shape and returns whether its elements take `size` bytes. */
static bool read_shape(struct array *a, const uint8_t *from, uint64_t size)
{
	uint64_t row = field_dtype_size(a->dtype);

	for (uint32_t i = 0; i < a->ndim; i++) {
		a->shape[i] = load64(from + 8 * (size_t)i);
		if (i && (!a->shape[i] || !mul_ok(row, a->shape[i], &row)))
			return false;
	}
	return mul_ok(row, a->shape[0], &row) && row == size;
}

bool array_parse(const void *bytes, uint64_t have, uint64_t size,
		 struct array *out)
{
	struct beton_array_header h;
	struct array a = { .offset = sizeof(h) };

	*out = (struct array){ .ndim = 0 };
	if (have < sizeof(h))
		return false;
	memcpy(&h, bytes, sizeof(h));
	if (memcmp(h.magic, BETON_ARRAY_MAGIC, sizeof(h.magic)) != 0 ||
	    !is_dtype(h.dtype) || !h.ndim || h.ndim > BETON_ARRAY_MAX_NDIM)
		return false;
	memcpy(a.dtype, h.dtype, sizeof(a.dtype));
	a.ndim = h.ndim;
	a.offset += 8 * (uint64_t)h.ndim;
	if (a.offset > have || a.offset > size ||
	    !read_shape(&a, (const uint8_t *)bytes + sizeof(h),
			size - a.offset))
		return false;
	*out = a;
	return true;
}

size_t array_header(uint8_t out[ARRAY_HEADER_MAX], const char *dtype,
		    uint32_t ndim, const uint64_t *shape)
{
	struct beton_array_header h = { .ndim = ndim };

	memcpy(h.magic, BETON_ARRAY_MAGIC, sizeof(h.magic));
	memcpy(h.dtype, dtype, strnlen(dtype, sizeof(h.dtype)));
	memcpy(out, &h, sizeof(h));
	for (uint32_t i = 0; i < ndim; i++)
		store64(out + sizeof(h) + 8 * (size_t)i, shape[i]);
	return sizeof(h) + 8 * (size_t)ndim;
}

bool array_is_alike(const struct array *a, const struct array *b)
{
	return !memcmp(a->dtype, b->dtype, sizeof(a->dtype)) &&
	       a->ndim == b->ndim &&
	       !memcmp(a->shape + 1, b->shape + 1,
		       sizeof(a->shape) - sizeof(*a->shape));
}

const char *array_text(const struct array *a, char out[ARRAY_TEXT_SIZE])
{
	size_t n = (size_t)snprintf(out, ARRAY_TEXT_SIZE, "%s (?", a->dtype);

	for (uint32_t i = 1; i < a->ndim; i++)
		n += (size_t)snprintf(out + n, ARRAY_TEXT_SIZE - n, ", %llu",
				      (unsigned long long)a->shape[i]);
	snprintf(out + n, ARRAY_TEXT_SIZE - n, ")");
	return out;
}
