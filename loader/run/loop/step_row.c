/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/loop/step_row.h"

#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/stream_copy.h"

static int run_ragged(struct step *s, uint32_t i, uint32_t row,
		      const struct batch_view_value *v)
{
	const int64_t *offsets = s->tensors[i].offsets;

	memcpy(s->outputs[i].data.bytes + offsets[row], v->bytes, v->size);
	return 0;
}

/* Whether an output leaves the CPU's caches before it is read. */
static bool is_streamed(const struct step *s, uint32_t i)
{
	return s->tensors[i].size >= STREAM_COPY_MIN;
}

static int run_column(struct step *s, uint32_t i,
		      const struct pipeline_output *o, uint32_t row,
		      const struct batch_view_value *v)
{
	uint8_t *to = s->outputs[i].rows + row * o->row_size;

	if (!s->outputs[i].rows)
		return 0;
	if (is_streamed(s, i))
		stream_copy(to, v->bytes, o->row_size);
	else
		memcpy(to, v->bytes, o->row_size);
	return 0;
}

/* Computes random numbers from the batch file, not from step->batch.number,
   because padding repeats a batch of the same epoch bit by bit. */
static struct pipeline_row row_key(const struct step *s, uint32_t row)
{
	const struct beton_batch_header *h = s->view.header;

	return (struct pipeline_row){
		.seed = h->seed,
		.epoch = s->batch.epoch,
		.id = s->batch.ids[row],
		.occurrence = h->repeats ? h->batch * h->batch_size + row : 0,
	};
}

static struct pipeline_value value_of(const struct batch_view_value *v)
{
	return (struct pipeline_value){
		.bytes = v->bytes,
		.size = v->size,
		.mode = v->mode,
		.width = v->width,
		.height = v->height,
	};
}

/* A sample's value, and the values of the outputs that it follows. */
struct values {
	struct pipeline_value of[3];
};

/* An unreadable value is empty. */
static void find_values(const struct step *s, const struct pipeline_output *o,
			uint32_t row, const struct batch_view_value *v,
			struct values *out)
{
	out->of[0] = value_of(v);
	for (size_t i = 0; i < 2 && o->of[i] != VALUE_NO_FIELD; i++) {
		struct batch_view_value of =
			batch_view_at(&s->view, o->of[i], row);

		if (of.error)
			of = (struct batch_view_value){ .bytes = v->bytes };
		out->of[i + 1] = value_of(&of);
		out->of[i].of = &out->of[i + 1];
	}
}

static int run_list(struct step *s, const struct step_plan *plan,
		    struct pipeline_worker *worker, uint32_t i, uint32_t row,
		    const struct batch_view_value *v, struct stage_cost *cost)
{
	const struct pipeline_output *o = pipeline_output_at(s->pipeline, i);
	const struct list_rows *lists = &s->outputs[i].lists;
	const struct pipeline_row key = row_key(s, row);
	uint64_t *count = list_rows_count(lists, row);
	struct values values;
	int r;

	find_values(s, o, row, v, &values);
	r = pipeline_run_list(s->pipeline, worker, i, values.of, &key,
			      plan->until, list_rows_place(lists, row), count);
	cost->made_bytes += *count * o->item_size;
	return r;
}

static int run_fixed(struct step *s, const struct step_plan *plan,
		     struct pipeline_worker *worker, uint32_t i, uint32_t row,
		     const struct batch_view_value *v, struct stage_cost *cost)
{
	const struct pipeline_output *o = pipeline_output_at(s->pipeline, i);
	struct pipeline_row key = row_key(s, row);
	uint64_t before = cost->decode_ns;
	uint8_t *to = o->part_size
			      ? s->outputs[i].parts.bytes + row * o->part_size
			      : s->outputs[i].rows + row * o->made_size;
	struct values values;
	int r;

	key.is_streamed = !o->part_size && is_streamed(s, i);
	find_values(s, o, row, v, &values);
	r = pipeline_run(s->pipeline, worker, i, values.of, &key, plan->until,
			 to, &cost->decode_ns);
	cost->made_bytes += o->part_size ? 0 : o->made_size;
	if (cost->decode_ns != before)
		cost->decoded_bytes += v->size;
	return r;
}

