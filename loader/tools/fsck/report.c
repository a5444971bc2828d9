/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/fsck/report.h"

#include <stdarg.h>
#include <stdio.h>

#include "fs/base/util/name.h"

typedef unsigned long long ull;

enum { JSON_FINDINGS_MAX = 100000 };

/* Fields whose descriptor is damaged have a number but no name. */
static const char *name_of(const struct report *r, uint32_t field)
{
	const struct format *f = r->format;

	return f && f->fields && field < f->num_fields ? f->fields[field].stem
						       : "";
}

static void print_line(const struct report *r, const struct finding *f)
{
	progress_hide(r->progress);
	name_print(stdout, r->path);
	printf(": %s: ", check_row(f->check)->name);
	if (f->sample != NO_SAMPLE)
		printf("sample %llu%s", (ull)f->sample,
		       f->field == NO_FIELD ? ": " : " ");
	if (f->field != NO_FIELD) {
		printf("field ");
		name_print(stdout, name_of(r, f->field));
		printf(": ");
	}
	name_print(stdout, f->why);
	if (f->size)
		printf(" (%llu bytes at %llu)", (ull)f->size, (ull)f->off);
	else if (f->off)
		printf(" (at %llu)", (ull)f->off);
	putchar('\n');
}

static void add_json(const struct report *r, const struct finding *f)
{
	json_t *o;

	if (!r->json || json_array_size(r->json) >= JSON_FINDINGS_MAX)
		return;
	o = json_pack("{s:s}", "check", check_row(f->check)->name);
	if (f->sample != NO_SAMPLE)
		json_object_set_new(o, "sample",
				    json_integer((json_int_t)f->sample));
	if (f->field != NO_FIELD)
		json_object_set_new(o, "field",
				    json_string(name_of(r, f->field)));
	if (f->off || f->size) {
		json_object_set_new(o, "offset",
				    json_integer((json_int_t)f->off));
		json_object_set_new(o, "size",
				    json_integer((json_int_t)f->size));
	}
	json_object_set_new(o, "why", json_string(f->why));
	json_array_append_new(r->json, o);
}

void report_add(struct report *r, const struct finding *f)
{
	const struct check *row = check_row(f->check);
	uint64_t before = r->counts[f->check]++;

	if (row->severity == SEVERITY_SAMPLE && f->sample != NO_SAMPLE)
		bad_set_add(&r->bad, f->sample);
	add_json(r, f);
	if (r->is_silent || before >= r->limit)
		return;
	if (row->severity != SEVERITY_DETAIL || r->shows_details)
		print_line(r, f);
}

void report_file(struct report *r, enum check_id check, uint64_t off,
		 const char *format, ...)
{
	struct finding f = {
		.check = check,
		.sample = NO_SAMPLE,
		.field = NO_FIELD,
		.off = off,
	};
	va_list args;

	va_start(args, format);
	vsnprintf(f.why, sizeof(f.why), format, args);
	va_end(args);
	report_add(r, &f);
}

void report_rest(const struct report *r)
{
	for (int i = 0; i < NUM_CHECKS && !r->is_silent; i++) {
		const struct check *row = check_row((enum check_id)i);

		if (r->counts[i] <= r->limit ||
		    (row->severity == SEVERITY_DETAIL && !r->shows_details))
			continue;
		name_print(stdout, r->path);
		printf(": %s: %llu more\n", row->name,
		       (ull)(r->counts[i] - r->limit));
	}
}

uint64_t report_errors(const struct report *r)
{
	uint64_t n = 0;

	for (int i = 0; i < NUM_CHECKS; i++)
		n += check_is_error((enum check_id)i) ? r->counts[i] : 0;
	return n;
}

uint64_t report_notes(const struct report *r)
{
	uint64_t n = 0;

	for (int i = 0; i < NUM_CHECKS; i++)
		n += check_is_error((enum check_id)i) ? 0 : r->counts[i];
	return n;
}

bool report_can_repair(const struct report *r)
{
	for (int i = 0; i < NUM_CHECKS; i++) {
		if (r->counts[i] &&
		    check_row((enum check_id)i)->cure == CURE_NONE)
			return false;
	}
	return !r->bad.incomplete;
}

json_t *report_counts(const struct report *r)
{
	json_t *o = json_object();

	for (int i = 0; i < NUM_CHECKS; i++) {
		if (r->counts[i])
			json_object_set_new(
				o, check_row((enum check_id)i)->name,
				json_integer((json_int_t)r->counts[i]));
	}
	return o;
}
