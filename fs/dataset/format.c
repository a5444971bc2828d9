/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/dataset/format.h"

#include <stdio.h>
#include <stdlib.h>

#include "fs/util/bytes.h"

typedef unsigned long long ull;

#define WHY(why, ...) snprintf(why, FORMAT_WHY_SIZE, __VA_ARGS__)

struct format_entry format_entry_parse(const uint8_t bytes[FORMAT_ENTRY_SIZE])
{
	return (struct format_entry){ load64(bytes), load64(bytes + 8),
				      load64(bytes + 16) };
}

static int check_header(const struct format *f, char *why)
{
	if (!f->table_off) {
		WHY(why, "unfinished: the header names no allocation table; "
			 "its writer was interrupted");
	} else if (!f->num_fields || f->num_fields > FORMAT_FIELDS_MAX) {
		WHY(why, "header: %u fields, expected 1 to %d", f->num_fields,
		    FORMAT_FIELDS_MAX);
	} else if (!is_power_of_two(f->page_size) ||
		   f->page_size < FORMAT_PAGE_SIZE_MIN) {
		WHY(why,
		    "header: page size %u, expected a power of two from %d",
		    f->page_size, FORMAT_PAGE_SIZE_MIN);
	} else if (f->samples > FORMAT_SAMPLES_MAX) {
		WHY(why, "header: %llu samples, at most %llu are supported",
		    (ull)f->samples, (ull)FORMAT_SAMPLES_MAX);
	} else if (f->table_off > f->file_size) {
		WHY(why,
		    "cut off: the allocation table is at %llu, the file ends at %llu",
		    (ull)f->table_off, (ull)f->file_size);
	} else if (f->meta_off > f->table_off) {
		WHY(why,
		    "header: the allocation table at %llu lies inside the %u field descriptors",
		    (ull)f->table_off, f->num_fields);
	} else {
		return 0;
	}
	return -BETON_ECORRUPT;
}

int format_parse_header(struct format *f, uint64_t file_size,
			const uint8_t header[FORMAT_HEADER_SIZE],
			char why[FORMAT_WHY_SIZE])
{
	unsigned version = load16(header);

	*f = (struct format){
		.num_fields = load16(header + 2),
		.page_size = load32(header + 4),
		.samples = load64(header + 8),
		.table_off = load64(header + 16),
		.file_size = file_size,
	};
	f->meta_off = FORMAT_HEADER_SIZE +
		      (uint64_t)FORMAT_DESCRIPTOR_SIZE * f->num_fields;
	if (version != FORMAT_VERSION) {
		WHY(why, "not a .beton file: version %u, expected %d", version,
		    FORMAT_VERSION);
		return -BETON_ENOTBETON;
	}
	return check_header(f, why);
}

static int parse_name(struct field *field, const uint8_t *name)
{
	memcpy(field->name, name, FORMAT_NAME_SIZE);
	field->name[FORMAT_NAME_SIZE] = '\0';
	for (const char *c = field->name; *c; c++) {
		if (*c & 0x80)
			return -BETON_ECORRUPT;
	}
	return 0;
}

static int parse_field(struct field *field, unsigned i, const uint8_t *d,
		       char *why)
{
	const char *reason = "";

	field->type = field_type_by_id(d[0]);
	if (!field->type) {
		WHY(why, "field %u: unknown type %u", i, d[0]);
		return -BETON_ECORRUPT;
	}
	if (parse_name(field, d + 1)) {
		WHY(why, "field %u: its name is not ASCII", i);
		return -BETON_ECORRUPT;
	}
	if (field_is_scalar(field))
		memcpy(field->dtype, field->type->dtype,
		       strlen(field->type->dtype) + 1);
	if (field_is_integer(field))
		field->classes_at = class_names_parse(d + FORMAT_ARGS_OFF);
	if (field_is_array(field) &&
	    field_parse_arguments(field, d + FORMAT_ARGS_OFF, &reason)) {
		WHY(why, "field %u (%s): %s", i, field->name, reason);
		return -BETON_ECORRUPT;
	}
	return 0;
}

/* Every value with bytes of its own has one entry. */
static uint64_t entries_per_sample(const struct format *f)
{
	uint64_t n = format_has_custom(f) ? FORMAT_CUSTOM_ENTRIES : 0;

	for (unsigned i = 0; i < f->num_fields; i++)
		n += field_has_payload(&f->fields[i]);
	return n;
}

/* Refuse a table that is longer than its samples need: reading it takes time,
   and a sparse file may have any length. */
