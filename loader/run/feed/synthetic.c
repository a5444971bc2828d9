/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic datasets: batch files with the fields that a text names. Values
 * look random. They are copied out of one short block of numbers per field,
 * from a place that depends on the sample's id, so they cost one copy.
 * A sample has the same values in every epoch.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/order/order.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/crc32c.h"
#include "fs/base/util/name.h"
#include "fs/base/util/rng.h"
#include "fs/data/dataset/field.h"
#include "fs/data/engine/batch_place.h"
#include "loader/run/feed/feed.h"
#include "loader/run/feed/synthetic_text.h"

/* Elements of a block. Blocks of any type fit into a CPU's L2 cache. */
enum { BLOCK = 1 << 14 };

/* JSON of two or more bytes is this text and spaces. */
static const char JSON[] = "{}";

struct synthetic_feed {
	struct feed base;
	const struct synthetic *synthetic;
	uint8_t **blocks;
};

/* --- values --- */

static uint64_t row_size(const struct synthetic_field *f)
{
	return f->count * dtype_size(f->dtype);
}

static void fill_element(const struct synthetic_field *f, struct rng *rng,
			 uint8_t *out)
{
	uint64_t whole;
	double part;

	if (f->limit) {
		whole = rng_next(rng) % f->limit;
		dtype_convert(DTYPE_U8, &whole, f->dtype, out, 1);
	} else {
		part = rng_uniform(rng);
		dtype_convert(DTYPE_F8, &part, f->dtype, out, 1);
	}
}

static uint8_t *make_block(const struct synthetic_field *f)
{
	struct rng rng = { .key = rng_key_of_text(f->name) };
	size_t item = dtype_size(f->dtype);
	uint8_t *block = malloc(BLOCK * item);

	for (size_t i = 0; block && i < BLOCK; i++)
		fill_element(f, &rng, block + i * item);
	return block;
}

static void fill_json(uint8_t *to, uint64_t size)
{
	memset(to, ' ', size);
	if (size < strlen(JSON))
		memset(to, '0', size);
	else
		memcpy(to, JSON, strlen(JSON));
}

static void fill_row(const struct synthetic_feed *feed, uint32_t field,
		     uint64_t id, uint8_t *to)
{
	const struct synthetic_field *f = &feed->synthetic->fields[field];
	uint64_t item = dtype_size(f->dtype), left = row_size(f), n;
	uint64_t from = rng_mix(id) % BLOCK * item;

	if (f->type == BETON_TYPE_JSON) {
		fill_json(to, left);
		return;
	}
	for (; left; left -= n, to += n, from = 0) {
		n = min_u64(left, BLOCK * item - from);
		memcpy(to, feed->blocks[field] + from, n);
	}
}

/* --- a batch file --- */

/* A batch file that is written, or only measured. */
struct synthetic_place {
	uint8_t *bytes; /* NULL: only measure */
	uint64_t at;
};

/* Reserves `size` bytes at the end, aligned, and returns their offset. Gaps are
   zero. */
static uint64_t take(struct synthetic_place *p, uint64_t size)
{
	uint64_t from = align_up(p->at, BETON_BATCH_ALIGN);

	if (p->bytes)
		memset(p->bytes + p->at, 0, from - p->at);
	p->at = from + size;
	return from;
}

static bool is_variable(const struct synthetic_field *f)
{
	return field_column(f->type) == COLUMN_RAGGED;
}

static bool is_image(const struct synthetic_field *f)
{
	return field_column(f->type) == COLUMN_IMAGE;
}

/* Writes a table of values and their payloads. */
static void put_variable(const struct synthetic_feed *feed,
			 struct synthetic_place *p, uint32_t field,
			 uint32_t rows, const uint64_t *ids)
{
	uint64_t size = row_size(&feed->synthetic->fields[field]);
	uint64_t table = take(p, rows * sizeof(struct beton_batch_value));

	for (uint32_t row = 0; row < rows; row++) {
		struct beton_batch_value v = { .offset = take(p, size),
					       .size = size };

		if (!p->bytes)
			continue;
		fill_row(feed, field, ids[row], p->bytes + v.offset);
		memcpy(p->bytes + table + row * sizeof(v), &v, sizeof(v));
	}
}

