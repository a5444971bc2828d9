/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/batch_place.h"

#include <stdlib.h>

#include "fs/base/order/spec_text.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/crc32c.h"

static uint64_t aligned(uint64_t v)
{
	return align_up(v, BETON_BATCH_ALIGN);
}

static bool all_raw_alike(const struct batch *b, const struct batch_column *c,
			  const struct beton_batch_value **pattern)
{
	const struct beton_batch_value *v, *p = NULL;

	for (uint32_t i = 0; i < b->samples; i++) {
		v = &c->values[i];
		if (c->errors[i])
			continue;
		if (v->mode != BETON_MODE_RAW ||
		    (p && (v->width != p->width || v->height != p->height)))
			return false;
		p = v;
	}
	*pattern = p;
	return p != NULL;
}

static void place_fixed(struct batch *b, struct batch_column *c, uint64_t *at)
{
	c->desc.column = BETON_COLUMN_FIXED;
	c->desc.column_off = aligned(*at);
	c->desc.column_size = b->samples * c->desc.stride;
	*at = c->desc.column_off + c->desc.column_size;
}

static void place_variable(struct batch *b, struct batch_column *c,
			   uint64_t *at)
{
	struct beton_batch_value *v = c->values;

	c->desc.column = BETON_COLUMN_VARIABLE;
	c->desc.column_off = aligned(*at);
	*at = c->desc.column_off + (uint64_t)b->samples * sizeof(*v);
	for (uint32_t i = 0; i < b->samples; i++) {
		*at = aligned(*at);
		v[i].offset = *at;
		*at += v[i].size;
	}
	c->desc.column_size = *at - c->desc.column_off;
}

static void place_images(struct batch *b, struct batch_column *c, uint64_t *at)
{
	const struct beton_batch_value *p;

	if (!all_raw_alike(b, c, &p)) {
		place_variable(b, c, at);
		return;
	}
	c->desc.mode = BETON_MODE_RAW;
	c->desc.ndim = 3;
	c->desc.shape[0] = p->height;
	c->desc.shape[1] = p->width;
	c->desc.shape[2] = 3;
	c->desc.stride = p->size;
	place_fixed(b, c, at);
}

static void place_column(struct batch *b, struct batch_column *c, uint64_t *at)
{
	const struct field *f = &b->vfile.ds->format.fields[c - b->columns];

	c->desc.error_off = aligned(*at);
	*at = c->desc.error_off + 4 * (uint64_t)b->samples;
	if (f->unusable) {
		c->desc.column = BETON_COLUMN_NONE;
		c->desc.column_off = *at;
		return;
	}
	switch (f->type->column) {
	case COLUMN_IMAGE:
		place_images(b, c, at);
		break;
	case COLUMN_RAGGED:
		place_variable(b, c, at);
		break;
	case COLUMN_SCALAR:
	case COLUMN_ARRAY:
	case COLUMN_RECORD:
		place_fixed(b, c, at);
		break;
	}
}

void batch_header_init(struct beton_batch_header *h, const struct spec *spec,
		       uint64_t epoch, uint64_t number)
{
	*h = (struct beton_batch_header){
		.version = BETON_BATCH_VERSION,
		.header_size = sizeof(*h),
		.epoch = epoch,
		.batch = number,
		.batches = spec_batches(spec),
		.seed = spec->seed,
		.batch_size = spec->batch,
		.block = spec->block,
		.window = spec->window,
		.subset_first = spec->first,
		.subset_end = spec->end,
		.subset_hash = spec->subset ? spec->subset->hash : 0,
		.repeats = spec_repeats(spec),
		.order = spec->order,
		.drop_last = (uint32_t)spec->drop_last,
		.num_samples = spec_batch_samples(spec, number),
		.fields_off = sizeof(*h),
	};
	memcpy(h->magic, BETON_BATCH_MAGIC, sizeof(h->magic));
}

int batch_place(struct batch *b, const struct batch_key *key)
{
	struct beton_batch_header h;
	char text[SPEC_TEXT_MAX];
	uint64_t at;

	spec_canonical(key->spec, text);
	batch_header_init(&h, key->spec, key->epoch, key->number);
	h.samples = key->ds->format.samples;
	h.num_fields = b->num_columns;
	memcpy(h.fingerprint, key->ds->fingerprint, sizeof(h.fingerprint));
	h.spec_off =
		h.fields_off + h.num_fields * sizeof(struct beton_batch_field);
	h.spec_size = (uint32_t)strlen(text);
	b->head_size = h.spec_off + h.spec_size;
	h.ids_off = b->ids_off = aligned(b->head_size);
	at = h.ids_off + 8 * (uint64_t)b->samples;
	for (uint32_t i = 0; i < b->num_columns; i++)
		place_column(b, &b->columns[i], &at);
	h.file_size = b->vfile.size = at;
	b->head = malloc(b->head_size);
	if (!b->head)
		return -ENOMEM;
	memcpy(b->head, &h, sizeof(h));
	for (uint32_t i = 0; i < b->num_columns; i++)
		memcpy(b->head + h.fields_off +
			       i * sizeof(struct beton_batch_field),
		       &b->columns[i].desc, sizeof(struct beton_batch_field));
	memcpy(b->head + h.spec_off, text, h.spec_size);
	h.crc = crc32c(0, b->head, b->head_size);
	memcpy(b->head, &h, sizeof(h));
	return 0;
}
