/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/fsck/head.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/data/dataset/custom_field.h"
#include "fs/data/dataset/field_names.h"

typedef unsigned long long ull;

enum { ARGS_SIZE = FORMAT_DESCRIPTOR_SIZE - FORMAT_ARGS_OFF };

static void report_fault(void *arg, enum format_rule rule, const char *why)
{
	report_file(arg, check_of_rule(rule), 0, "%s", why);
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	return !size || (!bytes[0] && !memcmp(bytes, bytes + 1, size - 1));
}

static void report_field(struct target *t, enum check_id check, uint32_t field,
			 size_t at, const char *why)
{
	struct finding f = {
		.check = check,
		.field = field,
		.sample = NO_SAMPLE,
		.off = FORMAT_HEADER_SIZE +
		       (uint64_t)field * FORMAT_DESCRIPTOR_SIZE + at,
	};

	strncpy(f.why, why, sizeof(f.why) - 1);
	report_add(t->report, &f);
}

/* Bytes that no reader uses. Class names have a mark in front, so other bytes
   there may be names whose mark is damaged. */
static void check_padding(struct target *t, uint32_t i, const uint8_t *d)
{
	const struct field *f = &t->format.fields[i];
	const uint8_t *args = d + FORMAT_ARGS_OFF;
	size_t used = strnlen((const char *)d + 1, FORMAT_NAME_SIZE);

	if (!is_zero(d + 1 + used, FORMAT_NAME_SIZE - used))
		report_field(t, CHECK_NAME_PADDING, i, 1 + used,
			     "bytes that are not zero follow the name");
	if (field_is_array(f)) {
		used = field_arguments_size(args);
		if (!is_zero(args + used, ARGS_SIZE - used))
			report_field(
				t, CHECK_ARGUMENT_PADDING, i,
				FORMAT_ARGS_OFF + used,
				"bytes that are not zero follow the arguments");
	} else if (f->type->column != COLUMN_RECORD && !f->classes_at.size &&
		   !is_zero(args, ARGS_SIZE)) {
		report_field(
			t, CHECK_UNUSED_ARGUMENTS, i, FORMAT_ARGS_OFF,
			"arguments that this type does not have, or class names without their mark");
	}
}

static void check_name(struct target *t, uint32_t i)
{
	const struct field *fields = t->format.fields;

	for (uint32_t k = 0; k < i; k++) {
		if (strcmp(fields[k].name, fields[i].name))
			continue;
		report_field(
			t, CHECK_NAME_TWICE, i, 1,
			"another field has this name, so FFCV reads wrong values");
		return;
	}
}

/* --- names of classes --- */

static void report_names(struct target *t, uint32_t i, const char *why)
{
	report_field(t, CHECK_CLASS_NAMES, i, FORMAT_ARGS_OFF, why);
}

/* The bytes after names that lie in the arguments themselves. */
static void check_names_padding(struct target *t, uint32_t i, const uint8_t *d)
{
	const struct class_names_place *at = &t->format.fields[i].classes_at;
	uint64_t args = FORMAT_HEADER_SIZE +
			(uint64_t)i * FORMAT_DESCRIPTOR_SIZE + FORMAT_ARGS_OFF;
	size_t used = CLASS_NAMES_HEAD_SIZE;

	if (at->off == args + used && at->size <= ARGS_SIZE - used)
		used += at->size;
	if (!is_zero(d + FORMAT_ARGS_OFF + used, ARGS_SIZE - used))
		report_field(t, CHECK_ARGUMENT_PADDING, i,
			     FORMAT_ARGS_OFF + used,
			     "bytes that are not zero follow the class names");
}

static bool is_names_place(const struct target *t, uint32_t i)
{
	const struct format *f = &t->format;
	const struct class_names_place *at = &f->fields[i].classes_at;
	uint64_t args = FORMAT_HEADER_SIZE +
			(uint64_t)i * FORMAT_DESCRIPTOR_SIZE + FORMAT_ARGS_OFF;

	if (at->off < f->meta_off)
		return at->off == args + CLASS_NAMES_HEAD_SIZE &&
		       at->size <= ARGS_SIZE - CLASS_NAMES_HEAD_SIZE;
	return at->off >= f->first_page &&
	       range_ok(at->off, at->size, f->table_off);
}

static int check_names(struct target *t, uint32_t i, const uint8_t *d,
		       uint64_t *room)
{
	const struct class_names_place *at = &t->format.fields[i].classes_at;
	struct class_names *names;
	char *text;
	int r;

	if (!at->size)
		return 0;
	check_names_padding(t, i, d);
	if (at->size > *room) {
		report_names(t, i, "class names of more than 1 MiB");
		return 0;
	}
	if (!is_names_place(t, i)) {
		report_names(t, i,
			     "class names outside the pages and the arguments");
		return 0;
	}
	*room -= at->size;
	text = malloc(at->size);
	r = text ? target_read(t, text, at->size, at->off) : -ENOMEM;
	if (r)
		free(text);
	else if (class_names_split(text, at, &names))
		class_names_free(names);
	else
		report_names(t, i, "class names that are damaged");
	return r;
}

/* --- the head --- */

/* A table with too many entries is no reason to stop. */
static bool is_fatal(const struct report *r)
{
	for (int i = 0; i <= CHECK_PAGES; i++) {
		if (r->counts[i])
			return true;
	}
	return false;
}

static int check_fields(struct target *t, const uint8_t *descriptors)
{
	const struct format_faults faults = { report_fault, t->report };
	struct format *f = &t->format;
	uint64_t room = CLASS_NAMES_SIZE_MAX;
	int r = format_check_fields(f, descriptors, &faults);

	if (is_fatal(t->report) || (r && r != -BETON_ECORRUPT))
		return r;
	r = name_fields(f->fields, f->num_fields);
	if (r)
		return r;
	if (format_has_custom(f))
		r = custom_infer(t->source, f, NULL);
	else
		r = format_check_layout(f, &faults);
	for (uint32_t i = 0; i < f->num_fields && !r; i++) {
		const uint8_t *d =
			descriptors + (size_t)i * FORMAT_DESCRIPTOR_SIZE;

		check_padding(t, i, d);
		check_name(t, i);
		r = check_names(t, i, d, &room);
		if (f->fields[i].type->column == COLUMN_RECORD)
			report_field(
				t, CHECK_CUSTOM, i, 0,
				f->itemsize
					? "a custom field: its values are not checked"
					: "a custom field of unknown size: no value of the file is checked");
	}
	return r;
}

static int check_descriptors(struct target *t)
{
	const size_t size = t->format.meta_off - FORMAT_HEADER_SIZE;
	cleanup_free uint8_t *descriptors = malloc(size);
	int r = descriptors
			? target_read(t, descriptors, size, FORMAT_HEADER_SIZE)
			: -ENOMEM;

	return r ? r : check_fields(t, descriptors);
}

int head_check(struct target *t)
{
	const struct format_faults faults = { report_fault, t->report };
	uint64_t size = (uint64_t)t->source->stat.st_size;
	uint8_t header[FORMAT_HEADER_SIZE];
	int r;

	if (size < FORMAT_HEADER_SIZE) {
		report_file(t->report, CHECK_VERSION, 0,
			    "not a .beton file: %llu bytes", (ull)size);
		return -BETON_ECORRUPT;
	}
	r = target_read(t, header, sizeof(header), 0);
	if (!r)
		r = format_check_header(&t->format, size, header, &faults);
	r = r ? r : check_descriptors(t);
	if (is_fatal(t->report))
		return -BETON_ECORRUPT;
	return r;
}
