/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/loop/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/stream_copy.h"

/* The step copies columns, if they are at most this part of the batch file. */
enum { COPIED_PART = 16 };

/* The user holds shared memory for a column of at least this part of it. */
enum { KEEP_PART = 4 };

int step_open(const struct step_plan *plan, struct step **out)
{
	size_t n = pipeline_num_outputs(phases_row(plan->phases, 0));
	struct step *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return -ENOMEM;
	s->outputs = calloc(n + 1, sizeof(*s->outputs));
	s->tensors = calloc(n + 1, sizeof(*s->tensors));
	if (!s->outputs || !s->tensors) {
		step_close(s);
		return -ENOMEM;
	}
	if (plan->device && plan->until == BETON_STAGE_ALL)
		r = device_batch_open(plan->device, n, &s->parcel);
	if (r) {
		step_close(s);
		return r;
	}
	s->batch.outputs = s->tensors;
	s->batch.num_outputs = (uint32_t)n;
	*out = s;
	return 0;
}

void step_close(struct step *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->outputs && i < s->batch.num_outputs; i++) {
		buffer_fini(&s->outputs[i].data);
		buffer_fini(&s->outputs[i].offsets);
		buffer_fini(&s->outputs[i].parts);
		list_rows_fini(&s->outputs[i].lists);
	}
	device_batch_close(s->parcel);
	buffer_fini(&s->valid);
	buffer_fini(&s->unmade);
	buffer_fini(&s->errors);
	buffer_fini(&s->ids);
	buffer_fini(&s->input.own);
	free(s->outputs);
	free(s->tensors);
	free(s);
}

uint32_t step_field_of(const struct step *s, uint32_t i,
		       const struct pipeline_output *o)
{
	return s->is_sent ? i : o->field;
}

/* An unreadable row has no bytes. */
static uint64_t ragged_size(const struct step *s, uint32_t field, uint32_t row)
{
	struct batch_view_value v = batch_view_at(&s->view, field, row);

	return v.error ? 0 : v.size;
}

/* Computes the offsets of rows with different sizes, so that workers can copy
   the rows in any order. */
static int prepare_ragged(struct step *s, uint32_t i,
			  const struct pipeline_output *o)
{
	struct step_output *out = &s->outputs[i];
	uint64_t at = 0;
	int64_t *offsets;
	int r = buffer_reserve(&out->offsets,
			       8 * ((uint64_t)s->batch.num_samples + 1));

	if (r)
		return r;
	offsets = (int64_t *)out->offsets.bytes;
	for (uint32_t row = 0; row < s->batch.num_samples; row++) {
		offsets[row] = (int64_t)at;
		if (!add_ok(at, ragged_size(s, step_field_of(s, i, o), row),
			    &at) ||
		    at >= INT64_MAX)
			return -ENOMEM;
	}
	offsets[s->batch.num_samples] = (int64_t)at;
	out->shape[0] = at;
	s->tensors[i].offsets = offsets;
	s->tensors[i].device_type = BETON_DEVICE_CPU;
	s->tensors[i].ndim = 1;
	s->tensors[i].size = at;
	out->is_column = false;
	r = buffer_reserve(&out->data, at + 1);
	s->tensors[i].data = out->data.bytes;
	return r;
}

/* Returns the most bytes of the rows that a list output makes of a sample. */
static uint64_t list_size(const struct step *s, uint32_t i,
			  const struct pipeline_output *o, uint32_t row)
{
	uint64_t size = ragged_size(s, step_field_of(s, i, o), row);

	return s->is_sent ? size : pipeline_list_size(s->pipeline, i, size);
}

/* Reserves memory for the rows of each sample. step_join() describes the tensor
   later. */
static int prepare_list(struct step *s, uint32_t i,
			const struct pipeline_output *o)
{
	struct list_rows *lists = &s->outputs[i].lists;
	int r = list_rows_begin(lists, s->batch.num_samples);

	for (uint32_t row = 0; !r && row < s->batch.num_samples; row++)
		r = list_rows_add(lists, row, list_size(s, i, o, row));
	if (!r)
		r = list_rows_reserve(lists);
	if (!r && o->ragged)
		r = buffer_reserve(&s->outputs[i].offsets,
				   8 * ((uint64_t)s->batch.num_samples + 1));
	s->outputs[i].is_column = false;
	s->tensors[i].device_type = BETON_DEVICE_CPU;
	s->tensors[i].device_id = 0;
	return r;
}