static int check_table(struct format *f, char *why)
{
	uint64_t most;

	/* Like FFCV, ignore bytes after the last whole entry. */
	f->table_entries = (f->file_size - f->table_off) / FORMAT_ENTRY_SIZE;
	f->sample_entries = entries_per_sample(f);
	if (f->table_entries <= FORMAT_TABLE_ANY / FORMAT_ENTRY_SIZE ||
	    !mul_ok(f->samples, f->sample_entries, &most) ||
	    f->table_entries <= most)
		return 0;
	WHY(why,
	    "allocation table: %llu entries, but %llu samples have at most %llu each",
	    (ull)f->table_entries, (ull)f->samples, (ull)f->sample_entries);
	return -BETON_ECORRUPT;
}

int format_parse_fields(struct format *f, const uint8_t *descriptors,
			char why[FORMAT_WHY_SIZE])
{
	int r = 0;

	f->fields = calloc(f->num_fields, sizeof(*f->fields));
	if (!f->fields)
		return -ENOMEM;
	for (unsigned i = 0; i < f->num_fields && !r; i++)
		r = parse_field(
			&f->fields[i], i,
			descriptors + (size_t)i * FORMAT_DESCRIPTOR_SIZE, why);
	if (!r)
		r = check_table(f, why);
	if (r || format_has_custom(f))
		return r;
	return format_lay_out(f, 0, 1, why);
}

bool format_has_custom(const struct format *f)
{
	for (unsigned i = 0; i < f->num_fields; i++) {
		if (!f->fields[i].type->meta_size)
			return true;
	}
	return false;
}

/* Lays records out like numpy.dtype(..., align=True). */
static void place_fields(struct format *f, uint32_t custom_size,
			 uint32_t custom_align)
{
	uint64_t at = 0, widest = 1, align;

	for (unsigned i = 0; i < f->num_fields; i++) {
		struct field *field = &f->fields[i];
		bool known = field->type->meta_size;

		align = known ? field->type->meta_align : custom_align;
		field->meta_size = known ? field->type->meta_size : custom_size;
		at = align_up(at, align);
		field->meta_off = (uint32_t)at;
		at += field->meta_size;
		widest = max_u64(widest, align);
	}
	f->itemsize = align_up(at, widest);
}

/* Pages, if there are any, lie between the records and the table. */
static int check_pages(struct format *f, uint64_t meta_end, char *why)
{
	f->first_page = f->table_off;
	if (f->table_off == meta_end)
		return 0;
	if (meta_end > f->table_off) {
		WHY(why,
		    "%llu samples of %llu bytes of metadata end at %llu, past the allocation table at %llu",
		    (ull)f->samples, (ull)f->itemsize, (ull)meta_end,
		    (ull)f->table_off);
		return -BETON_ECORRUPT;
	}
	f->first_page = align_up(meta_end, f->page_size);
	if (f->first_page > f->table_off ||
	    (f->table_off - f->first_page) % f->page_size) {
		WHY(why,
		    "no whole pages of %u bytes from %llu to the allocation table at %llu",
		    f->page_size, (ull)f->first_page, (ull)f->table_off);
		return -BETON_ECORRUPT;
	}
	return 0;
}

static int check_arrays(const struct format *f, char *why)
{
	for (unsigned i = 0; i < f->num_fields && f->samples; i++) {
		if (f->fields[i].array_size > f->page_size) {
			WHY(why,
			    "field %u (%s): arrays of %llu bytes, pages of %u",
			    i, f->fields[i].name, (ull)f->fields[i].array_size,
			    f->page_size);
			return -BETON_ECORRUPT;
		}
	}
	return 0;
}

int format_lay_out(struct format *f, uint32_t custom_size,
		   uint32_t custom_align, char why[FORMAT_WHY_SIZE])
{
	uint64_t size, meta_end;
	int r;

	place_fields(f, custom_size, custom_align);
	if (!mul_ok(f->samples, f->itemsize, &size) ||
	    !add_ok(f->meta_off, size, &meta_end) ||
	    meta_end > INT64_MAX - (uint64_t)UINT32_MAX) {
		WHY(why, "header: %llu samples of %llu bytes of metadata",
		    (ull)f->samples, (ull)f->itemsize);
		return -BETON_ECORRUPT;
	}
	r = check_pages(f, meta_end, why);
	return r ? r : check_arrays(f, why);
}

bool format_is_value_range(const struct format *f, uint64_t off, uint64_t size)
{
	if (!size)
		return true; /* the offset of an empty value means nothing
				(beton(5)) */
	return off >= f->first_page && range_ok(off, size, f->table_off) &&
	       off / f->page_size == (off + size - 1) / f->page_size;
}

void format_fini(struct format *f)
{
	for (unsigned i = 0; f->fields && i < f->num_fields; i++)
		class_names_free(f->fields[i].classes);
	free(f->fields);
	f->fields = NULL;
}
