/* SPDX-License-Identifier: Apache-2.0 */
/* batches/: a lookup finds any SPEC; no listing shows it first. */
#include "fs/namespace/batches.h"

#include <string.h>

#include "fs/namespace/streams.h"
#include "fs/util/name.h"

static const char default_name[] = "default";
static const char suffix[] = ".batch";

/* --- batches/, where SPEC number 0 is the default --- */

static int link_attr(struct ns *ns, const struct ns_object *object,
		     struct ns_entry *out)
{
	const struct ns_spec *spec = ns_spec_of(ns, object);

	if (!spec)
		return -ESTALE;
	out->size = strlen(spec->text);
	return 0;
}

static int link_read(struct ns *ns, const struct ns_object *object,
		     char out[SPEC_TEXT_MAX])
{
	const struct ns_spec *spec = ns_spec_of(ns, object);

	if (!spec)
		return -ESTALE;
	strcpy(out, spec->text);
	return 0;
}

int ns_batches_lookup(struct ns *ns, const struct ns_object *dir,
		      const char *name, struct ns_entry *out)
{
	struct ns_object object = ns_make(dir, NS_SPEC_LINK, 0, 0);
	const struct ns_spec *spec;
	int r;

	if (!strcmp(name, default_name))
		return ns_attr(ns, &object, out);
	r = ns_spec_named(ns, dir, name, &spec);
	if (r)
		return r == -EINVAL ? -ENOENT : r;
	object.part = spec->number;
	if (!strcmp(name, spec->text))
		object.kind = NS_SPEC;
	return ns_attr(ns, &object, out);
}

int ns_batches_list(struct ns *ns, const struct ns_object *dir,
		    const struct ns_listing *listing)
{
	struct ns_object object = ns_make(dir, NS_SPEC_LINK, 0, 0);
	struct ns_entry entry;
	int r = ns_attr(ns, &object, &entry);

	if (!r && listing->first == 0)
		ns_emit_entry(listing, 1, default_name, &entry);
	return r;
}

/* --- batches/SPEC/, which lists nothing: there are 2^64 epochs --- */

static int spec_lookup(struct ns *ns, const struct ns_object *dir,
		       const char *name, struct ns_entry *out)
{
	const struct ns_spec *spec = ns_spec_of(ns, dir);
	const struct ns_epoch *named;
	uint64_t epoch;
	int r;

	if (!spec)
		return -ESTALE;
	if (!name_parse_u64(name, strlen(name), &epoch) ||
	    epoch > SPEC_EPOCH_MAX)
		return -ENOENT;
	r = ns_epoch_named(ns, dir, spec, epoch, &named);
	if (!r)
		out->object = ns_make(dir, NS_EPOCH, named->number, 0);
	return r;
}

static int spec_list(struct ns *ns, const struct ns_object *dir,
		     const struct ns_listing *listing)
{
	(void)ns;
	(void)dir;
	(void)listing;
	return 0;
}

static struct ns_object in_batches(struct ns *ns,
				   const struct ns_object *object)
{
	(void)ns;
	return ns_make(object, NS_FIXED, 0, NS_BATCHES);
}

/* --- batches/SPEC/EPOCH/ --- */

/* Reads no layout. */
static int batch_named(struct ns *ns, const struct ns_object *dir,
		       const char *name, struct ns_object *out)
{
	const struct ns_epoch *epoch = ns_epoch_of(ns, dir);
	const char *rest;
	uint64_t number;

	if (!epoch)
		return -ESTALE;
	if (!name_parse_number(name, spec_batches(&epoch->spec->spec), &number,
			       &rest) ||
	    strcmp(rest, suffix))
		return -ENOENT;
	*out = ns_make(dir, NS_BATCH, dir->part, number);
	return 0;
}

static int epoch_lookup(struct ns *ns, const struct ns_object *dir,
			const char *name, struct ns_entry *out)
{
	struct ns_object object;
	int r = batch_named(ns, dir, name, &object);

	return r ? r : ns_attr(ns, &object, out);
}

/* Lists names without sizes: a size needs the layout of its batch. */
static int epoch_list(struct ns *ns, const struct ns_object *dir,
		      const struct ns_listing *listing)
{
	const struct ns_epoch *epoch = ns_epoch_of(ns, dir);
	uint64_t n = epoch ? spec_batches(&epoch->spec->spec) : 0;
	unsigned digits = name_digits(n);
	char text[NAME_DIGITS_MAX + sizeof(suffix)];
	struct ns_object object;

	for (uint64_t i = listing->first; i < n; i++) {
		object = ns_make(dir, NS_BATCH, dir->part, i);
		strcpy(text + name_number(text, i, digits), suffix);
		if (!ns_emit(listing, i + 1, text, &object))
			break;
	}
	return 0;
}

