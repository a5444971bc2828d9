/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/value.h"

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/alloc_probe.h"

enum {
	/* Smaller allocation tables arrive in one round trip or two. */
	PROBE_ENTRIES = (1 << 20) / FORMAT_ENTRY_SIZE,
	/* More look-ups would take longer than reading the whole table. */
	PROBES_MAX = 8,
	/* Longer records are always read by threads that may wait. */
	RECORD_MAX = 4096,
};

uint64_t dataset_record_at(const struct dataset *ds, uint64_t sample,
			   uint64_t *n)
{
	const struct format *f = &ds->format;
	const struct dataset_part *part = dataset_part_of(ds, sample);

	if (part)
		return part->base +
		       dataset_record_at(part->ds, sample - part->first, n);
	*n = f->samples - sample;
	return f->meta_off + sample * f->itemsize;
}

int dataset_records(struct dataset *ds, uint64_t first, uint64_t n, void *buf)
{
	const struct format *f = &ds->format;
	uint8_t *to = buf;
	uint64_t at, some;
	int r = 0;

	if (!f->itemsize)
		return -EOPNOTSUPP;
	if (!range_ok(first, n, f->samples))
		return -EINVAL;
	for (; n && !r; n -= some) {
		at = dataset_record_at(ds, first, &some);
		some = min_u64(some, n);
		r = source_read(ds->source, to, some * f->itemsize, at);
		to += some * f->itemsize;
		first += some;
	}
	return r;
}

/* Reads the allocation table unless it is in memory. Only damage is final:
   after other failures, the next call tries again. */
static int need_alloc(struct dataset *ds)
{
	int r;

	scoped_lock(&ds->lock);
	if (ds->alloc)
		return 0;
	if (ds->alloc_error)
		return ds->alloc_error;
	r = alloc_open(ds->source, &ds->format, ds->tables, ds->log,
		       &ds->alloc);
	if (r == -BETON_ECORRUPT)
		ds->alloc_error = r;
	return r;
}

static int most_size_reads(struct dataset *ds, size_t *out)
{
	size_t reads;
	int r = 0;

	*out = 0;
	for (size_t i = 0; i < ds->num_parts && !r; i++) {
		r = dataset_size_reads(ds->parts[i].ds, &reads);
		*out = r ? *out : max_u64(*out, reads);
	}
	return r;
}

int dataset_size_reads(struct dataset *ds, size_t *out)
{
	int r;

	if (ds->parts)
		return most_size_reads(ds, out);
	r = need_alloc(ds);
	if (r && r != -BETON_ECORRUPT)
		return r;
	*out = r ? 0 : alloc_reads(ds->alloc);
	return 0;
}

static int size_from_table(struct dataset *ds, struct value *v,
			   const char **why)
{
	int r = need_alloc(ds);

	if (!r)
		r = alloc_size(ds->alloc, v->off, &v->size);
	if (r == -ENOENT) {
		*why = "the allocation table lacks it: the file is damaged or "
		       "cut off";
		return -BETON_ECORRUPT;
	}
	return r;
}

static int check_value(struct dataset *ds, struct value *v, const char **why)
{
	int r = 0;

	if (v->size == VALUE_SIZE_IN_TABLE)
		r = size_from_table(ds, v, why);
	if (!r && !format_is_value_range(&ds->format, v->off, v->size)) {
		*why = "its bytes are not inside one page";
		r = -BETON_ECORRUPT;
	}
	if (!r && !v->size && v->width) {
		*why = "an image of no bytes";
		r = -BETON_ECORRUPT;
	}
	return r;
}

/* If the value is damaged, sets *why; *v then has the members that were read
   before. */
static int value_of(struct dataset *ds, uint32_t field, uint64_t sample,
		    const uint8_t *record, struct value *v, const char **why)
{
	const struct field *f = &ds->format.fields[field];
	int r;

	if (f->unusable)
		return -EOPNOTSUPP;
	r = f->type->view(f, record + f->meta_off, v, why);
	if (!r && f->type->column == COLUMN_RECORD)
		v->off = ds->format.meta_off + sample * ds->format.itemsize +
			 f->meta_off;
	else if (!r && !field_is_scalar(f))
		r = check_value(ds, v, why);
	return r;
}

/* Logs damage with the file's own number of the sample. */
static int value_of_file(struct dataset *ds, uint32_t field, uint64_t sample,
			 const uint8_t *record, struct value *out)
{
	struct value v = { .off = 0 };
	const char *why = NULL;
	int r = value_of(ds, field, sample, record, &v, &why);

	if (why)
		log_error(ds->log,
			  "%s: sample %llu field %s: %s (%llu bytes at %llu)",
			  ds->source->path, (unsigned long long)sample,
			  ds->format.fields[field].stem, why,
			  v.size == VALUE_SIZE_IN_TABLE
				  ? 0ULL
				  : (unsigned long long)v.size,
			  (unsigned long long)v.off);
	if (!r)
		*out = v;
	return r;
}

