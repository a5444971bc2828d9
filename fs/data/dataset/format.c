/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/format.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"

typedef unsigned long long ull;

/* The faults that one call finds. */
struct faults {
	char *why; /* of the first one, or NULL */
	const struct format_faults *each;
	unsigned num;
};

/* Returns -BETON_ECORRUPT. */
static int __attribute__((format(printf, 3, 4)))
add_fault(struct faults *faults, enum format_rule rule, const char *format, ...)
{
	char why[FORMAT_WHY_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	if (!faults->num++ && faults->why)
		memcpy(faults->why, why, sizeof(why));
	if (faults->each)
		faults->each->found(faults->each->arg, rule, why);
	return -BETON_ECORRUPT;
}

struct format_entry format_entry_parse(const uint8_t bytes[FORMAT_ENTRY_SIZE])
{
	return (struct format_entry){ load64(bytes), load64(bytes + 8),
				      load64(bytes + 16) };
}

static int check_header(const struct format *f, struct faults *faults)
{
	if (!f->table_off)
		add_fault(faults, FORMAT_RULE_FINISHED,
			  "unfinished: the header names no allocation table; "
			  "its writer was interrupted");
	if (!f->num_fields || f->num_fields > FORMAT_FIELDS_MAX)
		add_fault(faults, FORMAT_RULE_FIELDS,
			  "header: %u fields, expected 1 to %d", f->num_fields,
			  FORMAT_FIELDS_MAX);
	if (!is_power_of_two(f->page_size) ||
	    f->page_size < FORMAT_PAGE_SIZE_MIN)
		add_fault(
			faults, FORMAT_RULE_PAGE_SIZE,
			"header: page size %u, expected a power of two from %d",
			f->page_size, FORMAT_PAGE_SIZE_MIN);
	if (f->samples > FORMAT_SAMPLES_MAX)
		add_fault(faults, FORMAT_RULE_SAMPLES,
			  "header: %llu samples, at most %llu are supported",
			  (ull)f->samples, (ull)FORMAT_SAMPLES_MAX);
	if (f->table_off > f->file_size)
		add_fault(
			faults, FORMAT_RULE_WHOLE,
			"cut off: the allocation table is at %llu, the file ends at %llu",
			(ull)f->table_off, (ull)f->file_size);
	else if (f->table_off && f->meta_off > f->table_off)
		add_fault(
			faults, FORMAT_RULE_TABLE_PLACE,
			"header: the allocation table at %llu lies inside the %u field descriptors",
			(ull)f->table_off, f->num_fields);
	return faults->num ? -BETON_ECORRUPT : 0;
}

static int parse_header(struct format *f, uint64_t file_size,
			const uint8_t *header, struct faults *faults)
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
		add_fault(faults, FORMAT_RULE_VERSION,
			  "not a .beton file: version %u, expected %d", version,
			  FORMAT_VERSION);
		return -BETON_ENOTBETON;
	}
	return check_header(f, faults);
}

int format_parse_header(struct format *f, uint64_t file_size,
			const uint8_t header[FORMAT_HEADER_SIZE],
			char why[FORMAT_WHY_SIZE])
{
	return parse_header(f, file_size, header,
			    &(struct faults){ .why = why });
}

int format_check_header(struct format *f, uint64_t file_size,
			const uint8_t header[FORMAT_HEADER_SIZE],
			const struct format_faults *faults)
{
	return parse_header(f, file_size, header,
			    &(struct faults){ .each = faults });
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
		       struct faults *faults)
{
	const char *reason = "";

