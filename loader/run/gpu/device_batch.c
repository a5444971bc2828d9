/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/gpu/device_batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/run/jit/emit_device.h"
#include "loader/run/transform/pipeline.h"

/*
 * Parts of the slot that an output has. Without a kernel, the result is the
 * copied rows. A kernel reads the rows, and the floats of all rows, after which
 * there is a byte per row: whether the loader made it.
 */
enum { RESULT, MADE, OPERANDS, PARTS };

struct device_batch {
	struct device *device;
	struct upload_slot *slot;
	size_t num_outputs;
	struct upload_copy *copies;    /* [num_outputs * PARTS] */
	const struct device_batch *of; /* parcel that it repeats; NULL: none */
	bool uploads;		       /* has its own copy of that parcel */
	const struct pipeline *pipeline;
	uint32_t rows;
	bool is_begun; /* begun, and not released */
};

int device_batch_open(struct device *d, size_t num_outputs,
		      struct device_batch **out)
{
	struct device_batch *p = calloc(1, sizeof(*p));
	int r = p ? 0 : -ENOMEM;

	if (!r) {
		p->device = d;
		p->num_outputs = num_outputs;
		p->copies = calloc(num_outputs * PARTS + 1, sizeof(*p->copies));
		r = p->copies ? 0 : -ENOMEM;
	}
	if (!r)
		r = upload_slot_open(device_upload(d),
				     (uint32_t)(num_outputs * PARTS), &p->slot);
	if (r)
		device_batch_close(p);
	else
		*out = p;
	return r;
}

void device_batch_close(struct device_batch *p)
{
	if (!p)
		return;
	upload_slot_close(p->slot);
	free(p->copies);
	free(p);
}

static uint32_t slot_part(size_t output, unsigned part)
{
	return (uint32_t)(output * PARTS + part);
}

static const struct pipeline_output *output_at(const struct device_batch *p,
					       size_t i)
{
	return pipeline_output_at(p->pipeline, i);
}

static uint64_t size_of_floats(const struct device_batch *p, size_t i)
{
	return p->rows * pipeline_num_operands(p->pipeline, i) * sizeof(float);
}

/* Reserves memory of the host and of the device. The host needs none for the
   result of a kernel, nor for the rows of another parcel. */
static int reserve(struct device_batch *p, size_t i, unsigned part,
		   uint64_t size)
{
	bool copied = part != RESULT || !pipeline_has_rest(p->pipeline, i);

	p->copies[slot_part(i, part)] = (struct upload_copy){
		.part = slot_part(i, part),
		.size = copied ? size : 0,
		.from = p->of ? p->of->slot : NULL,
	};
	return upload_reserve(p->slot, slot_part(i, part),
			      copied && !p->of ? size : 0, size);
}

static int reserve_output(struct device_batch *p, size_t i)
{
	const struct pipeline_output *o = output_at(p, i);
	uint64_t result, made;
	int r;

	if (!mul_ok(p->rows, o->row_size, &result) ||
	    !mul_ok(p->rows, o->made_size, &made))
		return -ENOMEM;
	r = reserve(p, i, RESULT, result);
	if (r || !pipeline_has_rest(p->pipeline, i))
		return r;
	r = reserve(p, i, MADE, made);
	return r ? r : reserve(p, i, OPERANDS, size_of_floats(p, i) + p->rows);
}

static int begin_batch(struct device_batch *p)
{
	int r = upload_begin(p->slot);

	p->is_begun = !r;
	memset(p->copies, 0, p->num_outputs * PARTS * sizeof(*p->copies));
	for (size_t i = 0; !r && p->uploads && i < p->num_outputs; i++) {
		if (output_at(p, i)->device >= 0)
			r = reserve_output(p, i);
	}
	return r;
}

int device_batch_begin(struct device_batch *p, const struct pipeline *pipeline,
		       uint32_t rows)
{
	p->pipeline = pipeline;
	p->rows = rows;
	p->of = NULL;
	p->uploads = true;
	return begin_batch(p);
}

bool device_batch_has_waited(const struct device_batch *p)
{
	return upload_has_waited(p->slot);
}

uint64_t device_batch_size(const struct device_batch *p)
{
	uint64_t size = 0;

	for (size_t i = 0; i < p->num_outputs * PARTS; i++)
		size += p->copies[i].size;
	return size;
}

uint8_t *device_batch_rows(const struct device_batch *p, size_t i)
{
	bool rest = pipeline_has_rest(p->pipeline, i);

	if (output_at(p, i)->device < 0)
		return NULL;
	return upload_host(p->slot, slot_part(i, rest ? MADE : RESULT));
}

