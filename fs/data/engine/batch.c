/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/batch.h"

#include <pthread.h>
#include <stdlib.h>

#include "fs/base/memory/budget.h"
#include "fs/base/order/order.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/rng.h"
#include "fs/data/dataset/value.h"
#include "fs/data/engine/batch_place.h"
#include "fs/data/engine/team.h"

enum {
	/* Samples whose records are requested before they are read. */
	PREFETCHED = 1024,
	/* Bytes of metadata per read, at most. */
	RECORDS_CHUNK = 256 << 10,
	/* Samples times fields, which limits the memory of a layout to about
	   700 MB. */
	CELLS_MAX = 1 << 24,
	/* Milliseconds that a layout waits for memory. */
	WAIT_MS = 2000,
	/* Bytes that a team copies as one part: longer than waking a thread
	   takes, and short, so that its threads end at about the same time. */
	PART_BYTES = 4 << 20,
	PARTS_MAX = 256,
};

/* --- segments at an offset --- */

static void set_literal(struct segment *s, uint64_t start, const void *bytes,
			uint64_t size)
{
	*s = (struct segment){
		.kind = SEGMENT_LITERAL,
		.start = start,
		.size = size,
		.literal = bytes,
	};
}

static void set_zeros(struct segment *s, uint64_t start, uint64_t end)
{
	*s = (struct segment){
		.kind = SEGMENT_ZERO,
		.start = start,
		.size = end - start,
	};
}

/* The payload of one sample, or zeros if the sample has an error. */
static void set_payload(const struct batch *b, const struct batch_column *c,
			struct segment *s, uint32_t index, uint64_t start,
			uint64_t size)
{
	*s = (struct segment){
		.kind = c->errors[index] ? SEGMENT_ZERO : SEGMENT_RANGE,
		.start = start,
		.size = size,
		.off = c->sources[index],
		.index = index,
		.is_payload = field_has_payload(
			&b->vfile.ds->format.fields[c - b->columns]),
		.sample = b->ids[index],
	};
}

/* Returns the last index whose value starts at or before `off`, which is past
   the table. The value is never empty, because an empty value starts at the
   offset of the following one. */
