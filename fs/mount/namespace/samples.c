/* SPDX-License-Identifier: Apache-2.0 */
/* samples/, and the values, which are files there and in columns/. */
#include "fs/mount/namespace/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/data/dataset/value.h"

static struct ns_object in_samples(struct ns *ns,
				   const struct ns_object *object)
{
	(void)ns;
	return ns_make(object, NS_FIXED, 0, NS_SAMPLES);
}

/* --- values --- */

const char *ns_value_extension(const struct field *f, const uint8_t *record)
{
	struct value v;
	const char *why = NULL;

	if (!field_is_image(f))
		return f->type->extension;
	if (f->type->view(f, record + f->meta_off, &v, &why))
		return "";
	return field_extension(f, v.mode);
}

int ns_value_entry(struct ns *ns, const struct ns_object *object,
		   const uint8_t *record, struct ns_entry *out)
{
	struct dataset *ds = ns_dataset(ns, object);
	struct value v;
	int r = dataset_value_alone(ds, object->part, object->index, record,
				    &v);

	if (r)
		return r;
	*out = (struct ns_entry){
		.object = *object,
		.size = sample_file_size(ds, object->part, &v),
	};
	return 0;
}

static int value_attr(struct ns *ns, const struct ns_object *object,
		      struct ns_entry *out)
{
	struct dataset *ds = ns_dataset(ns, object);
	struct value v;
	int r = dataset_value_at(ds, object->part, object->index, &v);

	if (!r)
		out->size = sample_file_size(ds, object->part, &v);
	return r;
}

static void free_file(struct ns_file *file)
{
	free(file->vfile);
}

static int value_open(struct ns *ns, const struct ns_object *object,
		      struct ns_file *out)
{
	struct dataset *ds = ns_dataset(ns, object);
	struct sample_file *file;
	struct value v;
	int r = dataset_value_at(ds, object->part, object->index, &v);

	if (r)
		return r;
	file = malloc(sizeof(*file));
	if (!file)
		return -ENOMEM;
	sample_file_init(file, ds, object->part, &v);
	*out = (struct ns_file){ .vfile = &file->vfile, .close = free_file };
	return 0;
}

static bool is_at_hand(const struct ns *ns, const struct ns_object *object)
{
	return dataset_is_at_hand(ns_dataset(ns, object), object->index);
}

static struct ns_object value_parent(struct ns *ns,
				     const struct ns_object *object)
{
	(void)ns;
	return ns_make(object, NS_SAMPLE, 0, object->index);
}

uint8_t *ns_value_record(struct dataset *ds, uint64_t sample, int *r)
{
	uint8_t *record = malloc(ds->format.itemsize + 1);

	*r = record ? dataset_records(ds, sample, 1, record) : -ENOMEM;
	return record;
}

bool ns_value_emit(struct ns *ns, const struct ns_listing *listing,
		   const struct ns_name *name, const uint8_t *record)
{
	const struct ns_object *object = &name->entry.object;
	struct ns_entry entry;

	if (listing->with_attr && record &&
	    !ns_value_entry(ns, object, record, &entry))
		return ns_emit_entry(listing, name->next, name->name, &entry);
	return ns_emit(listing, name->next, name->name, object);
}

/* --- samples/NNNNNN/ --- */

static int sample_lookup(struct ns *ns, const struct ns_object *dir,
			 const char *name, struct ns_entry *out)
{
	const struct format *f = &ns_dataset(ns, dir)->format;
	int r = 0;
	cleanup_free uint8_t *record = NULL;
	struct ns_object object;

	for (uint32_t i = 0; i < f->num_fields; i++) {
		const char *stem = f->fields[i].stem;

		if (f->fields[i].unusable || strncmp(name, stem, strlen(stem)))
			continue;
		if (!record)
			record = ns_value_record(ns_dataset(ns, dir),
						 dir->index, &r);
		if (r)
			return r;
		if (strcmp(name + strlen(stem),
			   ns_value_extension(&f->fields[i], record)))
			continue;
		object = ns_make(dir, NS_VALUE, i, dir->index);
		return ns_value_entry(ns, &object, record, out);
	}
	return -ENOENT;
}

static int sample_list(struct ns *ns, const struct ns_object *dir,
		       const struct ns_listing *listing)
{
	const struct format *f = &ns_dataset(ns, dir)->format;
	char text[NS_NAME_MAX + 1];
	int r;
	cleanup_free uint8_t *record = NULL;

	if (!f->itemsize)
		return 0;
	record = ns_value_record(ns_dataset(ns, dir), dir->index, &r);
	if (r)
		return r;
	for (uint64_t i = listing->first; i < f->num_fields; i++) {
		const struct field *field = &f->fields[i];
		struct ns_name name = { .name = text, .next = i + 1 };

		if (field->unusable)
			continue;
		name.entry.object =
			ns_make(dir, NS_VALUE, (uint32_t)i, dir->index);
		snprintf(text, sizeof(text), "%s%s", field->stem,
			 ns_value_extension(field, record));
		if (!ns_value_emit(ns, listing, &name, record))
			break;
	}
	return 0;
}

/* --- samples/ --- */

int ns_samples_lookup(struct ns *ns, const struct ns_object *dir,
		      const char *name, struct ns_entry *out)
{
	const char *rest;
	uint64_t i;

	if (!name_parse_number(name, ns_dataset(ns, dir)->format.samples, &i,
			       &rest) ||
	    *rest)
		return -ENOENT;
	out->object = ns_make(dir, NS_SAMPLE, 0, i);
	return 0;
}

int ns_samples_list(struct ns *ns, const struct ns_object *dir,
		    const struct ns_listing *listing)
{
	uint64_t n = ns_dataset(ns, dir)->format.samples;
	unsigned digits = name_digits(n);
	char text[NAME_DIGITS_MAX + 1];
	struct ns_entry entry = { .size = 0 };

	for (uint64_t i = listing->first; i < n; i++) {
		entry.object = ns_make(dir, NS_SAMPLE, 0, i);
		name_number(text, i, digits);
		if (!ns_emit_entry(listing, i + 1, text, &entry))
			break;
	}
	return 0;
}

const struct ns_row ns_sample_row = {
	.type = S_IFDIR,
	.lookup = sample_lookup,
	.list = sample_list,
	.is_at_hand = is_at_hand,
	.parent = in_samples,
};

const struct ns_row ns_value_row = {
	.type = S_IFREG,
	.attr = value_attr,
	.open = value_open,
	.is_at_hand = is_at_hand,
	.parent = value_parent,
};