/* The place is one in the source of all parts. */
static void move_value(const struct dataset_part *part, uint32_t field,
		       struct value *v)
{
	if (!field_is_scalar(&part->ds->format.fields[field]))
		v->off += part->base;
}

int dataset_value(struct dataset *ds, uint32_t field, uint64_t sample,
		  const uint8_t *record, struct value *out)
{
	const struct dataset_part *part = dataset_part_of(ds, sample);
	int r;

	if (!part)
		return value_of_file(ds, field, sample, record, out);
	r = value_of_file(part->ds, field, sample - part->first, record, out);
	if (!r)
		move_value(part, field, out);
	return r;
}

int dataset_place(struct dataset *ds, uint32_t field, uint64_t sample,
		  const uint8_t *record, struct value *out)
{
	const struct dataset_part *part = dataset_part_of(ds, sample);
	const char *why = NULL;
	int r;

	if (!part)
		return value_of(ds, field, sample, record, out, &why);
	r = value_of(part->ds, field, sample - part->first, record, out, &why);
	if (!r)
		move_value(part, field, out);
	return r;
}

/* Returns whether the size of one more value should be found without reading
   the whole allocation table. */
static bool may_probe(struct dataset *ds)
{
	if (!source_prefetches(ds->source) ||
	    ds->format.table_entries < PROBE_ENTRIES)
		return false;
	scoped_lock(&ds->lock);
	return !ds->alloc && !ds->alloc_error && ds->num_probes++ < PROBES_MAX;
}

/* Finds a value by few entries of the allocation table. Returns false if
   dataset_value() has to find it. */
static bool probe_value(struct dataset *ds, uint32_t field, uint64_t sample,
			const uint8_t *record, struct value *out)
{
	const struct field *f = &ds->format.fields[field];
	const char *why;

	if (!field_is_image(f) || f->unusable ||
	    f->type->view(f, record + f->meta_off, out, &why) ||
	    out->size != VALUE_SIZE_IN_TABLE || !may_probe(ds))
		return false;
	return !alloc_probe(ds->source, &ds->format, sample, out->off,
			    &out->size) &&
	       format_is_value_range(&ds->format, out->off, out->size);
}

int dataset_value_alone(struct dataset *ds, uint32_t field, uint64_t sample,
			const uint8_t *record, struct value *out)
{
	const struct dataset_part *part = dataset_part_of(ds, sample);
	struct dataset *file = part ? part->ds : ds;
	uint64_t number = sample - (part ? part->first : 0);
	struct value v = { .off = 0 };

	if (!probe_value(file, field, number, record, &v))
		return dataset_value(ds, field, sample, record, out);
	if (part)
		move_value(part, field, &v);
	*out = v;
	return 0;
}

int dataset_value_at(struct dataset *ds, uint32_t field, uint64_t sample,
		     struct value *out)
{
	cleanup_free uint8_t *record = malloc(ds->format.itemsize + 1);
	int r = record ? dataset_records(ds, sample, 1, record) : -ENOMEM;

	return r ? r : dataset_value_alone(ds, field, sample, record, out);
}

/* Returns whether the size of an allocation is in memory. Another thread may
   hold the lock while it reads the table. */
static bool is_size_at_hand(struct dataset *file, uint64_t off)
{
	const struct alloc *alloc;
	int error;

	if (pthread_mutex_trylock(&file->lock))
		return false;
	alloc = file->alloc;
	error = file->alloc_error;
	pthread_mutex_unlock(&file->lock);
	return alloc ? alloc_is_at_hand(alloc, off) : error;
}

static bool are_sizes_at_hand(struct dataset *file, const uint8_t *record)
{
	const struct format *f = &file->format;
	const char *why;
	struct value v;

	for (uint32_t i = 0; i < f->num_fields; i++) {
		const struct field *field = &f->fields[i];

		if (field_is_image(field) && !field->unusable &&
		    !field->type->view(field, record + field->meta_off, &v,
				       &why) &&
		    v.size == VALUE_SIZE_IN_TABLE &&
		    !is_size_at_hand(file, v.off))
			return false;
	}
	return true;
}

bool dataset_is_at_hand(struct dataset *ds, uint64_t sample)
{
	const struct dataset_part *part = dataset_part_of(ds, sample);
	struct dataset *file = part ? part->ds : ds;
	uint8_t record[RECORD_MAX];
	uint64_t n;

	if (sample >= ds->format.samples || ds->format.itemsize > RECORD_MAX ||
	    source_read_cached(ds->source, record, ds->format.itemsize,
			       dataset_record_at(ds, sample, &n)))
		return false;
	return are_sizes_at_hand(file, record);
}

