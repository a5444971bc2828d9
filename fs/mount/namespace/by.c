/* SPDX-License-Identifier: Apache-2.0 */
/*
 * by/: the files of one column, in a directory per value of an int field. The
 * first lookup below by/FIELD/ groups the samples (fs/data/dataset/group.h),
 * and the groups stay in memory while there is room. Values are numbered in
 * ascending order, so a directory keeps its inode number when its groups are
 * rebuilt.
 */
#include "fs/mount/namespace/by.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/memory/memo.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/data/dataset/group.h"
#include "fs/data/dataset/value.h"
#include "fs/mount/namespace/samples.h"

enum {
	/* Reading one page costs as much as reading one record of it. */
	WINDOW_BYTES = 4096,
	/* Samples whose records are requested before they are read. */
	PREFETCHED = 256,
	VALUE_NAME_SIZE = NAME_MAX + 1,
};

#define KEPT_BYTES ((uint64_t)1 << 30)

/* --- groups --- */

/* The column that one group reads. */
struct by_column {
	struct dataset *ds;
	uint32_t field;
};

static int make_group(const void *arg, void **thing, uint64_t *bytes)
{
	const struct by_column *column = arg;
	struct group *group;
	int r = group_open(column->ds, column->field, &group);

	if (r)
		return r;
	*thing = group;
	*bytes = group_bytes(group);
	return 0;
}

static void free_group(void *thing)
{
	group_close(thing);
}

static uint64_t group_key(const struct ns_object *dir)
{
	const struct ns_object field = ns_make(dir, NS_BY_FIELD, dir->part, 0);

	return ns_ino(&field);
}

/* Returns the group of by/FIELD/ or one of its directories. */
static int group_get(struct ns *ns, const struct ns_object *dir,
		     const struct group **out)
{
	const struct by_column column = { ns_dataset(ns, dir), dir->part };
	void *thing;
	int r = memo_get(ns->groups, group_key(dir), &column, &thing);

	if (r)
		return r;
	*out = thing;
	return 0;
}

static void group_put(struct ns *ns, const struct ns_object *dir)
{
	memo_put(ns->groups, group_key(dir));
}

/* Returns the group of by/FIELD/VALUE/. If the dataset was modified, it may
   have fewer values than at the lookup of the directory. */
static int group_get_value(struct ns *ns, const struct ns_object *dir,
			   const struct group **out)
{
	int r = group_get(ns, dir, out);

	if (!r && dir->index >= (*out)->num) {
		group_put(ns, dir);
		r = -ESTALE;
	}
	return r;
}

static uint64_t need_for_group(const void *arg)
{
	return group_need(((const struct by_column *)arg)->ds);
}

static bool reclaim_groups(void *arg, uint64_t bytes)
{
	return memo_reclaim(arg, bytes);
}

int ns_groups_open(struct ns *ns)
{
	struct budget *budget = engine_budget(ns->engine);
	const struct memo_options options = {
		.bytes_max = KEPT_BYTES,
		.budget = budget,
		.need = need_for_group,
		.make = make_group,
		.free = free_group,
	};
	int r = memo_open(&options, &ns->groups);

	if (!r)
		budget_add_reclaimer(budget, reclaim_groups, ns->groups);
	return r;
}

/* --- by/FIELD/VALUE/ --- */

static struct ns_object in_field(struct ns *ns, const struct ns_object *object)
{
	(void)ns;
	return ns_make(object, NS_BY_FIELD, object->part, 0);
}

/* The column whose files the tree shows: that of the first image field, or of
   the first field with files. The tree's own field has files, so there is one.
 */
static uint32_t shown_field(const struct format *f)
{
	uint32_t shown = f->num_fields;

	for (uint32_t i = 0; i < f->num_fields; i++) {
		if (f->fields[i].unusable)
			continue;
		if (field_is_image(&f->fields[i]))
			return i;
		if (shown == f->num_fields)
			shown = i;
	}
	return shown;
}

static int value_lookup(struct ns *ns, const struct ns_object *dir,
			const char *name, struct ns_entry *out)
{
	const struct format *f = &ns_dataset(ns, dir)->format;
	const struct ns_object column =
		ns_make(dir, NS_COLUMN, shown_field(f), 0);
	const struct group *group;
	const char *rest;
	uint64_t sample;
	bool has;
	int r;

	if (!name_parse_number(name, f->samples, &sample, &rest))
		return -ENOENT;
	r = group_get_value(ns, dir, &group);
	if (r)
		return r;
	has = group_has(group, dir->index, sample);
	group_put(ns, dir);
	return has ? ns_lookup(ns, &column, name, 0, out) : -ENOENT;
}

