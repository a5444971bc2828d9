/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/link/sent_batch.h"

#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/crc32c.h"
#include "fs/data/engine/batch_place.h"

static const uint8_t zeros[BETON_BATCH_ALIGN];

void sent_batch_fini(struct sent_batch *b)
{
	buffer_fini(&b->head);
	scratch_fini(&b->parts);
}

/* --- the values of a step --- */

struct sent_value {
	const uint8_t *bytes;
	uint64_t size;
};

/* Returns the rows of a sample, without the padding of its batch. */
static struct sent_value value_at(const struct step *s, uint32_t i,
				  uint32_t row)
{
	const struct pipeline_output *o = pipeline_output_at(s->pipeline, i);
	const struct beton_tensor *t = &s->tensors[i];
	uint64_t item = o->is_list ? o->item_size : 1;
	const struct list_rows *lists = &s->outputs[i].lists;

	if (!t->offsets)
		return (struct sent_value){ list_rows_place(lists, row),
					    *list_rows_count(lists, row) *
						    item };
	return (struct sent_value){
		(const uint8_t *)t->data + (uint64_t)t->offsets[row] * item,
		(uint64_t)(t->offsets[row + 1] - t->offsets[row]) * item,
	};
}

/* --- the layout --- */

struct layout {
	struct sent_batch *b;
	const struct step *step;
	struct beton_batch_header header;
	uint64_t head_size; /* up to the columns of the step */
	uint64_t at;	    /* end of the file so far */
};

static struct beton_batch_field *field_at(const struct layout *l, uint32_t i)
{
	return (struct beton_batch_field *)(l->b->head.bytes +
					    l->header.fields_off) +
	       i;
}

static uint64_t place(struct layout *l, uint64_t size)
{
	uint64_t at = align_up(l->at, BETON_BATCH_ALIGN);

	l->at = at + size;
	return at;
}

/* Places all parts that are no columns of the step. The first of two calls only
   computes their size. */
static void place_head(struct layout *l, bool write)
{
	uint64_t n = l->header.num_samples, errors, values = 0;

	l->at = l->header.spec_off + l->header.spec_size;
	l->header.ids_off = place(l, 8 * n);
	for (uint32_t i = 0; i < l->header.num_fields; i++) {
		const struct pipeline_output *o =
			pipeline_output_at(l->step->pipeline, i);

		errors = place(l, sizeof(int32_t) * n);
		if (pipeline_output_varies(o))
			values = place(l, sizeof(struct beton_batch_value) * n);
		if (!write)
			continue;
		*field_at(l, i) = (struct beton_batch_field){
			.dtype = "|u1",
			.type = pipeline_output_varies(o) ? BETON_TYPE_BYTES
							  : BETON_TYPE_NDARRAY,
			.column = pipeline_output_varies(o)
					  ? BETON_COLUMN_VARIABLE
					  : BETON_COLUMN_FIXED,
			.ndim = !pipeline_output_varies(o),
			.shape = { o->row_size },
			.stride = pipeline_output_varies(o) ? 0 : o->row_size,
			.error_off = errors,
			.column_off = values,
		};
		snprintf(field_at(l, i)->stem, BETON_STEM_SIZE, "output%u", i);
		memcpy(l->b->head.bytes + errors,
		       (const int32_t *)l->step->errors.bytes + i * n,
		       sizeof(int32_t) * n);
	}
	l->head_size = align_up(l->at, BETON_BATCH_ALIGN);
	l->at = l->head_size;
}

static void add_part(struct layout *l, const void *bytes, uint64_t size)
{
	struct iovec *parts = l->b->parts.p;

	if (size)
		parts[l->b->num_parts++] =
			(struct iovec){ (void *)bytes, size };
}

static void add_values(struct layout *l, uint32_t i)
{
	struct beton_batch_value *values =
		(void *)(l->b->head.bytes + field_at(l, i)->column_off);

	for (uint32_t row = 0; row < l->header.num_samples; row++) {
		struct sent_value v = value_at(l->step, i, row);

		values[row] = (struct beton_batch_value){ .offset = l->at,
							  .size = v.size };
		add_part(l, v.bytes, v.size);
		l->at += v.size;
	}
}

static void add_column(struct layout *l, uint32_t i)
{
	const struct beton_tensor *t = &l->step->tensors[i];
	uint64_t end = l->at;

	field_at(l, i)->column_off = place(l, t->size);
	field_at(l, i)->column_size = t->size;
	add_part(l, zeros, l->at - t->size - end);
	add_part(l, t->data, t->size);
}

static void add_columns(struct layout *l)
{
	add_part(l, l->b->head.bytes, l->head_size);
	for (uint32_t i = 0; i < l->header.num_fields; i++) {
		const struct pipeline_output *o =
			pipeline_output_at(l->step->pipeline, i);

		if (pipeline_output_varies(o))
			add_values(l, i);
		else
			add_column(l, i);
	}
}

/* Bounds the parts: the head, two for each output, and one for each value. */
static int reserve_parts(struct layout *l)
{
	uint64_t count = 1;

	for (uint32_t i = 0; i < l->header.num_fields; i++)
		count += pipeline_output_varies(
				 pipeline_output_at(l->step->pipeline, i))
				 ? l->header.num_samples
				 : 2;
	return scratch_grow(&l->b->parts, count, sizeof(struct iovec));
}

static void init_header(struct layout *l, const struct feed *feed)
{
	struct beton_batch_header *h = &l->header;
	const struct beton_batch *batch = &l->step->batch;

	batch_header_init(h, &feed->spec, batch->epoch, batch->number);
	h->samples = feed->facts.samples;
	h->num_fields = batch->num_outputs;
	for (size_t i = 0; i < BETON_FINGERPRINT_SIZE; i++)
		sscanf(feed->fingerprint + 2 * i, "%2hhx", &h->fingerprint[i]);
	h->spec_off = h->fields_off +
		      h->num_fields * sizeof(struct beton_batch_field);
	h->spec_size = (uint32_t)strlen(feed->spec_text);
}

static void finish_head(struct layout *l, const struct feed *feed)
{
	struct beton_batch_header *h = &l->header;
	uint8_t *head = l->b->head.bytes;

	h->file_size = l->b->size = l->at;
	memcpy(head, h, sizeof(*h));
	memcpy(head + h->spec_off, feed->spec_text, h->spec_size);
	memcpy(head + h->ids_off, l->step->batch.ids,
	       8 * (uint64_t)h->num_samples);
	h->crc = crc32c(0, head, h->spec_off + h->spec_size);
	memcpy(head, h, sizeof(*h));
}

int sent_batch_build(struct sent_batch *b, const struct step *step,
		     const struct feed *feed)
{
	struct layout l = { .b = b, .step = step };
	int r;

	b->num_parts = 0;
	init_header(&l, feed);
	place_head(&l, false);
	r = buffer_reserve(&b->head, l.head_size);
	if (!r)
		r = reserve_parts(&l);
	if (r)
		return r;
	memset(b->head.bytes, 0, l.head_size);
	place_head(&l, true);
	add_columns(&l);
	finish_head(&l, feed);
	return 0;
}
