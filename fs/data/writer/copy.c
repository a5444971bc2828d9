/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/writer/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/data/dataset/value.h"
#include "fs/data/writer/rewrite.h"

enum {
	/* Bytes of records that are read at once: few at first, more while
	   samples follow each other. */
	BLOCK_MIN = 4 << 10,
	BLOCK_MAX = 256 << 10,
};

struct copy {
	struct writer *writer;
	struct log *log;
	const struct field *fields; /* of the writer */
	size_t num_fields;
	/* One element per field of the writer: */
	uint32_t *from;
	struct writer_value *values;
	struct pages_range *ranges;

	struct dataset *ds;
	uint64_t first; /* sample of the first record in memory */
	uint64_t num_records;
	uint64_t block; /* records to read next */
	uint8_t *records;
	copy_integer_fn *change;
	void *arg;
};

int copy_open(struct writer *w, struct log *log, struct copy **out)
{
	struct copy *c = calloc(1, sizeof(*c));
	size_t n;

	if (!c)
		return log_no_memory(log, writer_path(w));
	c->writer = w;
	c->log = log;
	c->fields = writer_fields(w, &n);
	c->num_fields = n;
	c->from = calloc(n, sizeof(*c->from));
	c->values = calloc(n, sizeof(*c->values));
	c->ranges = calloc(n, sizeof(*c->ranges));
	if (!c->from || !c->values || !c->ranges) {
		copy_close(c);
		return log_no_memory(log, writer_path(w));
	}
	*out = c;
	return 0;
}

void copy_close(struct copy *c)
{
	if (!c)
		return;
	writer_settle(c->writer);
	free(c->from);
	free(c->values);
	free(c->ranges);
	free(c->records);
	free(c);
}

/* --- the dataset --------------------------------------------------------- */

static int check_field(const struct copy *c, size_t i)
{
	const struct format *f = &c->ds->format;
	const struct field *to = &c->fields[i], *from;

	if (c->from[i] >= f->num_fields) {
		log_error(c->log, "%s: has no field %u", dataset_path(c->ds),
			  c->from[i]);
		return -EINVAL;
	}
	from = &f->fields[c->from[i]];
	if (!rewrite_can_copy(from)) {
		log_error(c->log, "%s: field '%s' cannot be copied: %s",
			  dataset_path(c->ds), from->name,
			  rewrite_why_not(from));
		return -EOPNOTSUPP;
	}
	if (from->type == to->type && from->array_size == to->array_size)
		return 0;
	log_error(c->log, "%s: field '%s' has %s, but '%s' of %s has %s%s",
		  dataset_path(c->ds), from->name, from->type->words, to->name,
		  writer_path(c->writer), to->type->words,
		  from->type == to->type ? " of another size" : "");
	return -EINVAL;
}

int copy_from(struct copy *c, struct dataset *ds, const uint32_t *fields)
{
	int r = writer_settle(c->writer);

	c->ds = ds;
	c->num_records = 0;
	c->block = 1;
	for (size_t i = 0; i < c->num_fields && !r; i++) {
		c->from[i] = fields ? fields[i] : (uint32_t)i;
		r = check_field(c, i);
	}
	if (r)
		return r;
	free(c->records);
	c->records = malloc(BLOCK_MAX + ds->format.itemsize);
	return c->records ? 0 : log_no_memory(c->log, writer_path(c->writer));
}

void copy_change_integers(struct copy *c, copy_integer_fn *change, void *arg)
{
	c->change = change;
	c->arg = arg;
}

/* --- samples ------------------------------------------------------------- */

/* Returns how many records to read from `number` on. */
static uint64_t block_size(const struct copy *c, uint64_t number)
{
	uint64_t itemsize = c->ds->format.itemsize;
	bool follows = c->num_records && number == c->first + c->num_records;
	uint64_t most = max_u64(BLOCK_MAX / itemsize, 1);
	uint64_t least = max_u64(BLOCK_MIN / itemsize, 1);

	return min_u64(follows ? min_u64(2 * c->block, most) : least,
		       c->ds->format.samples - number);
}