uint64_t device_batch_address(const struct device_batch *p, size_t i)
{
	const struct device_batch *has = p->uploads ? p : p->of;

	return upload_device(has->slot, slot_part(i, RESULT));
}

void device_batch_row(struct device_batch *p, size_t i, uint32_t row,
		      const struct pipeline_row *key, bool is_made)
{
	uint8_t *operands;

	if (output_at(p, i)->device < 0 || !pipeline_has_rest(p->pipeline, i))
		return;
	operands = upload_host(p->slot, slot_part(i, OPERANDS));
	operands[size_of_floats(p, i) + row] = is_made;
	pipeline_operands(p->pipeline, i, key,
			  (float *)operands +
				  row * pipeline_num_operands(p->pipeline, i));
}

/*
 * Launches rows [first, first + count), since the height of a grid is limited.
 */
static int launch(struct device_batch *p, size_t i, uint32_t first,
		  uint32_t count, struct cuda *cuda, struct cuda_stream *stream)
{
	const struct pipeline_output *o = output_at(p, i);
	uint64_t operands = upload_device(p->slot, slot_part(i, OPERANDS));
	uint64_t stride = pipeline_num_operands(p->pipeline, i);
	struct emit_device_call call = {
		.in = upload_device(p->slot, slot_part(i, MADE)) +
		      first * o->made_size,
		.out = device_batch_address(p, i) + first * o->row_size,
		.operands = operands + first * stride * sizeof(float),
		.stride = stride,
		.made = operands + size_of_floats(p, i) + first,
	};
	void *arguments[] = { &call.in,	    &call.out,	&call.operands,
			      &call.stride, &call.made, &call.width,
			      &call.height };
	uint64_t pixels;

	pipeline_image_size(p->pipeline, i, &call.width, &call.height);
	pixels = (uint64_t)call.width * call.height;
	return cuda_launch(
		cuda,
		&(struct cuda_launch){
			.kernel = device_kernel(p->device, p->pipeline, i),
			.grid = { (uint32_t)((pixels + EMIT_DEVICE_BLOCK - 1) /
					     EMIT_DEVICE_BLOCK),
				  count },
			.block = { EMIT_DEVICE_BLOCK },
			.arguments = arguments,
		},
		stream);
}

static int run_kernels(void *arg, struct cuda *cuda, struct cuda_stream *stream)
{
	struct device_batch *p = arg;
	int r = 0;

	cuda_range_push(cuda, "beton kernels");
	for (size_t i = 0; i < p->num_outputs; i++) {
		if (!pipeline_has_rest(p->pipeline, i))
			continue;
		for (uint32_t row = 0; !r && row < p->rows;
		     row += EMIT_DEVICE_ROWS_MAX)
			r = launch(p, i, row,
				   (uint32_t)min_u64(p->rows - row,
						     EMIT_DEVICE_ROWS_MAX),
				   cuda, stream);
	}
	cuda_range_pop(cuda);
	return r;
}

int device_batch_start(struct device_batch *p)
{
	return upload_start(p->slot, p->copies, p->num_outputs * PARTS,
			    p->uploads ? run_kernels : NULL, p);
}

int device_batch_repeat(struct device_batch *p, const struct device_batch *of,
			bool upload)
{
	int r;

	p->pipeline = of->pipeline;
	p->rows = of->rows;
	p->of = of;
	p->uploads = upload;
	r = begin_batch(p);
	return r ? r : device_batch_start(p);
}

int device_batch_read(struct device_batch *p, size_t i, void *to, uint64_t size)
{
	int r = upload_wait(p->slot);

	return r ? r
		 : device_download(p->device, device_batch_address(p, i), to,
				   size);
}

int device_batch_acquire(struct device_batch *p, struct cuda_stream *stream)
{
	return upload_acquire(p->slot, stream);
}

int device_batch_wait(struct device_batch *p)
{
	return upload_wait(p->slot);
}

int device_batch_release(struct device_batch *p, struct cuda_stream *stream)
{
	int r = upload_release(p->slot, stream);

	p->is_begun = r != 0;
	return r;
}

int device_batch_finish(struct device_batch *p)
{
	int r = p->is_begun ? upload_finish(p->slot) : 0;

	p->is_begun = p->is_begun && r;
	return r;
}

void device_batch_end(struct device_batch *p)
{
	if (p->is_begun)
		upload_release_done(p->slot);
	p->is_begun = false;
}