static void put_fixed(const struct synthetic_feed *feed,
		      struct synthetic_place *p, uint32_t field, uint32_t rows,
		      const uint64_t *ids)
{
	uint64_t size = row_size(&feed->synthetic->fields[field]);
	uint64_t column = take(p, rows * size);

	for (uint32_t row = 0; p->bytes && row < rows; row++)
		fill_row(feed, field, ids[row], p->bytes + column + row * size);
}

static void put_column(const struct synthetic_feed *feed,
		       struct synthetic_place *p, uint32_t field, uint32_t rows,
		       const uint64_t *ids, struct beton_batch_field *out)
{
	const struct synthetic_field *f = &feed->synthetic->fields[field];
	uint64_t errors = take(p, 4 * (uint64_t)rows);

	*out = (struct beton_batch_field){
		.type = f->type,
		.column = is_variable(f) ? BETON_COLUMN_VARIABLE
					 : BETON_COLUMN_FIXED,
		.ndim = is_variable(f) ? 0 : f->ndim,
		.mode = is_image(f) ? BETON_MODE_RAW : 0,
		.stride = is_variable(f) ? 0 : row_size(f),
		.error_off = errors,
		.column_off = align_up(p->at, BETON_BATCH_ALIGN),
	};
	memcpy(out->name, f->name, sizeof(f->name));
	strcpy(out->stem, feed->base.names[field].stem);
	strcpy(out->dtype, dtype_name(f->dtype));
	memcpy(out->shape, f->shape, out->ndim * sizeof(f->shape[0]));
	if (p->bytes)
		memset(p->bytes + errors, 0, 4 * (uint64_t)rows);
	if (is_variable(f))
		put_variable(feed, p, field, rows, ids);
	else
		put_fixed(feed, p, field, rows, ids);
	out->column_size = p->at - out->column_off;
}

static void put_ids(const struct synthetic_feed *feed,
		    const struct beton_batch_header *h, uint64_t *ids)
{
	const struct spec *spec = &feed->base.spec;
	struct order order = order_init(spec, h->epoch);

	for (uint32_t row = 0; row < h->num_samples; row++)
		ids[row] = order_sample(&order, h->batch * spec->batch + row);
}

/* Writes header, fields and sampling spec. They precede all aligned parts. */
static void put_head(const struct synthetic_feed *feed,
		     struct synthetic_place *p, struct beton_batch_header *h)
{
	h->samples = feed->synthetic->samples;
	h->num_fields = feed->synthetic->num_fields;
	memcpy(h->fingerprint, feed->synthetic->fingerprint,
	       sizeof(h->fingerprint));
	h->spec_off = h->fields_off +
		      h->num_fields * sizeof(struct beton_batch_field);
	h->spec_size = (uint32_t)strlen(feed->base.spec_text);
	p->at = h->spec_off + h->spec_size;
	if (p->bytes)
		memcpy(p->bytes + h->spec_off, feed->base.spec_text,
		       h->spec_size);
}

static void seal(struct synthetic_place *p, struct beton_batch_header *h)
{
	h->file_size = p->at;
	memcpy(p->bytes, h, sizeof(*h));
	h->crc = crc32c(0, p->bytes, h->spec_off + h->spec_size);
	memcpy(p->bytes, h, sizeof(*h));
}

static void put_batch(const struct synthetic_feed *feed,
		      struct synthetic_place *p, struct beton_batch_header *h)
{
	struct beton_batch_field field;
	uint64_t *ids = NULL;

	put_head(feed, p, h);
	h->ids_off = take(p, h->num_samples * sizeof(*ids));
	if (p->bytes) {
		ids = (uint64_t *)(p->bytes + h->ids_off);
		put_ids(feed, h, ids);
	}
	for (uint32_t i = 0; i < h->num_fields; i++) {
		put_column(feed, p, i, h->num_samples, ids, &field);
		if (p->bytes)
			memcpy(p->bytes + h->fields_off + i * sizeof(field),
			       &field, sizeof(field));
	}
	if (p->bytes)
		seal(p, h);
}