static void copy_list(const struct list_rows *lists, uint64_t item_size,
		      uint32_t row, const struct batch_view_value *v)
{
	*list_rows_count(lists, row) = v->size / item_size;
	memcpy(list_rows_place(lists, row), v->bytes, v->size);
}

/* Makes an output of the row that a maker sent. */
static int run_sent(struct step *s, struct pipeline_worker *worker, uint32_t i,
		    uint32_t row, const struct batch_view_value *v,
		    struct stage_cost *cost)
{
	const struct pipeline_output *o = pipeline_output_at(s->pipeline, i);
	const struct pipeline_row key = row_key(s, row);

	if (o->is_list) {
		copy_list(&s->outputs[i].lists, o->item_size, row, v);
		return 0;
	}
	cost->made_bytes += o->made_size;
	return pipeline_finish(s->pipeline, worker, i, v->bytes, &key,
			       s->outputs[i].rows + row * o->made_size);
}

/* Describes a failure of an output. A maker has logged its own failures in more
   detail. */
static void describe(const struct step *s, const struct pipeline_output *o,
		     uint32_t row, const char *reason,
		     struct step_failure *failure)
{
	typedef unsigned long long ull;
	uint32_t field = o->field;
	struct batch_view_value v;

	if (s->is_sent) {
		snprintf(
			failure->why, sizeof(failure->why),
			"sample %llu output %s of a maker: %s (epoch %llu batch %llu)",
			(ull)s->batch.ids[row], o->name, reason,
			(ull)s->batch.epoch, (ull)s->view.header->batch);
		return;
	}
	v = batch_view_at(&s->view, field, row);
	snprintf(
		failure->why, sizeof(failure->why),
		"sample %llu field %s: %s (%llu bytes at %llu of epoch %llu batch %llu)",
		(ull)s->batch.ids[row], s->view.fields[field].stem, reason,
		(ull)v.size,
		(ull)(v.bytes ? (uint64_t)(v.bytes - s->view.bytes) : 0),
		(ull)s->batch.epoch, (ull)s->view.header->batch);
}

static const char *reason_of(int error)
{
	switch (error) {
	case BETON_ECORRUPT:
		return "its metadata or its bytes are damaged";
	case ESTALE:
		return "the dataset was replaced after it was opened: open or mount it again";
	default:
		return strerror(error);
	}
}

/* Makes one output of one row. On failure, *failure receives the reason. */
static int run_output(struct step *s, const struct step_plan *plan,
		      struct pipeline_worker *worker, uint32_t i, uint32_t row,
		      struct step_failure *failure, struct stage_cost *cost)
{
	const struct pipeline_output *o = pipeline_output_at(s->pipeline, i);
	uint32_t field = step_field_of(s, i, o);
	struct batch_view_value v = batch_view_at(&s->view, field, row);
	int r;

	if (v.error) {
		describe(s, o, row, reason_of(v.error), failure);
		failure->error = v.error;
		return -v.error;
	}
	if (s->outputs[i].is_column)
		return run_column(s, i, o, row, &v);
	if (o->ragged && !o->is_list)
		return run_ragged(s, i, row, &v);
	if (s->is_sent)
		r = run_sent(s, worker, i, row, &v, cost);
	else
		r = (o->is_list ? run_list : run_fixed)(s, plan, worker, i, row,
							&v, cost);
	if (r)
		describe(s, o, row, pipeline_worker_message(worker), failure);
	return r;
}

static uint8_t *unmade_at(const struct step *s, uint32_t row, uint32_t i)
{
	return s->unmade.bytes + row * (size_t)s->batch.num_outputs + i;
}