	field->type = field_type_by_id(d[0]);
	if (!field->type)
		return add_fault(faults, FORMAT_RULE_TYPE,
				 "field %u: unknown type %u", i, d[0]);
	if (parse_name(field, d + 1))
		return add_fault(faults, FORMAT_RULE_NAME,
				 "field %u: its name is not ASCII", i);
	if (field_is_scalar(field))
		memcpy(field->dtype, field->type->dtype,
		       strlen(field->type->dtype) + 1);
	if (field_is_integer(field))
		field->classes_at = class_names_parse(d + FORMAT_ARGS_OFF);
	if (field_is_array(field) &&
	    field_parse_arguments(field, d + FORMAT_ARGS_OFF, &reason))
		return add_fault(faults, FORMAT_RULE_ARGUMENTS,
				 "field %u (%s): %s", i, field->name, reason);
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
static int check_table(struct format *f, struct faults *faults)
{
	uint64_t most;

	/* Like FFCV, ignore bytes after the last whole entry. */
	f->table_entries = (f->file_size - f->table_off) / FORMAT_ENTRY_SIZE;
	f->sample_entries = entries_per_sample(f);
	if (f->table_entries <= FORMAT_TABLE_ANY / FORMAT_ENTRY_SIZE ||
	    !mul_ok(f->samples, f->sample_entries, &most) ||
	    f->table_entries <= most)
		return 0;
	return add_fault(
		faults, FORMAT_RULE_TABLE_SIZE,
		"allocation table: %llu entries, but %llu samples have at most %llu each",
		(ull)f->table_entries, (ull)f->samples, (ull)f->sample_entries);
}

/* Parses every field, also after a fault. */
static int parse_fields(struct format *f, const uint8_t *descriptors,
			struct faults *faults)
{
	int r = 0;

	f->fields = calloc(f->num_fields, sizeof(*f->fields));
	if (!f->fields)
		return -ENOMEM;
	for (unsigned i = 0; i < f->num_fields; i++) {
		int bad = parse_field(
			&f->fields[i], i,
			descriptors + (size_t)i * FORMAT_DESCRIPTOR_SIZE,
			faults);

		r = r ? r : bad;
	}
	return r ? r : check_table(f, faults);
}

int format_parse_fields(struct format *f, const uint8_t *descriptors,
			char why[FORMAT_WHY_SIZE])
{
	int r = parse_fields(f, descriptors, &(struct faults){ .why = why });

	if (r || format_has_custom(f))
		return r;
	return format_lay_out(f, 0, 1, why);
}

int format_check_fields(struct format *f, const uint8_t *descriptors,
			const struct format_faults *faults)
{
	return parse_fields(f, descriptors, &(struct faults){ .each = faults });
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
static int check_pages(struct format *f, uint64_t meta_end,
		       struct faults *faults)
{
	f->first_page = f->table_off;
	if (f->table_off == meta_end)
		return 0;
	if (meta_end > f->table_off)
		return add_fault(
			faults, FORMAT_RULE_METADATA,
			"%llu samples of %llu bytes of metadata end at %llu, past the allocation table at %llu",
			(ull)f->samples, (ull)f->itemsize, (ull)meta_end,
			(ull)f->table_off);
	f->first_page = align_up(meta_end, f->page_size);
	if (f->first_page > f->table_off ||
	    (f->table_off - f->first_page) % f->page_size)
		return add_fault(
			faults, FORMAT_RULE_PAGES,
			"no whole pages of %u bytes from %llu to the allocation table at %llu",
			f->page_size, (ull)f->first_page, (ull)f->table_off);
	return 0;
}

static int check_arrays(const struct format *f, struct faults *faults)
{
	int r = 0;

	for (unsigned i = 0; i < f->num_fields && f->samples; i++) {
		if (f->fields[i].array_size > f->page_size)
			r = add_fault(
				faults, FORMAT_RULE_ARRAY_SIZE,
				"field %u (%s): arrays of %llu bytes, pages of %u",
				i, f->fields[i].name,
				(ull)f->fields[i].array_size, f->page_size);
	}
	return r;
}

static int lay_out(struct format *f, uint32_t custom_size,
		   uint32_t custom_align, struct faults *faults)
{
	uint64_t size, meta_end;
	int r;

	place_fields(f, custom_size, custom_align);
	if (!mul_ok(f->samples, f->itemsize, &size) ||
	    !add_ok(f->meta_off, size, &meta_end) ||
	    meta_end > INT64_MAX - (uint64_t)UINT32_MAX)
		return add_fault(
			faults, FORMAT_RULE_METADATA,
			"header: %llu samples of %llu bytes of metadata",
			(ull)f->samples, (ull)f->itemsize);
	r = check_pages(f, meta_end, faults);
	return r ? r : check_arrays(f, faults);
}

int format_lay_out(struct format *f, uint32_t custom_size,
		   uint32_t custom_align, char why[FORMAT_WHY_SIZE])
{
	return lay_out(f, custom_size, custom_align,
		       &(struct faults){ .why = why });
}

int format_check_layout(struct format *f, const struct format_faults *faults)
{
	return lay_out(f, 0, 1, &(struct faults){ .each = faults });
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