/* Requests the entries of the allocation table that the values of a sample
   need. */
static void prefetch_sizes(struct dataset *file, const uint8_t *record)
{
	const struct format *f = &file->format;
	const char *why;
	struct value v;

	for (uint32_t i = 0; i < f->num_fields; i++) {
		if (!field_is_image(&f->fields[i]) || f->fields[i].unusable ||
		    f->fields[i].type->view(&f->fields[i],
					    record + f->fields[i].meta_off, &v,
					    &why) ||
		    v.size != VALUE_SIZE_IN_TABLE || need_alloc(file))
			continue;
		alloc_prefetch(file->alloc, v.off);
	}
}

void dataset_prefetch_records(struct dataset *ds, const uint64_t *samples,
			      size_t n)
{
	uint64_t at, some;

	for (size_t i = 0; i < n; i++) {
		at = dataset_record_at(ds, samples[i], &some);
		source_prefetch(ds->source, at, ds->format.itemsize);
	}
}

void dataset_prefetch(struct dataset *ds, const uint64_t *samples, size_t n)
{
	cleanup_free uint8_t *record = NULL;
	const struct dataset_part *part;
	size_t reads;

	if (!source_prefetches(ds->source) || !ds->format.itemsize)
		return;
	dataset_prefetch_records(ds, samples, n);
	if (dataset_size_reads(ds, &reads) || !reads)
		return;
	record = malloc(ds->format.itemsize);
	for (size_t i = 0; i < n && record; i++) {
		part = dataset_part_of(ds, samples[i]);
		if (!dataset_records(ds, samples[i], 1, record))
			prefetch_sizes(part ? part->ds : ds, record);
	}
}

void dataset_prefetch_run(struct dataset *ds, uint64_t first, uint64_t n)
{
	uint64_t at, some;

	for (; n; n -= some, first += some) {
		at = dataset_record_at(ds, first, &some);
		some = min_u64(some, n);
		source_prefetch(ds->source, at, some * ds->format.itemsize);
	}
}

/* --- values as files --- */

static void sample_segment(const struct vfile *vfile, uint64_t off,
			   struct segment *out)
{
	const struct sample_file *file = (const struct sample_file *)vfile;

	if (off < file->head_size)
		*out = (struct segment){
			.kind = SEGMENT_LITERAL,
			.size = file->head_size,
			.literal = file->head,
		};
	else
		*out = (struct segment){
			.kind = SEGMENT_RANGE,
			.start = file->head_size,
			.size = file->value.size,
			.off = file->value.off,
		};
}

static size_t make_head(char *head, const struct field *f,
			const struct value *v)
{
	return f->type->head ? f->type->head(f, v, head) : 0;
}

void sample_file_init(struct sample_file *file, struct dataset *ds,
		      uint32_t field, const struct value *value)
{
	const struct field *f = &ds->format.fields[field];

	file->value = *value;
	if (field_is_scalar(f))
		file->value.size = 0;
	file->head_size = make_head(file->head, f, value);
	file->vfile = (struct vfile){
		.ds = ds,
		.size = file->head_size + file->value.size,
		.segment_at = sample_segment,
	};
}

uint64_t sample_file_size(const struct dataset *ds, uint32_t field,
			  const struct value *value)
{
	const struct field *f = &ds->format.fields[field];
	char head[NPY_HEADER_MAX];

	return make_head(head, f, value) +
	       (field_is_scalar(f) ? 0 : value->size);
}

static void column_segment(const struct vfile *vfile, uint64_t off,
			   struct segment *out)
{
	const struct column_file *file = (const struct column_file *)vfile;
	const struct format *format = &vfile->ds->format;
	const struct field *f = &format->fields[file->field];
	uint64_t sample, n, at;

	if (off < file->head_size) {
		*out = (struct segment){
			.kind = SEGMENT_LITERAL,
			.size = file->head_size,
			.literal = file->head,
		};
		return;
	}
	sample = (off - file->head_size) / f->meta_size;
	at = dataset_record_at(vfile->ds, sample, &n);
	*out = (struct segment){
		.kind = SEGMENT_STRIDED,
		.start = file->head_size + sample * f->meta_size,
		.size = n * f->meta_size,
		.off = at + f->meta_off,
		.stride = format->itemsize,
		.width = f->meta_size,
	};
}

void column_file_init(struct column_file *file, struct dataset *ds,
		      uint32_t field)
{
	const struct format *format = &ds->format;
	const struct field *f = &format->fields[field];

	file->field = field;
	file->head_size = npy_header(file->head, f->dtype, 1, &format->samples);
	file->vfile = (struct vfile){
		.ds = ds,
		.size = file->head_size + f->meta_size * format->samples,
		.segment_at = column_segment,
	};
}