/* Whether all outputs of a row succeeded in the first round. */
static bool is_whole(const struct step *s, uint32_t row)
{
	return !memchr(unmade_at(s, row, 0), 1, s->batch.num_outputs);
}

/* Runs the second round of an output: mixes a row with the previous one. If any
   output of a row failed, no other row uses it, so that images and labels stay
   together. */
static int run_pair(struct step *s, struct pipeline_worker *worker, uint32_t i,
		    uint32_t row, struct step_failure *failure,
		    struct stage_cost *cost)
{
	const struct pipeline_output *o = pipeline_output_at(s->pipeline, i);
	uint32_t rows = s->batch.num_samples, other = (row ? row : rows) - 1;
	const uint8_t *parts = s->outputs[i].parts.bytes;
	const struct pipeline_row key = row_key(s, row);
	const struct pipeline_row last = row_key(s, rows - 1);
	const struct pipeline_pair pair = {
		.own = parts + row * o->part_size,
		.other = parts +
			 (is_whole(s, other) ? other : row) * o->part_size,
		.row = &key,
		.last = &last,
	};
	int r = pipeline_pair(s->pipeline, worker, i, &pair,
			      s->outputs[i].rows + row * o->made_size);

	cost->made_bytes += o->made_size;
	if (r)
		describe(s, o, row, pipeline_worker_message(worker), failure);
	return r;
}

static void clear_row(struct step *s, uint32_t i, uint32_t row)
{
	const struct pipeline_output *o = pipeline_output_at(s->pipeline, i);

	/* A column of the batch file already contains zeros, and a new list has
	   no rows. */
	if (!o->ragged && !o->is_list && s->outputs[i].rows)
		memset(s->outputs[i].rows + row * o->made_size, 0,
		       o->made_size);
}

/* Returns the error of a failed output as a maker sends it: that of reading the
   value, or that of a damaged value. A trainer treats them differently. */
static int sent_error(const struct step *s, uint32_t i, uint32_t row)
{
	const struct pipeline_output *o = pipeline_output_at(s->pipeline, i);
	struct batch_view_value v = batch_view_at(&s->view, o->field, row);

	return v.error ? v.error : BETON_ECORRUPT;
}

/* Clears a failed output, and marks failures of the first round for other rows
   in the second round. */
static void give_up(struct step *s, uint32_t i, uint32_t row)
{
	int32_t *errors = (int32_t *)s->errors.bytes;

	clear_row(s, i, row);
	if (errors)
		errors[i * (uint64_t)s->batch.num_samples + row] =
			sent_error(s, i, row);
	if (s->has_rounds && !s->is_second)
		*unmade_at(s, row, i) = 1;
}

bool step_run_row(struct step *s, const struct step_plan *plan,
		  struct pipeline_worker *worker, uint32_t row,
		  struct step_failure *failure, struct stage_cost *cost)
{
	const struct pipeline_row key = row_key(s, row);
	uint64_t before = cost->decode_ns;
	bool failed = false;

	failure->error = 0;
	for (uint32_t i = 0; i < s->batch.num_outputs; i++) {
		bool is_pair = s->has_rounds &&
			       pipeline_output_at(s->pipeline, i)->part_size;
		bool made = !s->is_second || !*unmade_at(s, row, i);

		if (s->is_second && !is_pair)
			continue;
		if (made) {
			made = s->is_second ? !run_pair(s, worker, i, row,
							failure, cost)
					    : !run_output(s, plan, worker, i,
							  row, failure, cost);
			failed = failed || !made;
			if (!made)
				give_up(s, i, row);
		}
		if (s->parcel && is_pair == s->is_second)
			device_batch_row(s->parcel, i, row, &key, made);
	}
	cost->decoded += cost->decode_ns != before;
	if (failed) {
		failure->row = row;
		atomic_fetch_add(&s->failed, 1);
		if (plan->on_error == BETON_ON_ERROR_SKIP)
			s->valid.bytes[row] = 0;
	}
	return failed;
}
