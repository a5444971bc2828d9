/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/dataset.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/base/files/paths.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/base/util/rng.h"
#include "fs/data/dataset/alloc_probe.h"
#include "fs/data/dataset/custom_field.h"
#include "fs/data/dataset/field_names.h"
#include "fs/source/object/disk.h"
#include "fs/source/object/disk.h"
#include "fs/source/object/open.h"
#include "fs/source/object/tables.h"

enum {
	SAMPLED_BLOCK = 4096,
	SAMPLED_BLOCKS = 3, /* of a part of the file */
	/* The first bytes that a remote source reads at once: the descriptors
	   of 11 fields. */
	HEAD_BYTES = 12 << 10,
	/* Smaller allocation tables arrive in one round trip or two. */
	PROBE_ENTRIES = (1 << 20) / FORMAT_ENTRY_SIZE,
	/* More look-ups would take longer than reading the whole table. */
	PROBES_MAX = 8,
	/* Longer records are always read by threads that may wait. */
	RECORD_MAX = 4096,
};

static int read_format(struct dataset *ds)
{
	struct format *f = &ds->format;
	uint8_t header[FORMAT_HEADER_SIZE];
	cleanup_free uint8_t *descriptors = NULL;
	char why[FORMAT_WHY_SIZE] = "out of memory";
	uint64_t size = (uint64_t)ds->source->stat.st_size;
	int r = -BETON_ENOTBETON;

	source_prefetch(ds->source, 0, HEAD_BYTES);
	if (size < FORMAT_HEADER_SIZE) {
		log_error(ds->log, "%s: not a .beton file: %llu bytes",
			  ds->source->path, (unsigned long long)size);
		return r;
	}
	r = source_read(ds->source, header, sizeof(header), 0);
	if (r)
		return r;
	r = format_parse_header(f, size, header, why);
	if (!r) {
		descriptors = malloc(f->meta_off - FORMAT_HEADER_SIZE);
		r = descriptors ? source_read(ds->source, descriptors,
					      f->meta_off - FORMAT_HEADER_SIZE,
					      FORMAT_HEADER_SIZE)
				: -ENOMEM;
		if (r == -EIO)
			return r;
	}
	if (!r)
		r = format_parse_fields(f, descriptors, why);
	if (r)
		log_error(ds->log, "%s: %s", ds->source->path, why);
	return r;
}

void dataset_hash(uint64_t hash[2], const uint8_t *bytes, size_t size)
{
	uint64_t word;

	for (size_t i = 0; i < size; i += 8) {
		word = 0;
		memcpy(&word, bytes + i, min_u64(8, size - i));
		hash[0] = rng_mix(hash[0] ^ word);
		hash[1] = rng_mix(hash[1] + word * 0x9e3779b97f4a7c15);
	}
}

/* Returns the first, the middle or the last block of a part of the file. */
static struct source_range sampled_block(const struct source_range *part,
					 unsigned i)
{
	uint64_t n = min_u64(part->size, SAMPLED_BLOCK);

	return (struct source_range){
		part->off + i * (part->size - n) / (SAMPLED_BLOCKS - 1),
		n,
	};
}

static struct source_range metadata_of(const struct format *f)
{
	return (struct source_range){ f->meta_off, f->samples * f->itemsize };
}

static struct source_range table_of(const struct format *f)
{
	return (struct source_range){ f->table_off,
				      f->file_size - f->table_off };
}

static int hash_part(struct dataset *ds, uint64_t hash[2],
		     struct source_range part)
{
	uint8_t bytes[SAMPLED_BLOCK];
	struct source_range block;
	int r = 0;

	for (unsigned i = 0; i < SAMPLED_BLOCKS && !r; i++) {
		block = sampled_block(&part, i);
		r = source_read(ds->source, bytes, block.size, block.off);
		if (!r)
			dataset_hash(hash, bytes, block.size);
	}
	return r;
}

/*
 * Hashes the header and the descriptors, the file's size, and some blocks of
 * metadata and allocation table. O(1). A copy has the same fingerprint; a file
 * that differs in any of these has another.
 */
static int fingerprint(struct dataset *ds)
{
	const struct format *f = &ds->format;
	uint64_t hash[2] = { 1, 2 };
	uint64_t facts[2] = { f->file_size, f->num_fields };
	cleanup_free uint8_t *head = malloc(f->meta_off);
	int r = head ? source_read(ds->source, head, f->meta_off, 0) : -ENOMEM;

	if (r)
		return r;
	dataset_hash(hash, head, f->meta_off);
	dataset_hash(hash, (const uint8_t *)facts, sizeof(facts));
	r = hash_part(ds, hash, metadata_of(f));
	if (!r)
		r = hash_part(ds, hash, table_of(f));
	memcpy(ds->fingerprint, hash, sizeof(ds->fingerprint));
	return r;
}