/* Describes an output with joined rows. */
static int join_list(struct step *s, uint32_t i,
		     const struct pipeline_output *o)
{
	struct step_output *out = &s->outputs[i];
	struct beton_tensor *t = &s->tensors[i];
	int64_t *offsets = (int64_t *)out->offsets.bytes;

	list_rows_cut(&out->lists, o->most);
	list_rows_join(&out->lists, o->item_size, offsets);
	memcpy(out->shape, o->shape, o->ndim * sizeof(*o->shape));
	out->shape[0] = (uint64_t)offsets[s->batch.num_samples];
	t->ndim = o->ndim;
	t->offsets = offsets;
	t->data = out->lists.rows.bytes;
	t->size = out->shape[0] * o->item_size;
	return 0;
}

static int pad_list(struct step *s, uint32_t i, const struct pipeline_output *o)
{
	struct step_output *out = &s->outputs[i];
	struct beton_tensor *t = &s->tensors[i];
	uint64_t length;
	int r = list_rows_pad(&out->lists, o, &out->data, &length);

	if (r)
		return r;
	memcpy(out->shape + 1, o->shape, o->ndim * sizeof(*o->shape));
	out->shape[0] = s->batch.num_samples;
	out->shape[1] = length;
	t->ndim = o->ndim + 1;
	t->offsets = NULL;
	t->data = out->data.bytes;
	t->size = out->shape[0] * length * o->item_size;
	return 0;
}

int step_join(struct step *s, const struct step_plan *plan)
{
	int r = 0;

	if (plan->until == BETON_STAGE_READ)
		return 0;
	for (uint32_t i = 0; !r && i < s->batch.num_outputs; i++) {
		const struct pipeline_output *o =
			pipeline_output_at(s->pipeline, i);

		if (o->is_list)
			r = o->is_padded ? pad_list(s, i, o)
					 : join_list(s, i, o);
	}
	return r;
}

/* Whether the output is an unchanged column of the batch file. */
static bool is_column(const struct step *s, uint32_t i,
		      const struct pipeline_output *o)
{
	const struct beton_batch_field *f =
		&s->view.fields[step_field_of(s, i, o)];

	if (s->is_sent)
		return o->device < 0 && !pipeline_has_finish(s->pipeline, i);
	return o->plain && o->device < 0 && f->column == BETON_COLUMN_FIXED &&
	       f->stride == o->row_size && f->ndim == o->ndim &&
	       !memcmp(f->shape, o->shape, o->ndim * sizeof(o->shape[0]));
}

/* Whether to copy the columns that are outputs, because the batch file is large
   in comparison, or because it is in shared memory. */
static bool must_copy(const struct step *s)
{
	uint64_t size = 0;

	for (uint32_t i = 0; i < s->batch.num_outputs; i++) {
		const struct pipeline_output *o =
			pipeline_output_at(s->pipeline, i);

		if (!o->ragged && !o->is_list && is_column(s, i, o))
			size += s->view.fields[step_field_of(s, i, o)].stride *
				(uint64_t)s->batch.num_samples;
	}
	return s->input.shared || size <= s->view.size / COPIED_PART;
}

/* Whether the user may have this column where it is. A column that is a small
   part of the batch file is worth a copy, so that the rest can be released. */
static bool may_share_column(struct step *s, const struct step_plan *plan,
			     uint64_t size)
{
	if (s->input.shared && !s->keeps_input && plan->keeper &&
	    size >= s->view.size / KEEP_PART)
		s->keeps_input = feed_keep(plan->keeper, &s->input);
	return !s->copies || s->keeps_input;
}

static int prepare_fixed(struct step *s, const struct step_plan *plan,
			 uint32_t i, const struct pipeline_output *o)
{
	struct step_output *out = &s->outputs[i];
	int r;

	if (!mul_ok(s->batch.num_samples, o->row_size, &s->tensors[i].size) ||
	    s->tensors[i].size >= INT64_MAX)
		return -ENOMEM;
	out->shape[0] = s->batch.num_samples;
	memcpy(out->shape + 1, o->shape, o->ndim * sizeof(o->shape[0]));
	s->tensors[i].offsets = NULL;
	s->tensors[i].ndim = o->ndim + 1;
	s->tensors[i].device_type = BETON_DEVICE_CPU;
	s->tensors[i].device_id = 0;
	out->rows = s->parcel ? device_batch_rows(s->parcel, i) : NULL;
	if (out->rows) {
		out->is_column = false;
		s->tensors[i].device_type = BETON_DEVICE_CUDA;
		s->tensors[i].device_id = o->device;
		s->tensors[i].data =
			(const void *)(uintptr_t)device_batch_address(s->parcel,
								      i);
		return 0;
	}
	out->is_column = is_column(s, i, o);
	if (out->is_column && may_share_column(s, plan, s->tensors[i].size)) {
		s->tensors[i].data =
			s->view.bytes +
			s->view.fields[step_field_of(s, i, o)].column_off;
		return 0;
	}
	r = buffer_reserve(&out->data, s->tensors[i].size + 1);
	out->rows = out->data.bytes;
	s->tensors[i].data = out->rows;
	return r;
}