int ns_batch_name(struct ns *ns, const struct ns_object *object,
		  char out[NS_NAME_MAX + 1])
{
	const struct ns_epoch *epoch =
		object->kind == NS_BATCH ? ns_epoch_of(ns, object) : NULL;
	unsigned digits;

	if (!epoch)
		return -EINVAL;
	digits = name_digits(spec_batches(&epoch->spec->spec));
	strcpy(out + name_number(out, object->index, digits), suffix);
	return 0;
}

static struct ns_object epoch_parent(struct ns *ns,
				     const struct ns_object *object)
{
	const struct ns_epoch *epoch = ns_epoch_of(ns, object);

	return ns_make(object, NS_SPEC, epoch ? epoch->spec->number : 0, 0);
}

/* --- a batch --- */

/*
 * Makes the layout again if the last one met I/O errors: the size returned here
 * must be that of the batch that is opened next.
 */
static int batch_of(struct ns *ns, const struct ns_object *object,
		    struct stream **stream, struct batch **out)
{
	const struct ns_epoch *epoch = ns_epoch_of(ns, object);

	if (!epoch)
		return -ESTALE;
	*stream = epoch->stream;
	return stream_batch(epoch->stream, object->index, true, out);
}

static int batch_attr(struct ns *ns, const struct ns_object *object,
		      struct ns_entry *out)
{
	struct batch *batch;
	struct stream *stream;
	int r = batch_of(ns, object, &stream, &batch);

	if (r)
		return r;
	out->size = batch->vfile.size;
	out->may_change = batch->has_io_errors;
	batch_put(&batch);
	return 0;
}

static void batch_close(struct vfile *vfile)
{
	struct batch *batch = (struct batch *)vfile;

	batch_put(&batch);
}

static int batch_open_file(struct ns *ns, const struct ns_object *object,
			   struct ns_file *out)
{
	struct batch *batch;
	struct stream *stream;
	int r = batch_of(ns, object, &stream, &batch);

	if (r)
		return r;
	*out = (struct ns_file){
		.vfile = &batch->vfile,
		.stream = stream,
		.close = batch_close,
	};
	return 0;
}

void ns_note_file(const struct ns_file *file)
{
	if (file->stream)
		stream_note(file->stream,
			    ((const struct batch *)file->vfile)->key.number);
}

static struct ns_object batch_parent(struct ns *ns,
				     const struct ns_object *object)
{
	(void)ns;
	return ns_make(object, NS_EPOCH, object->part, 0);
}

/* --- the way of a path to a batch --- */

/* Whether lookups in it read no dataset, and lead to a batch. */
static bool is_on_the_way(const struct ns_object *dir)
{
	if (dir->kind == NS_FIXED)
		return dir->index == NS_ROOT || dir->index == NS_BATCHES;
	return dir->kind == NS_SPEC;
}

int ns_batch_lookup(struct ns *ns, const struct ns_object *dir,
		    const char *name, struct ns_object *out)
{
	struct ns_entry entry;
	int r;

	if (dir->kind == NS_EPOCH)
		return batch_named(ns, dir, name, out);
	r = is_on_the_way(dir) ? ns_lookup(ns, dir, name, &entry) : -EINVAL;
	if (!r)
		*out = entry.object;
	return r;
}

int ns_batch_stream(struct ns *ns, const struct ns_object *object,
		    struct stream **out)
{
	const struct ns_epoch *epoch =
		object->kind == NS_BATCH ? ns_epoch_of(ns, object) : NULL;

	if (!epoch)
		return -EINVAL;
	return stream_open(ns->engine, ns_dataset(ns, object),
			   &epoch->spec->spec, epoch->key.epoch, out);
}

const struct ns_row ns_spec_row = {
	.type = S_IFDIR,
	.lookup = spec_lookup,
	.list = spec_list,
	.parent = in_batches,
};

const struct ns_row ns_spec_link_row = {
	.type = S_IFLNK,
	.attr = link_attr,
	.readlink = link_read,
	.parent = in_batches,
};

const struct ns_row ns_epoch_row = {
	.type = S_IFDIR,
	.lookup = epoch_lookup,
	.list = epoch_list,
	.parent = epoch_parent,
};

const struct ns_row ns_batch_row = {
	.type = S_IFREG,
	.attr = batch_attr,
	.open = batch_open_file,
	.parent = batch_parent,
};