static uint32_t index_at(const struct batch_column *c, uint32_t samples,
			 uint64_t off)
{
	uint32_t low = 0, high = samples - 1, mid;

	while (low < high) {
		mid = low + (high - low + 1) / 2;
		if (c->values[mid].offset <= off)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

static void variable_segment(const struct batch *b,
			     const struct batch_column *c, uint64_t off,
			     struct segment *s)
{
	const struct beton_batch_field *d = &c->desc;
	uint64_t table = (uint64_t)b->samples * sizeof(*c->values);
	uint64_t end = d->column_off + d->column_size, next;
	const struct beton_batch_value *v;
	uint32_t index;

	if (off < d->column_off + table) {
		set_literal(s, d->column_off, c->values, table);
		return;
	}
	if (off < c->values[0].offset) {
		set_zeros(s, d->column_off + table, c->values[0].offset);
		return;
	}
	index = index_at(c, b->samples, off);
	v = &c->values[index];
	next = index + 1 < b->samples ? v[1].offset : end;
	if (off < v->offset + v->size)
		set_payload(b, c, s, index, v->offset, v->size);
	else
		set_zeros(s, v->offset + v->size, next);
}

static void column_segment(const struct batch *b, const struct batch_column *c,
			   uint64_t off, struct segment *s)
{
	const struct beton_batch_field *d = &c->desc;
	uint32_t index;

	if (off < d->error_off + 4 * (uint64_t)b->samples) {
		set_literal(s, d->error_off, c->errors,
			    4 * (uint64_t)b->samples);
	} else if (off < d->column_off) {
		set_zeros(s, d->error_off + 4 * (uint64_t)b->samples,
			  d->column_off);
	} else if (d->column == BETON_COLUMN_VARIABLE) {
		variable_segment(b, c, off, s);
	} else if (c->scalars) {
		set_literal(s, d->column_off, c->scalars, d->column_size);
	} else {
		index = (uint32_t)((off - d->column_off) / d->stride);
		set_payload(b, c, s, index, d->column_off + index * d->stride,
			    d->stride);
	}
	s->field = (uint32_t)(c - b->columns);
}

static void batch_segment(const struct vfile *vfile, uint64_t off,
			  struct segment *s)
{
	const struct batch *b = (const struct batch *)vfile;
	const struct batch_column *c = b->columns;
	uint64_t ids_end = b->ids_off + 8 * (uint64_t)b->samples, end;

	if (off < b->head_size) {
		set_literal(s, 0, b->head, b->head_size);
		return;
	}
	if (off < b->ids_off) {
		set_zeros(s, b->head_size, b->ids_off);
		return;
	}
	if (off < ids_end) {
		set_literal(s, b->ids_off, b->ids, 8 * (uint64_t)b->samples);
		return;
	}
	end = ids_end;
	for (uint32_t i = 0; i < b->num_columns; i++, c++) {
		if (off < c->desc.error_off) {
			set_zeros(s, end, c->desc.error_off);
			return;
		}
		end = c->desc.column_off + c->desc.column_size;
		if (off < end) {
			column_segment(b, c, off, s);
			return;
		}
	}
	set_zeros(s, end, vfile->size);
}

/* --- values --- */

static void set_value(struct batch_column *c, const struct field *f,
		      uint32_t index, const struct value *v)
{
	if (c->scalars) {
		memcpy(c->scalars + v->size * index, v->scalar, v->size);
		return;
	}
	c->sources[index] = v->off;
	c->values[index].size = v->size;
	if (field_is_image(f)) {
		c->values[index].mode = v->mode;
		c->values[index].width = v->width;
		c->values[index].height = v->height;
	}
}

static void view_row(struct batch *b, uint32_t index, const uint8_t *record,
		     int error)
{
	struct dataset *ds = b->vfile.ds;
	struct value v;
	int r;

	for (uint32_t i = 0; i < b->num_columns; i++) {
		r = error ? error
			  : dataset_value(ds, i, b->ids[index], record, &v);
		if (!r)
			set_value(&b->columns[i], &ds->format.fields[i], index,
				  &v);
		else
			b->columns[i].errors[index] = -r;
		if (r && r != -BETON_ECORRUPT && r != -EOPNOTSUPP)
			b->has_io_errors = true;
	}
}

static void view_alone(struct batch *b, uint32_t index, uint8_t *record)
{
	int r = dataset_records(b->vfile.ds, b->ids[index], 1, record);

	view_row(b, index, record, r);
}

/* Returns the number of consecutive samples of the dataset from `index` on, at
   most `max`. */
static uint32_t run_length(const struct batch *b, uint32_t index, uint64_t max)
{
	uint32_t n = 1;

	while (index + n < b->samples && n < max &&
	       b->ids[index + n] == b->ids[index] + n)
		n++;
	return n;
}

static int view_samples(struct batch *b)
{
	uint64_t itemsize = b->vfile.ds->format.itemsize;
	uint64_t max = max_u64(1, RECORDS_CHUNK / max_u64(1, itemsize));
	cleanup_free uint8_t *records = malloc(max * itemsize + 1);
	uint32_t n, requested = 0;
	int r;

	if (!records)
		return -ENOMEM;
	for (uint32_t index = 0; index < b->samples; index += n) {
		if (index >= requested) {
			requested = index + PREFETCHED;
			dataset_prefetch(
				b->vfile.ds, b->ids + index,
				min_u64(PREFETCHED, b->samples - index));
		}
		n = run_length(b, index, max);
		r = dataset_records(b->vfile.ds, b->ids[index], n, records);
		for (uint32_t i = 0; i < n; i++) {
			/* A part of the records may be readable. */
			if (r && n > 1)
				view_alone(b, index + i, records);
			else
				view_row(b, index + i, records + i * itemsize,
					 r);
		}
	}
	return 0;
}

/* --- opening --- */

/* Copies a text into zeroed memory, without its NUL. */
static void set_text(char *out, const char *text)
{
	memcpy(out, text, strlen(text));
}

/* Sets the members of a column that its field determines. */
static void describe_column(struct batch_column *c, const struct field *f)
{
	struct beton_batch_field *d = &c->desc;

	set_text(d->name, f->name);
	set_text(d->stem, f->stem);
	set_text(d->dtype, f->dtype[0] ? f->dtype : "|u1");
	d->type = f->type->type;
	d->ndim = f->ndim;
	memcpy(d->shape, f->shape, sizeof(d->shape));
	switch (f->type->column) {
	case COLUMN_SCALAR:
		d->stride = f->meta_size;
		break;
	case COLUMN_ARRAY:
		d->stride = f->array_size;
		break;
	case COLUMN_RECORD:
		d->stride = f->unusable ? 0 : f->meta_size;
		d->ndim = 1;
		d->shape[0] = d->stride;
		break;
	case COLUMN_IMAGE:
	case COLUMN_RAGGED:
		break;
	}
}

static int make_columns(struct batch *b)
{
	const struct format *f = &b->vfile.ds->format;
	struct batch_column *c;

	b->num_columns = f->num_fields;
	b->columns = calloc(f->num_fields, sizeof(*b->columns));
	if (!b->columns)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->num_fields; i++) {
		c = &b->columns[i];
		describe_column(c, &f->fields[i]);
		c->errors = calloc(b->samples, sizeof(*c->errors));
		if (field_is_scalar(&f->fields[i])) {
			c->scalars = calloc(b->samples, c->desc.stride);
		} else {
			c->sources = calloc(b->samples, sizeof(*c->sources));
			c->values = calloc(b->samples, sizeof(*c->values));
		}
		if (!c->errors || !(c->scalars || (c->sources && c->values)))
			return -ENOMEM;
	}
	return 0;
}

static int choose_ids(struct batch *b, const struct batch_key *key)
{
	struct order order = order_init(key->spec, key->epoch);

	b->ids = malloc(b->samples * sizeof(*b->ids));
	if (!b->ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->samples; i++)
		b->ids[i] = order_sample(&order,
					 key->number * key->spec->batch + i);
	return 0;
}

/* Returns the bytes of a layout with all of its columns. */
static uint64_t layout_bytes(const struct batch *b)
{
	const struct format *f = &b->vfile.ds->format;
	uint64_t each = sizeof(*b->ids), fixed = sizeof(*b);
	const struct batch_column *c = NULL;

	for (uint32_t i = 0; i < f->num_fields; i++) {
		fixed += sizeof(*c) + sizeof(c->desc);
		each += sizeof(*c->errors);
		each += field_is_scalar(&f->fields[i])
				? f->fields[i].meta_size
				: sizeof(*c->sources) + sizeof(*c->values);
	}
	return fixed + b->samples * each;
}

/* Takes the memory of a layout from the budget. */
static int charge_layout(struct batch *b, struct budget *budget)
{
	uint64_t bytes = layout_bytes(b);
	int r;

	if ((uint64_t)b->samples * b->vfile.ds->format.num_fields > CELLS_MAX)
		return -EFBIG;
	r = budget_take(budget, BUDGET_LAYOUTS, bytes, WAIT_MS);
	if (r)
		return r;
	b->budget = budget;
	b->charged = bytes;
	return 0;
}

int batch_open(const struct batch_key *key, struct budget *budget,
	       struct batch **out)
{
	struct batch *b;
	int r;

	if (key->number >= spec_batches(key->spec))
		return -ENOENT;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	atomic_init(&b->refs, 1);
	b->vfile = (struct vfile){
		.ds = key->ds,
		.tally = &b->tally,
		.segment_at = batch_segment,
	};
	b->key = *key;
	b->spec = *key->spec;
	b->key.spec = &b->spec;
	b->samples = spec_batch_samples(key->spec, key->number);
	r = charge_layout(b, budget);
	if (!r)
		r = choose_ids(b, key);
	if (!r)
		r = make_columns(b);
	if (!r)
		r = view_samples(b);
	if (!r)
		r = batch_place(b, key);
	if (r) {
		log_error(key->ds->log,
			  "%s: batch of %u samples and %u fields: %s",
			  dataset_path(key->ds), b->samples,
			  key->ds->format.num_fields, strerror(-r));
		batch_put(&b);
		return r;
	}
	*out = b;
	return 0;
}

void batch_get(struct batch *b)
{
	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}

static void free_columns(struct batch *b)
{
	for (uint32_t i = 0; b->columns && i < b->num_columns; i++) {
		free(b->columns[i].errors);
		free(b->columns[i].scalars);
		free(b->columns[i].sources);
		free(b->columns[i].values);
	}
	free(b->columns);
}

void batch_put(struct batch **batch)
{
	struct batch *b = steal(*batch);

	if (!b || atomic_fetch_sub(&b->refs, 1) != 1)
		return;
	free_columns(b);
	budget_give(b->budget, BUDGET_LAYOUTS, b->charged);
	free(b->head);
	free(b->ids);
	free(b);
}

/* --- collating --- */

/* A payload that could not be read. */
struct batch_failure {
	uint64_t at; /* offset of the sample's error in the file */
	uint32_t error;
};

/* One call of batch_collate(), whose parts are ranges of the file. */
struct collation {
	const struct batch *batch;
	uint8_t *bytes;
	unsigned parts;
	pthread_mutex_t lock; /* guards the members below */
	int result;
	struct batch_failure *failures;
	size_t num_failures;
	size_t room;
};

static void note_result(struct collation *c, int r)
{
	scoped_lock(&c->lock);
	if (!c->result)
		c->result = r;
}

/* The part of the file with the errors may be written after this call. */
static void note_failure(void *arg, const struct segment *s, int error)
{
	struct collation *c = arg;
	const struct beton_batch_field *d = &c->batch->columns[s->field].desc;
	struct batch_failure *more;

	scoped_lock(&c->lock);
	more = c->failures;
	if (c->num_failures == c->room) {
		more = realloc(c->failures, (2 * c->room + 16) * sizeof(*more));
		if (!more) {
			c->result = -ENOMEM;
			return;
		}
		c->failures = more;
		c->room = 2 * c->room + 16;
	}
	more[c->num_failures++] =
		(struct batch_failure){ d->error_off + 4 * (uint64_t)s->index,
					(uint32_t)-error };
}

/* Returns where a part begins: with a whole payload, so that no two parts read
   one. */
static uint64_t part_begin(const struct collation *c, unsigned part)
{
	const struct vfile *file = &c->batch->vfile;
	uint64_t at = file->size / c->parts * part;
	struct segment s;

	if (part == c->parts)
		return file->size;
	if (!part)
		return 0;
	file->segment_at(file, at, &s);
	return s.kind == SEGMENT_RANGE ? s.start : at;
}

static void collate_part(void *arg, unsigned part)
{
	struct collation *c = arg;
	uint64_t begin = part_begin(c, part), end = part_begin(c, part + 1);
	ssize_t n = end > begin
			    ? vfile_read(&c->batch->vfile, c->bytes + begin,
					 end - begin, begin, note_failure, c)
			    : 0;

	if (n < 0)
		note_result(c, (int)n);
}

int batch_collate(const struct batch *b, struct team *team, void *buf,
		  bool *failed)
{
	struct collation c = {
		.batch = b,
		.bytes = buf,
		.parts = 1,
	};

	if (team)
		c.parts += (unsigned)min_u64(PARTS_MAX - 1,
					     b->vfile.size / PART_BYTES);

	pthread_mutex_init(&c.lock, NULL);
	team_run(team, collate_part, &c, c.parts);
	pthread_mutex_destroy(&c.lock);
	for (size_t i = 0; i < c.num_failures; i++)
		store32(c.bytes + c.failures[i].at, c.failures[i].error);
	free(c.failures);
	*failed = c.num_failures;
	return c.result;
}

uint64_t batch_marks(const struct batch *b, const void *bytes)
{
	uint64_t marks = 0;
	const uint8_t *errors;

	for (uint32_t i = 0; i < b->num_columns; i++) {
		errors = (const uint8_t *)bytes + b->columns[i].desc.error_off;
		for (uint32_t index = 0; index < b->samples; index++)
			marks = rng_mix(marks ^
					load32(errors + 4 * (uint64_t)index)) +
				1;
	}
	return max_u64(marks, 1);
}