static int prepare_outputs(struct step *s, const struct step_plan *plan)
{
	int r = s->parcel ? device_batch_begin(s->parcel, s->pipeline,
					       s->batch.num_samples)
			  : 0;

	for (uint32_t i = 0; i < s->batch.num_outputs && !r; i++) {
		const struct pipeline_output *o =
			pipeline_output_at(s->pipeline, i);

		s->tensors[i].name = o->name;
		s->tensors[i].dtype = o->dtype;
		s->tensors[i].shape = s->outputs[i].shape;
		if (o->is_list)
			r = prepare_list(s, i, o);
		else
			r = o->ragged ? prepare_ragged(s, i, o)
				      : prepare_fixed(s, plan, i, o);
	}
	return r;
}

/* Allocates memory for the results of the first round, which the second round
   reads. */
static int prepare_rounds(struct step *s, enum beton_stage until)
{
	uint64_t rows = s->batch.num_samples;
	int r = 0;

	/* The maker has run both rounds. */
	if (s->is_sent)
		return 0;
	for (uint32_t i = 0; i < s->batch.num_outputs && !r; i++) {
		uint64_t size = pipeline_output_at(s->pipeline, i)->part_size;

		if (!size)
			continue;
		s->has_rounds = until != BETON_STAGE_DECODE;
		r = mul_ok(rows, size, &size)
			    ? buffer_reserve(&s->outputs[i].parts, size)
			    : -ENOMEM;
	}
	if (r || !s->has_rounds)
		return r;
	r = buffer_reserve(&s->unmade, rows * s->batch.num_outputs);
	if (!r)
		memset(s->unmade.bytes, 0, rows * s->batch.num_outputs);
	return r;
}

static int prepare_ids(struct step *s)
{
	uint64_t size = s->batch.num_samples * sizeof(*s->view.ids);
	int r;

	s->batch.ids = s->view.ids;
	if (!s->copies)
		return 0;
	r = buffer_reserve(&s->ids, size);
	if (r)
		return r;
	memcpy(s->ids.bytes, s->view.ids, size);
	s->batch.ids = (const uint64_t *)s->ids.bytes;
	return 0;
}

/* Reserves memory for the errors that a maker sends. */
static int prepare_errors(struct step *s)
{
	uint64_t size;
	int r = mul_ok(s->batch.num_samples,
		       s->batch.num_outputs * sizeof(int32_t), &size)
			? buffer_reserve(&s->errors, size)
			: -ENOMEM;

	if (!r && size)
		memset(s->errors.bytes, 0, size);
	return r;
}

/* Whether the values that a maker sent for an output of no fixed size are rows of
   the pipeline's. Subtracts their bytes from *left. */
static bool has_sent_values(const struct step *s, uint32_t i,
			    const struct pipeline_output *o, uint64_t *left)
{
	for (uint32_t row = 0; row < s->view.header->num_samples; row++) {
		uint64_t size = ragged_size(s, i, row);

		if (size > *left || (o->is_list && size % o->item_size) ||
		    (o->is_padded && size > STEP_SENT_MAX))
			return false;
		*left -= size;
	}
	return true;
}

/* Whether the rows of a maker have the sizes of the pipeline's. Values that share
   bytes could need more memory than the file has. */
static bool has_sent_sizes(const struct step *s)
{
	uint64_t left = s->view.size;

	for (uint32_t i = 0; i < s->batch.num_outputs; i++) {
		const struct beton_batch_field *f = &s->view.fields[i];
		const struct pipeline_output *o =
			pipeline_output_at(s->pipeline, i);

		if (pipeline_output_varies(o)
			    ? f->column != BETON_COLUMN_VARIABLE ||
				      !has_sent_values(s, i, o, &left)
			    : f->column != BETON_COLUMN_FIXED ||
				      f->stride != o->sent_size)
			return false;
	}
	return true;
}