static int fetch(struct feed *base, uint64_t epoch, uint64_t number,
		 struct feed_batch *into)
{
	struct synthetic_feed *feed = (struct synthetic_feed *)base;
	struct beton_batch_header h;
	struct synthetic_place p = { .bytes = NULL };
	int r;

	batch_header_init(&h, &base->spec, epoch, number);
	put_batch(feed, &p, &h);
	r = buffer_reserve(&into->own, p.at);
	if (r) {
		log_error(base->log, "%s: a batch of %llu bytes: %s",
			  base->path, (unsigned long long)p.at, strerror(-r));
		return r;
	}
	p.bytes = into->own.bytes;
	put_batch(feed, &p, &h);
	into->bytes = p.bytes;
	into->size = p.at;
	return 0;
}

/* --- opening and closing --- */

static void close_feed(struct feed *base)
{
	struct synthetic_feed *feed = (struct synthetic_feed *)base;

	for (uint32_t i = 0; feed->blocks && i < base->num_fields; i++)
		free(feed->blocks[i]);
	free(feed->blocks);
}

static void describe_field(struct feed *base, uint32_t i,
			   const struct synthetic_field *from)
{
	struct pipeline_field *to = &base->fields[i];

	strcpy(base->names[i].name, from->name);
	name_escape(from->name, base->names[i].stem);
	to->column = field_column(from->type);
	to->usable = true;
	strcpy(to->dtype, dtype_name(from->dtype));
	if (is_image(from)) {
		to->height = (uint32_t)from->shape[0];
		to->width = (uint32_t)from->shape[1];
	} else if (!is_variable(from)) {
		to->ndim = from->ndim;
		memcpy(to->shape, from->shape, sizeof(to->shape));
	}
}

static int describe(struct synthetic_feed *feed)
{
	struct feed *base = &feed->base;
	const struct synthetic *synthetic = feed->synthetic;
	uint64_t bytes = 0;
	int r = feed_make_fields(base, synthetic->num_fields);

	if (r)
		return r;
	feed->blocks = calloc(synthetic->num_fields, sizeof(*feed->blocks));
	if (!feed->blocks)
		return -ENOMEM;
	for (uint32_t i = 0; i < synthetic->num_fields; i++) {
		describe_field(base, i, &synthetic->fields[i]);
		feed->blocks[i] = make_block(&synthetic->fields[i]);
		if (!feed->blocks[i])
			return -ENOMEM;
		bytes += row_size(&synthetic->fields[i]);
	}
	base->facts.samples = synthetic->samples;
	/* Only the mean size of a sample is used. */
	if (!mul_ok(bytes, synthetic->samples, &base->facts.data_bytes))
		base->facts.data_bytes = UINT64_MAX;
	for (size_t i = 0; i < BETON_FINGERPRINT_SIZE; i++)
		sprintf(base->fingerprint + 2 * i, "%02x",
			synthetic->fingerprint[i]);
	return 0;
}

static int open_feed(const char *path, const struct feed_options *o,
		     struct feed **out)
{
	struct synthetic_feed *feed = calloc(1, sizeof(*feed));
	int r;

	(void)path;
	if (!feed)
		return -ENOMEM;
	feed->base.ops = &feed_synthetic;
	feed->base.log = o->log;
	feed->base.delivery = "in-process";
	feed->synthetic = o->synthetic;
	feed->base.path = strdup("the synthetic dataset");
	r = feed->base.path ? describe(feed) : -ENOMEM;
	if (r)
		feed_close(&feed->base);
	else
		*out = &feed->base;
	return r;
}

const struct feed_ops feed_synthetic = {
	.name = "synthetic",
	.open = open_feed,
	.fetch = fetch,
	.close = close_feed,
};