static void warn_of_names(const struct dataset *ds, const struct field *f,
			  const char *why)
{
	const struct class_names_place *at = &f->classes_at;

	log_warning(
		ds->log,
		"%s: field %s: ignoring its class names: %s (%llu names, %llu bytes at %llu)",
		ds->source->path, f->name, why, (unsigned long long)at->num,
		(unsigned long long)at->size, (unsigned long long)at->off);
}

/* If the names are damaged, the samples may still be good: open the dataset. */
static int read_names(struct dataset *ds, struct field *f, uint64_t *room)
{
	const struct class_names_place *at = &f->classes_at;
	char *text;
	int r;

	if (!at->size)
		return 0;
	if (at->size > *room ||
	    !range_ok(at->off, at->size, ds->format.table_off)) {
		warn_of_names(ds, f, "they are too long or outside the file");
		return 0;
	}
	*room -= at->size;
	text = malloc(at->size);
	r = text ? source_read(ds->source, text, at->size, at->off) : -ENOMEM;
	if (r)
		free(text);
	else if (!class_names_split(text, at, &f->classes))
		warn_of_names(ds, f, "they are damaged");
	return r;
}

static int read_all_names(struct dataset *ds)
{
	uint64_t room = CLASS_NAMES_SIZE_MAX;
	int r = 0;

	for (uint32_t i = 0; i < ds->format.num_fields && !r; i++)
		r = read_names(ds, &ds->format.fields[i], &room);
	return r;
}

struct dataset *dataset_new(struct log *log)
{
	struct dataset *ds = calloc(1, sizeof(*ds));

	if (!ds)
		return NULL;
	ds->log = log;
	ds->tables = 1;
	pthread_mutex_init(&ds->lock, NULL);
	return ds;
}

static void prefetch_part(struct dataset *ds, struct source_range part)
{
	struct source_range block;

	for (unsigned i = 0; i < SAMPLED_BLOCKS; i++) {
		block = sampled_block(&part, i);
		source_prefetch(ds->source, block.off, block.size);
	}
}

/* Requests everything that opening reads after the descriptors, so that a
   remote source reads it in one round trip. A custom field takes another one:
   only then the end of the metadata is known. */
static void prefetch_opening(struct dataset *ds)
{
	const struct format *f = &ds->format;
	const struct class_names_place *at;
	uint64_t room = CLASS_NAMES_SIZE_MAX;

	if (format_has_custom(f))
		custom_prefetch(ds->source, f);
	else
		prefetch_part(ds, metadata_of(f));
	prefetch_part(ds, table_of(f));
	for (uint32_t i = 0; i < f->num_fields; i++) {
		at = &f->fields[i].classes_at;
		if (at->size > room ||
		    !range_ok(at->off, at->size, f->table_off))
			continue;
		source_prefetch(ds->source, at->off, at->size);
		room -= at->size;
	}
}

static int infer_custom(struct dataset *ds)
{
	int r = custom_infer(ds->source, &ds->format, ds->log);

	if (!r)
		prefetch_part(ds, metadata_of(&ds->format));
	return r;
}

/* The size of every JPEG is in the allocation table, so that the first batch
   needs all of it, but only some records. */
static void note_tables(struct dataset *ds)
{
	const struct source_range tables[] = {
		table_of(&ds->format),
		metadata_of(&ds->format),
	};

	source_note_tables(ds->source, tables, ARRAY_LEN(tables));
}

static int open_source(struct dataset *ds)
{
	int r = read_format(ds);

	if (!r)
		prefetch_opening(ds);
	if (!r && format_has_custom(&ds->format))
		r = infer_custom(ds);
	if (!r)
		r = fingerprint(ds);
	if (!r)
		r = name_fields(ds->format.fields, ds->format.num_fields);
	if (!r)
		r = read_all_names(ds);
	if (!r)
		note_tables(ds);
	return r;
}

int dataset_open_source(struct source *source, struct log *log,
			struct dataset **out)
{
	struct dataset *ds = dataset_new(log);
	int r;

	if (!ds) {
		source_close(source);
		return -ENOMEM;
	}
	ds->source = source;
	r = open_source(ds);
	if (r) {
		dataset_close(ds);
		return r;
	}
	*out = ds;
	return 0;
}

int dataset_open(const char *path, const struct source_options *options,
		 struct log *log, struct dataset **out)
{
	struct source *source;
	int r = source_open(path, options, log, &source);

	if (!r)
		r = dataset_open_source(source, log, out);
	if (r)
		return r;
	(*out)->given = strdup(path);
	if ((*out)->given)
		return 0;
	dataset_close(*out);
	return -ENOMEM;
}

void dataset_close(struct dataset *ds)
{
	if (!ds)
		return;
	alloc_close(ds->alloc);
	format_fini(&ds->format);
	/* It reads the sources of the parts. */
	source_close(ds->source);
	for (size_t i = 0; i < ds->num_parts; i++)
		dataset_close(ds->parts[i].ds);
	free(ds->parts);
	free(ds->given);
	pthread_mutex_destroy(&ds->lock);
	free(ds);
}