/* Finds the record of a sample; reads it unless it is in memory. */
static int find_record(struct copy *c, uint64_t number, const uint8_t **out)
{
	uint64_t itemsize = c->ds->format.itemsize;
	int r;

	if (number >= c->ds->format.samples) {
		log_error(c->log, "%s: has no sample %llu", dataset_path(c->ds),
			  (unsigned long long)number);
		return -EINVAL;
	}
	if (number < c->first || number - c->first >= c->num_records) {
		c->block = block_size(c, number);
		c->num_records = 0;
		r = dataset_records(c->ds, number, c->block, c->records);
		if (r)
			return r;
		c->first = number;
		c->num_records = c->block;
	}
	*out = c->records + (number - c->first) * itemsize;
	return 0;
}

/* Returns whether the NUL of a text lies in the same page. */
static bool has_nul(const struct copy *c, uint64_t number,
		    const struct value *v)
{
	const struct dataset_part *part = dataset_part_of(c->ds, number);
	const struct format *f = part ? &part->ds->format : &c->ds->format;
	uint64_t base = part ? part->base : 0;

	return format_is_value_range(f, v->off - base, v->size + 1);
}

/* Sets the range of a value that is not empty. */
static int set_range(struct copy *c, size_t i, uint64_t number,
		     const struct value *v)
{
	const struct field *f = &c->ds->format.fields[c->from[i]];

	if (f->type->ends_in_nul && !has_nul(c, number, v)) {
		log_error(c->log,
			  "%s: sample %llu field %s: its text does not end "
			  "inside its page (%llu bytes at %llu)",
			  dataset_path(c->ds), (unsigned long long)number,
			  f->stem, (unsigned long long)v->size,
			  (unsigned long long)v->off);
		return -BETON_ECORRUPT;
	}
	c->ranges[i] = (struct pages_range){
		.source = c->ds->source,
		.off = v->off,
		.size = v->size + f->type->ends_in_nul,
	};
	return 0;
}

static int change_integer(const struct copy *c, size_t i, uint64_t number)
{
	if (!c->change || !field_is_integer(&c->fields[i]))
		return 0;
	return c->change(c->arg, (uint32_t)i, number, &c->values[i].integer);
}

static int take_value(struct copy *c, size_t i, uint64_t number,
		      const uint8_t *record)
{
	const struct field_type *type = c->fields[i].type;
	struct value v;
	int r = dataset_value(c->ds, c->from[i], number, record, &v);

	if (r)
		return r;
	c->ranges[i].source = NULL;
	c->values[i] = (struct writer_value){
		.size = v.size,
		.mode = v.mode,
		.width = (uint16_t)v.width,
		.height = (uint16_t)v.height,
	};
	if (type->real)
		c->values[i].real = type->real(v.scalar);
	if (type->integer)
		c->values[i].integer = type->integer(v.scalar);
	if (field_has_payload(&c->fields[i]))
		return v.size ? set_range(c, i, number, &v) : 0;
	return change_integer(c, i, number);
}

int copy_sample(struct copy *c, uint64_t number)
{
	const uint8_t *record = NULL;
	int r = find_record(c, number, &record);

	for (size_t i = 0; i < c->num_fields && !r; i++)
		r = take_value(c, i, number, record);
	if (r)
		return r;
	r = writer_append_ranges(c->writer, c->values, c->ranges);
	if (r == -BETON_ETOOLARGE)
		log_error(c->log, "%s: sample %llu does not fit into a page",
			  dataset_path(c->ds), (unsigned long long)number);
	return r;
}

int copy_range(struct copy *c, uint64_t first, uint64_t n)
{
	int r = 0;

	for (uint64_t i = 0; i < n && !r; i++)
		r = copy_sample(c, first + i);
	return r;
}