int step_prepare(struct step *s, const struct step_plan *plan, uint64_t number,
		 bool padding)
{
	const struct beton_batch_header *h = s->view.header;
	int r = buffer_reserve(&s->valid, h->num_samples);

	if (r)
		return r;
	memset(s->valid.bytes, !padding, h->num_samples);
	s->pipeline =
		phases_at(plan->whole && !s->is_sent && s->side == OFFLOAD_CPU
				  ? plan->whole
				  : plan->phases,
			  h->epoch);
	if (s->is_sent && !has_sent_sizes(s))
		return -EPROTO;
	s->batch.epoch = h->epoch;
	s->batch.number = number;
	s->batch.num_samples = h->num_samples;
	s->batch.valid = s->valid.bytes;
	atomic_store(&s->unread, h->num_samples);
	atomic_store(&s->failed, 0);
	s->failed_row = UINT32_MAX;
	s->read_error = 0;
	s->lost = 0;
	s->message[0] = '\0';
	s->has_rounds = s->is_second = s->keeps_input = false;
	s->copies = plan->until == BETON_STAGE_READ ? s->input.shared != NULL
						    : must_copy(s);
	r = prepare_ids(s);
	if (!r && plan->keeps_errors)
		r = prepare_errors(s);
	if (r || plan->until == BETON_STAGE_READ)
		return r;
	r = prepare_outputs(s, plan);
	return r ? r : prepare_rounds(s, plan->until);
}

static bool output_has_memory(const struct step *s, uint32_t i)
{
	const struct pipeline_output *o = pipeline_output_at(s->pipeline, i);
	const struct step_output *out = &s->outputs[i];

	return !o->ragged && !o->is_list && out->rows &&
	       out->rows == out->data.bytes;
}

bool step_has_memory(const struct step *s)
{
	bool has = false;

	for (uint32_t i = 0; i < s->batch.num_outputs; i++)
		has |= output_has_memory(s, i);
	return has;
}

/* Exchanges buffers, if the other one is large enough. It is not, if its batches
   were smaller: then frees it. */
static void swap_buffers(struct buffer *a, struct buffer *b, uint64_t size)
{
	struct buffer old = *a;

	if (b->capacity < size) {
		buffer_fini(b);
		return;
	}
	*a = *b;
	*b = old;
}

void step_swap_memory(struct step *s, struct step *with)
{
	for (uint32_t i = 0; i < s->batch.num_outputs; i++) {
		struct step_output *a = &s->outputs[i], *b = &with->outputs[i];
		uint64_t part = pipeline_output_at(s->pipeline, i)->part_size;

		if (!output_has_memory(s, i))
			continue;
		swap_buffers(&a->data, &b->data, s->tensors[i].size + 1);
		swap_buffers(&a->parts, &b->parts, s->batch.num_samples * part);
		a->rows = a->data.bytes;
		s->tensors[i].data = a->rows;
	}
}

void step_move_body(struct step *to, struct step *from, uint32_t rows)
{
	for (uint32_t i = 0; i < to->batch.num_outputs; i++) {
		const struct pipeline_output *o =
			pipeline_output_at(to->pipeline, i);
		struct step_output *a = &to->outputs[i], *b = &from->outputs[i];

		if (!output_has_memory(to, i))
			continue;
		buffer_move_end(&a->data, &b->data, rows * o->made_size);
		if (to->has_rounds)
			buffer_move_end(&a->parts, &b->parts,
					rows * o->part_size);
	}
}

int step_errno(const struct step *s)
{
	return s->read_error == ESTALE ? -ESTALE : -EIO;
}

bool step_next_round(struct step *s)
{
	if (!s->has_rounds || s->is_second)
		return false;
	s->is_second = true;
	return true;
}

bool step_rows_done(struct step *s, uint32_t rows)
{
	if (s->has_rounds && !s->is_second)
		return false;
	return atomic_fetch_sub(&s->unread, rows) == rows;
}

int step_start(struct step *s)
{
	return s->parcel ? device_batch_start(s->parcel) : 0;
}

/* Use four independent sums, so that the CPU can add in parallel. */
uint64_t step_sum(const struct step *s)
{
	const uint64_t *words = (const uint64_t *)s->view.bytes;
	uint64_t n = s->view.size / 8, sums[4] = { 0 };

	for (uint64_t i = 0; i + 4 <= n; i += 4) {
		for (unsigned k = 0; k < 4; k++)
			sums[k] += words[i + k];
	}
	for (uint64_t i = n & ~(uint64_t)3; i < n; i++)
		sums[0] += words[i];
	for (uint64_t i = 8 * n; i < s->view.size; i++)
		sums[0] += s->view.bytes[i];
	return sums[0] + sums[1] + sums[2] + sums[3];
}