const char *dataset_path(const struct dataset *ds)
{
	return ds->source->path;
}

bool dataset_tier_stats(const struct dataset *ds, struct disk_stats *out)
{
	struct disk_stats one;
	bool any = false;

	*out = (struct disk_stats){ 0 };
	if (!ds->num_parts)
		return disk_stats(ds->source, out);
	for (size_t i = 0; i < ds->num_parts; i++) {
		if (!disk_stats(ds->parts[i].ds->source, &one))
			continue;
		disk_stats_add(out, &one);
		any = true;
	}
	return any;
}

bool dataset_is_remote(const struct dataset *ds)
{
	for (size_t i = 0; i < ds->num_parts; i++) {
		if (paths_is_url(dataset_path(ds->parts[i].ds)))
			return true;
	}
	return paths_is_url(dataset_path(ds));
}

static uint64_t source_memory(const struct source *source)
{
	struct tables_stats tables;
	struct disk_stats disk = { 0 };

	tables_stats(source, &tables);
	disk_stats(source, &disk);
	return tables.limit + disk.memory;
}

uint64_t dataset_memory(const struct dataset *ds)
{
	uint64_t sum = 0;

	if (!ds->num_parts)
		return source_memory(ds->source);
	for (size_t i = 0; i < ds->num_parts; i++)
		sum += source_memory(ds->parts[i].ds->source);
	return sum;
}

uint64_t dataset_data_bytes(const struct dataset *ds)
{
	const struct format *f = &ds->format;

	if (f->first_page < f->table_off)
		return f->table_off - f->first_page;
	return f->samples * f->itemsize;
}

const struct dataset_part *dataset_part_of(const struct dataset *ds,
					   uint64_t sample)
{
	size_t low = 0, high = ds->num_parts, mid;

	while (high - low > 1) {
		mid = low + (high - low) / 2;
		if (ds->parts[mid].first <= sample)
			low = mid;
		else
			high = mid;
	}
	return ds->parts ? &ds->parts[low] : NULL;
}

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

static json_t *classes_json(const struct class_names *c)
{
	json_t *names = json_array();

	for (uint64_t i = 0; i < c->num; i++)
		json_array_append_new(names, json_string(c->names[i]));
	return names;
}

static json_t *field_json(const struct field *f)
{
	json_t *shape, *o = json_pack("{s:s, s:s, s:s}", "name", f->name,
				      "stem", f->stem, "type", f->type->name);

	if (!o)
		return NULL;
	if (f->dtype[0])
		json_object_set_new(o, "dtype", json_string(f->dtype));
	if (field_is_array(f)) {
		shape = json_array();
		for (uint32_t i = 0; i < f->ndim; i++)
			json_array_append_new(
				shape, json_integer((json_int_t)f->shape[i]));
		json_object_set_new(o, "shape", shape);
	}
	if (f->unusable)
		json_object_set_new(o, "unusable", json_string(f->unusable));
	if (f->classes)
		json_object_set_new(o, "classes", classes_json(f->classes));
	return o;
}

/* Names that are not UTF-8 are escaped. */
static json_t *file_name_json(const struct dataset *part)
{
	const char *name = basename(part->source->path);
	cleanup_free char *escaped = malloc(NAME_ESCAPED * strlen(name) + 2);
	json_t *text = json_string(name);

	if (text || !escaped)
		return text;
	name_escape(name, escaped);
	return json_string(escaped);
}

static json_t *files_json(const struct dataset *ds)
{
	json_t *files = json_array();

	for (size_t i = 0; i < ds->num_parts; i++) {
		const struct dataset *part = ds->parts[i].ds;

		json_array_append_new(
			files,
			json_pack("{s:o, s:I}", "name", file_name_json(part),
				  "samples", (json_int_t)part->format.samples));
	}
	return files;
}

int dataset_json(const struct dataset *ds, char **out)
{
	const struct format *f = &ds->format;
	char print[2 * BETON_FINGERPRINT_SIZE + 1];
	json_t *fields = json_array(), *o;

	for (uint32_t i = 0; i < f->num_fields; i++)
		json_array_append_new(fields, field_json(&f->fields[i]));
	for (size_t i = 0; i < BETON_FINGERPRINT_SIZE; i++)
		sprintf(print + 2 * i, "%02x", ds->fingerprint[i]);
	o = json_pack(
		"{s:i, s:I, s:I, s:I, s:I, s:I, s:s, s:o}", "version", 1,
		"samples", (json_int_t)f->samples, "page_size",
		(json_int_t)f->page_size, "pages",
		(json_int_t)((f->table_off - f->first_page) / f->page_size),
		"file_size", (json_int_t)f->file_size, "data_bytes",
		(json_int_t)dataset_data_bytes(ds), "fingerprint", print,
		"fields", fields);
	if (o && ds->parts)
		json_object_set_new(o, "files", files_json(ds));
	*out = o ? json_dumps(o, JSON_INDENT(2)) : NULL;
	json_decref(o);
	return *out ? 0 : -ENOMEM;
}