/* The records of the last read. */
struct by_window {
	uint8_t *records;
	uint64_t first;
	uint64_t n;
	uint64_t n_max;
};

static int window_record(struct dataset *ds, struct by_window *w,
			 uint64_t sample, const uint8_t **out)
{
	int r;

	if (sample < w->first || sample - w->first >= w->n) {
		w->n = 0;
		w->first = sample;
		r = dataset_records(
			ds, sample,
			min_u64(w->n_max, ds->format.samples - sample),
			w->records);
		if (r)
			return r;
		w->n = min_u64(w->n_max, ds->format.samples - sample);
	}
	*out = w->records + (sample - w->first) * ds->format.itemsize;
	return 0;
}

/* Requests the records of some samples from `first` on. */
static void prefetch_samples(struct dataset *ds, const uint32_t *samples,
			     uint64_t first, uint64_t n)
{
	uint64_t some[PREFETCHED];
	size_t k = 0;

	for (; k < PREFETCHED && first + k < n; k++)
		some[k] = samples[first + k];
	dataset_prefetch_records(ds, some, k);
}

/* Lists samples of a directory. `w` has no memory if names need no records. */
static int list_samples(struct ns *ns, const struct ns_object *dir,
			const struct ns_listing *listing,
			const struct group *group, struct by_window *w)
{
	struct dataset *ds = ns_dataset(ns, dir);
	uint32_t shown = shown_field(&ds->format);
	const uint32_t *samples = group->samples + group->starts[dir->index];
	uint64_t n = group->starts[dir->index + 1] - group->starts[dir->index];
	unsigned digits = name_digits(ds->format.samples);
	char text[NAME_DIGITS_MAX + 8];
	const uint8_t *record = NULL;
	int r = 0;

	for (uint64_t i = listing->first; i < n && !r; i++) {
		struct ns_name name = { .name = text, .next = i + 1 };

		if (w->records && (i - listing->first) % PREFETCHED == 0)
			prefetch_samples(ds, samples, i, n);
		if (w->records)
			r = window_record(ds, w, samples[i], &record);
		if (r)
			break;
		name.entry.object = ns_make(dir, NS_VALUE, shown, samples[i]);
		strcpy(text + name_number(text, samples[i], digits),
		       ns_value_extension(&ds->format.fields[shown], record));
		if (!ns_value_emit(ns, listing, &name, record))
			break;
	}
	return r;
}

static int value_list(struct ns *ns, const struct ns_object *dir,
		      const struct ns_listing *listing)
{
	const struct format *f = &ns_dataset(ns, dir)->format;
	bool needs = listing->with_attr ||
		     field_is_image(&f->fields[shown_field(f)]);
	struct by_window w = {
		.n_max = max_u64(1, WINDOW_BYTES / f->itemsize),
	};
	cleanup_free uint8_t *records =
		needs ? malloc(w.n_max * f->itemsize) : NULL;
	const struct group *group;
	int r;

	if (needs && !records)
		return -ENOMEM;
	w.records = records;
	r = group_get_value(ns, dir, &group);
	if (r)
		return r;
	r = list_samples(ns, dir, listing, group, &w);
	group_put(ns, dir);
	return r;
}

/* --- by/FIELD/ --- */

static struct ns_object in_by(struct ns *ns, const struct ns_object *object)
{
	(void)ns;
	return ns_make(object, NS_FIXED, 0, NS_BY);
}

