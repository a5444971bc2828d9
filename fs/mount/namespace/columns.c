/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns/: the files of samples/, in one directory per field, and an array per
 * field of numbers. A listing reads the metadata of many samples at once.
 */
#include "fs/mount/namespace/columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/data/dataset/value.h"
#include "fs/mount/namespace/samples.h"

enum { RECORDS_BYTES = 64 << 10 };

static struct ns_object in_columns(struct ns *ns,
				   const struct ns_object *object)
{
	(void)ns;
	return ns_make(object, NS_FIXED, 0, NS_COLUMNS);
}

/* --- columns/FIELD/ --- */

static int column_lookup(struct ns *ns, const struct ns_object *dir,
			 const char *name, struct ns_entry *out)
{
	struct dataset *ds = ns_dataset(ns, dir);
	const char *rest;
	uint64_t i;
	cleanup_free uint8_t *record = NULL;
	struct ns_object object;
	int r;

	if (!name_parse_number(name, ds->format.samples, &i, &rest))
		return -ENOENT;
	record = ns_value_record(ds, i, &r);
	if (r)
		return r;
	if (strcmp(rest,
		   ns_value_extension(&ds->format.fields[dir->part], record)))
		return -ENOENT;
	object = ns_make(dir, NS_VALUE, dir->part, i);
	return ns_value_entry(ns, &object, record, out);
}

/* Lists samples [first, first + n). Returns false if the listing is full.
   `records` is NULL if names do not need them. */
static bool emit_run(struct ns *ns, const struct ns_object *dir,
		     const struct ns_listing *listing, const uint8_t *records,
		     uint64_t range[2])
{
	const struct format *f = &ns_dataset(ns, dir)->format;
	const struct field *field = &f->fields[dir->part];
	unsigned digits = name_digits(f->samples);
	char text[NAME_DIGITS_MAX + 8];

	for (uint64_t i = range[0]; i < range[1]; i++) {
		const uint8_t *record =
			records ? records + (i - range[0]) * f->itemsize : NULL;
		struct ns_name name = { .name = text, .next = i + 1 };

		name.entry.object = ns_make(dir, NS_VALUE, dir->part, i);
		strcpy(text + name_number(text, i, digits),
		       ns_value_extension(field, record));
		if (!ns_value_emit(ns, listing, &name, record))
			return false;
	}
	return true;
}

static int column_list(struct ns *ns, const struct ns_object *dir,
		       const struct ns_listing *listing)
{
	const struct format *f = &ns_dataset(ns, dir)->format;
	bool needs =
		field_is_image(&f->fields[dir->part]) || listing->with_attr;
	uint64_t most =
		max_u64(1, min_u64(listing->hint, RECORDS_BYTES / f->itemsize));
	cleanup_free uint8_t *records =
		needs ? malloc(most * f->itemsize) : NULL;
	uint64_t range[2] = { listing->first, listing->first };
	int r = needs && !records ? -ENOMEM : 0;

	while (range[0] < f->samples && !r) {
		range[1] = range[0] + min_u64(most, f->samples - range[0]);
		if (needs)
			r = dataset_records(ns_dataset(ns, dir), range[0],
					    range[1] - range[0], records);
		if (!r && !emit_run(ns, dir, listing, records, range))
			break;
		range[0] = range[1];
	}
	return r;
}

/* --- columns/FIELD.npy --- */

static void array_close(struct ns_file *file)
{
	free(file->vfile);
}

static int array_attr(struct ns *ns, const struct ns_object *object,
		      struct ns_entry *out)
{
	struct column_file file;

	column_file_init(&file, ns_dataset(ns, object), object->part);
	out->size = file.vfile.size;
	return 0;
}

static int array_open(struct ns *ns, const struct ns_object *object,
		      struct ns_file *out)
{
	struct column_file *file = malloc(sizeof(*file));

	if (!file)
		return -ENOMEM;
	column_file_init(file, ns_dataset(ns, object), object->part);
	*out = (struct ns_file){ .vfile = &file->vfile, .close = array_close };
	return 0;
}

/* --- columns/ --- */

int ns_columns_lookup(struct ns *ns, const struct ns_object *dir,
		      const char *name, struct ns_entry *out)
{
	const struct format *f = &ns_dataset(ns, dir)->format;
	struct ns_object object;

	for (uint32_t i = 0; i < f->num_fields; i++) {
		const struct field *field = &f->fields[i];
		size_t size = strlen(field->stem);
		const char *rest = name + size;

		if (field->unusable || strncmp(name, field->stem, size))
			continue;
		if (!*rest)
			object = ns_make(dir, NS_COLUMN, i, 0);
		else if (field_is_scalar(field) && !strcmp(rest, ".npy"))
			object = ns_make(dir, NS_ARRAY, i, 0);
		else
			continue;
		return ns_attr(ns, &object, out);
	}
	return -ENOENT;
}

/* Two indexes per field: its directory, and its array if it has one. */
int ns_columns_list(struct ns *ns, const struct ns_object *dir,
		    const struct ns_listing *listing)
{
	const struct format *f = &ns_dataset(ns, dir)->format;
	char text[NS_NAME_MAX + 1];
	struct ns_object object;
	struct ns_entry entry;

	for (uint64_t i = listing->first; i < 2 * (uint64_t)f->num_fields;
	     i++) {
		const struct field *field = &f->fields[i / 2];
		bool array = i % 2;

		if (field->unusable || (array && !field_is_scalar(field)))
			continue;
		object = ns_make(dir, array ? NS_ARRAY : NS_COLUMN,
				 (uint32_t)(i / 2), 0);
		snprintf(text, sizeof(text), "%s%s", field->stem,
			 array ? ".npy" : "");
		if (ns_attr(ns, &object, &entry) ||
		    !ns_emit_entry(listing, i + 1, text, &entry))
			break;
	}
	return 0;
}

const struct ns_row ns_column_row = {
	.type = S_IFDIR,
	.lookup = column_lookup,
	.list = column_list,
	.parent = in_columns,
};

const struct ns_row ns_array_row = {
	.type = S_IFREG,
	.attr = array_attr,
	.open = array_open,
	.parent = in_columns,
};
