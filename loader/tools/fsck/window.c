/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/fsck/window.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"

typedef unsigned long long ull;

int window_init(struct window *w, struct target *t, struct scan *scan,
		size_t memory)
{
	size_t each = sizeof(*w->entries) + sizeof(*w->values);

	*w = (struct window){ .t = t, .scan = scan, .room = memory / each };
	/* The names of each field are an entry, too. */
	w->entries =
		malloc((w->room + t->format.num_fields) * sizeof(*w->entries));
	w->values = malloc(w->room * sizeof(*w->values));
	return w->entries && w->values ? 0 : -ENOMEM;
}

void window_fini(struct window *w)
{
	free(w->entries);
	free(w->values);
}

/* --- loading --- */

/* The file cannot grow between two passes, but its bytes may change. */
static void add_entry(void *arg, const struct format_entry *e)
{
	struct window *w = arg;

	if (w->num_entries < w->room)
		w->entries[w->num_entries++] = *e;
}

static void add_value(void *arg, const struct value_span *v)
{
	struct window *w = arg;

	if (w->num_values < w->room)
		w->values[w->num_values++] = *v;
}

static void add_names(struct window *w)
{
	const struct format *f = &w->t->format;

	for (uint32_t i = 0; i < f->num_fields; i++) {
		const struct class_names_place *at = &f->fields[i].classes_at;

		if (at->size && at->off >= w->low && at->off < w->high &&
		    format_is_value_range(f, at->off, at->size))
			w->entries[w->num_entries++] =
				(struct format_entry){ NAMES_SAMPLE, at->off,
						       at->size };
	}
}

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_place(const void *a, const void *b)
{
	const struct format_entry *x = a, *y = b;
	int r = order(x->off, y->off);

	r = r ? r : order(x->sample, y->sample);
	return r ? r : order(x->size, y->size);
}

static int by_offset(const void *a, const void *b)
{
	const struct value_span *x = a, *y = b;
	int r = order(x->off, y->off);

	r = r ? r : order(x->sample, y->sample);
	return r ? r : order(x->field, y->field);
}

/* Tables are mostly in order, and then sorting would take the most time. */
static void sort(void *base, size_t n, size_t size,
		 int (*compare)(const void *, const void *))
{
	const char *at = base;

	for (size_t i = 1; i < n; i++, at += size) {
		if (compare(at, at + size) > 0) {
			qsort(base, n, size, compare);
			return;
		}
	}
}

/* --- overlaps --- */

static void report_overlap(struct window *w, const struct format_entry *e,
			   const struct format_entry *other)
{
	struct finding f = {
		.check = CHECK_ENTRY_OVERLAP,
		.sample = e->sample < w->t->format.samples ? e->sample
							   : NO_SAMPLE,
		.field = NO_FIELD,
		.off = e->off,
		.size = e->size,
	};

	if (other->sample == NAMES_SAMPLE)
		snprintf(f.why, sizeof(f.why),
			 "overlaps the class names, %llu bytes at %llu",
			 (ull)other->size, (ull)other->off);
	else
		snprintf(f.why, sizeof(f.why),
			 "overlaps sample %llu, %llu bytes at %llu",
			 (ull)other->sample, (ull)other->size, (ull)other->off);
	report_add(w->t->report, &f);
}

/*
 * If one entry lies inside another one, the outer one is wrong: the record of
 * the inner one shows whether that is right. Otherwise either may be wrong.
 */
static void check_overlap(struct window *w, const struct format_entry *e)
{
	uint64_t end = w->last.off + w->last.size;

	if (e->off < end) {
		if (!w->last_is_reported)
			report_overlap(w, &w->last, e);
		w->last_is_reported = true;
		if (e->off == w->last.off || e->off + e->size > end)
			report_overlap(w, e, &w->last);
	}
	if (e->off + e->size <= end)
		return;
	w->last_is_reported = e->off < end;
	w->last = *e;
}

/* --- values and entries --- */

static void report_value(struct window *w, enum check_id check,
			 const struct value_span *v, const char *why)
{
	struct finding f = {
		.check = check,
		.sample = v->sample,
		.field = v->field,
		.off = v->off,
		.size = v->size == VALUE_SIZE_IN_TABLE ? 0 : v->size,
	};

	snprintf(f.why, sizeof(f.why), "%s", why);
	report_add(w->t->report, &f);
}

static void report_unused(struct window *w, const struct format_entry *e)
{
	struct finding f = {
		.check = CHECK_ENTRY_UNUSED,
		.sample = NO_SAMPLE,
		.field = NO_FIELD,
		.off = e->off,
		.size = e->size,
	};

	/* The records of custom fields cannot be read. */
	if (e->sample == NAMES_SAMPLE || format_has_custom(&w->t->format))
		return;
	snprintf(f.why, sizeof(f.why),
		 "an entry of sample %llu that no value uses", (ull)e->sample);
	report_add(w->t->report, &f);
}