static uint64_t magnitude_of(int64_t value)
{
	return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

/* The number of digits of the longest value; names are padded to it. */
static unsigned group_digits(const struct group *group)
{
	uint64_t longest = 0;
	unsigned digits = 1;

	if (group->num)
		longest = max_u64(magnitude_of(group->values[0]),
				  magnitude_of(group->values[group->num - 1]));
	for (; longest >= 10; longest /= 10)
		digits++;
	return digits;
}

/* "207", "-01": a name reads as its number. Names of non-negative values sort
   as numbers, after the names of negative ones. Returns the length. */
static size_t plain_name(char out[VALUE_NAME_SIZE], int64_t value,
			 unsigned digits)
{
	char number[NAME_DIGITS_MAX + 1];

	name_number(number, magnitude_of(value), digits);
	return (size_t)snprintf(out, VALUE_NAME_SIZE, "%s%s",
				value < 0 ? "-" : "", number);
}

/* "207-golden_retriever". A long name is cut between two characters. */
static void add_class(char out[VALUE_NAME_SIZE], size_t n, const char *class)
{
	size_t end = n + 1 + strlen(class);

	snprintf(out + n, VALUE_NAME_SIZE - n, "-%s", class);
	for (char *c = out + n; (c = strchr(c, '/')); c++)
		*c = '_';
	if (end < VALUE_NAME_SIZE)
		return;
	for (end = NAME_MAX; (class[end - n - 1] & 0xc0) == 0x80; end--)
		;
	out[end] = '\0';
}

/* Writes the name of a directory in listings. */
static void value_name(const struct ns *ns, const struct ns_object *dir,
		       char out[VALUE_NAME_SIZE], int64_t value,
		       unsigned digits)
{
	const struct field *f = &ns_dataset(ns, dir)->format.fields[dir->part];
	const char *class = class_name(f->classes, value);
	size_t n = plain_name(out, value, digits);

	if (class && ns->names_classes)
		add_class(out, n, class);
}

static bool parse_value(const char *name, unsigned digits, int64_t *out)
{
	bool is_negative = *name == '-';
	uint64_t v = 0;

	name += is_negative;
	if (strlen(name) != digits)
		return false;
	for (; *name; name++) {
		if (!isdigit((unsigned char)*name) || !mul_ok(v, 10, &v) ||
		    !add_ok(v, (uint64_t)(*name - '0'), &v))
			return false;
	}
	if (v > (uint64_t)INT64_MAX + is_negative || (is_negative && !v))
		return false;
	*out = (int64_t)(is_negative ? -v : v);
	return true;
}

/* A directory also has its plain name, even if listings show a longer one. */
static bool find_name(const struct ns *ns, const struct ns_object *dir,
		      const struct group *group, const char *name,
		      uint64_t *ordinal)
{
	unsigned digits = group_digits(group);
	char plain[NAME_DIGITS_MAX + 1], listed[VALUE_NAME_SIZE];
	int64_t value;

	if (parse_value(name, digits, &value))
		return group_find(group, value, ordinal);
	snprintf(plain, sizeof(plain), "%.*s", (int)digits, name);
	if (!ns->names_classes || !parse_value(plain, digits, &value))
		return false;
	value_name(ns, dir, listed, value, digits);
	return !strcmp(name, listed) && group_find(group, value, ordinal);
}

static int field_lookup(struct ns *ns, const struct ns_object *dir,
			const char *name, struct ns_entry *out)
{
	const struct group *group;
	uint64_t ordinal;
	bool has;
	int r = group_get(ns, dir, &group);

	if (r)
		return r;
	has = find_name(ns, dir, group, name, &ordinal);
	group_put(ns, dir);
	if (!has)
		return -ENOENT;
	out->object = ns_make(dir, NS_BY_VALUE, dir->part, ordinal);
	return 0;
}

static int field_list(struct ns *ns, const struct ns_object *dir,
		      const struct ns_listing *listing)
{
	const struct group *group;
	char text[VALUE_NAME_SIZE];
	struct ns_entry entry = { .size = 0 };
	unsigned digits;
	int r = group_get(ns, dir, &group);

	if (r)
		return r;
	digits = group_digits(group);
	for (uint64_t i = listing->first; i < group->num; i++) {
		entry.object = ns_make(dir, NS_BY_VALUE, dir->part, i);
		value_name(ns, dir, text, group->values[i], digits);
		if (!ns_emit_entry(listing, i + 1, text, &entry))
			break;
	}
	group_put(ns, dir);
	return 0;
}

/* --- by/ --- */

static bool has_tree(const struct field *f)
{
	return field_is_integer(f) && !f->unusable;
}

int ns_by_lookup(struct ns *ns, const struct ns_object *dir, const char *name,
		 struct ns_entry *out)
{
	const struct format *f = &ns_dataset(ns, dir)->format;

	for (uint32_t i = 0; i < f->num_fields; i++) {
		if (!has_tree(&f->fields[i]) || strcmp(name, f->fields[i].stem))
			continue;
		out->object = ns_make(dir, NS_BY_FIELD, i, 0);
		return 0;
	}
	return -ENOENT;
}

int ns_by_list(struct ns *ns, const struct ns_object *dir,
	       const struct ns_listing *listing)
{
	const struct format *f = &ns_dataset(ns, dir)->format;
	struct ns_entry entry = { .size = 0 };

	for (uint64_t i = listing->first; i < f->num_fields; i++) {
		if (!has_tree(&f->fields[i]))
			continue;
		entry.object = ns_make(dir, NS_BY_FIELD, (uint32_t)i, 0);
		if (!ns_emit_entry(listing, i + 1, f->fields[i].stem, &entry))
			break;
	}
	return 0;
}

const struct ns_row ns_by_field_row = {
	.type = S_IFDIR,
	.lookup = field_lookup,
	.list = field_list,
	.parent = in_by,
};

const struct ns_row ns_by_value_row = {
	.type = S_IFDIR,
	.lookup = value_lookup,
	.list = value_list,
	.parent = in_field,
};
