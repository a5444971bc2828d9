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
#include "fs/data/dataset/custom_field.h"
#include "fs/data/dataset/field_names.h"
#include "fs/source/object/disk.h"
#include "fs/source/object/open.h"
#include "fs/source/object/tables.h"

enum {
	SAMPLED_BLOCK = 4096,
	SAMPLED_BLOCKS = 3, /* of a part of the file */
	/* The first bytes that a remote source reads at once: the descriptors
	   of 11 fields. */
	HEAD_BYTES = 12 << 10,
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