static bool is_same_size(const struct value_span *v,
			 const struct format_entry *e)
{
	return v->size == VALUE_SIZE_IN_TABLE || v->size == e->size;
}

/* Checks a value against the entry at its offset. Returns whether they agree;
   then the value has the entry's size. */
static bool is_match(struct window *w, struct value_span *v,
		     const struct format_entry *e)
{
	/* The entry alone is wrong: that was reported. */
	if (v->sample != e->sample && e->sample < w->t->format.samples) {
		char why[FINDING_WHY_SIZE];

		snprintf(why, sizeof(why),
			 "the entry at its offset is of sample %llu",
			 (ull)e->sample);
		report_value(w, CHECK_VALUE_SAMPLE, v, why);
		return false;
	}
	if (!is_same_size(v, e)) {
		char why[FINDING_WHY_SIZE];

		snprintf(why, sizeof(why), "its entry has %llu bytes",
			 (ull)e->size);
		report_value(w, CHECK_VALUE_SIZE, v, why);
		return false;
	}
	v->size = e->size;
	return true;
}

/* Returns the end of the entries that begin at `off`, from entry i on. */
static size_t entries_at(const struct window *w, size_t i, uint64_t off)
{
	while (i < w->num_entries && w->entries[i].off == off)
		i++;
	return i;
}

/* The entry of [first, end) for a value: that of its sample, else the first.
   Both are in the order of samples, so the search continues at *at. */
static const struct format_entry *entry_for(const struct window *w,
					    const struct value_span *v,
					    size_t first, size_t end,
					    size_t *at)
{
	while (*at < end && w->entries[*at].sample < v->sample)
		++*at;
	if (*at < end && w->entries[*at].sample == v->sample)
		return &w->entries[*at];
	return &w->entries[first];
}

/* Returns whether a neighbor in [first, end) is of the same sample. */
static bool is_repeated(const struct window *w, size_t i, size_t first,
			size_t end)
{
	const struct value_span *v = &w->values[i];

	return (i > first && v[-1].sample == v->sample) ||
	       (i + 1 < end && v[1].sample == v->sample);
}

/* Matches the values at one offset, [first, end), with the entries [from, to).
   Moves those that have an entry to w->values[*kept]. */
static void match_offset(struct window *w, size_t first, size_t end,
			 size_t from, size_t to, size_t *kept)
{
	size_t at = from;

	for (size_t i = first; i < end; i++) {
		struct value_span v = w->values[i];
		bool is_twice = is_repeated(w, i, first, end);

		if (from == to) {
			report_value(w, CHECK_VALUE_ENTRY, &v,
				     "no entry has its offset");
			continue;
		}
		if (is_twice)
			report_value(
				w, CHECK_VALUE_TWICE, &v,
				"another value of the sample has its offset");
		if (is_match(w, &v, entry_for(w, &v, from, to, &at)))
			w->values[(*kept)++] = v;
	}
}

static void match(struct window *w)
{
	size_t entry = 0, kept = 0, end, to;

	for (size_t i = 0; i < w->num_values; i = end) {
		uint64_t off = w->values[i].off;

		for (end = i; end < w->num_values && w->values[end].off == off;)
			end++;
		for (; entry < w->num_entries && w->entries[entry].off < off;
		     entry++)
			report_unused(w, &w->entries[entry]);
		to = entries_at(w, entry, off);
		match_offset(w, i, end, entry, to, &kept);
		entry = to;
	}
	for (; entry < w->num_entries; entry++)
		report_unused(w, &w->entries[entry]);
	w->num_values = kept;
}

int window_load(struct window *w, uint64_t low, uint64_t high)
{
	const struct scan_fns fns = { add_entry, add_value, w };
	int r;

	w->low = low;
	w->high = high;
	w->num_entries = w->num_values = 0;
	r = scan_range(w->scan, low, high, &fns);
	if (r)
		return r;
	add_names(w);
	sort(w->entries, w->num_entries, sizeof(*w->entries), by_place);
	sort(w->values, w->num_values, sizeof(*w->values), by_offset);
	for (size_t i = 0; i < w->num_entries; i++)
		check_overlap(w, &w->entries[i]);
	if (w->t->format.itemsize)
		match(w);
	return 0;
}

/* --- too many at one offset --- */

static void crowd_entry(void *arg, const struct format_entry *e)
{
	struct window *w = arg;

	report_overlap(w, e, &w->last);
	if (e->size > w->last.size || e->off > w->last.off)
		w->last = *e;
	w->last_is_reported = true;
}

static void crowd_value(void *arg, const struct value_span *v)
{
	report_value(arg, CHECK_VALUE_TWICE, v,
		     "many other values have the same offset");
}

int window_crowd(struct window *w, uint64_t off)
{
	const struct scan_fns fns = { crowd_entry, crowd_value, w };

	w->num_entries = w->num_values = 0;
	w->low = off;
	w->high = off + 1;
	return scan_range(w->scan, off, off + 1, &fns);
}
