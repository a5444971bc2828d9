/* SPDX-License-Identifier: Apache-2.0 */
/* batches/: a lookup finds any sampling spec, although no listing shows it. */
#include "fs/mount/namespace/batches.h"

#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/name.h"
#include "fs/mount/namespace/streams.h"

static const char default_name[] = "default";
static const char suffix[] = ".batch";

/* --- batches/ --- */

/* The link `default` has number 0, which no spec has, and is never
   forgotten. */
static const char *target_of(struct ns *ns, const struct ns_object *link,
			     struct ns_named **spec)
{
	if (!link->part && !link->index) {
		*spec = NULL;
		return ns_tree(ns, link)->default_spec->text;
	}
	*spec = ns_named_get(ns, link);
	return *spec ? (*spec)->text : NULL;
}

static int link_read(struct ns *ns, const struct ns_object *object,
		     char out[SPEC_TEXT_MAX])
{
	struct ns_named *spec;
	const char *target = target_of(ns, object, &spec);

	if (!target)
		return -ESTALE;
	strcpy(out, target);
	ns_named_put(&spec);
	return 0;
}

static int link_attr(struct ns *ns, const struct ns_object *object,
		     struct ns_entry *out)
{
	char target[SPEC_TEXT_MAX];
	int r = link_read(ns, object, target);

	if (!r)
		out->size = strlen(target);
	return r;
}

int ns_batches_find(struct ns *ns, const struct ns_object *dir,
		    const char *name, uid_t user, struct ns_entry *out)
{
	struct ns_object object = ns_make(dir, NS_SPEC_LINK, 0, 0);
	struct ns_named *spec;
	int r;

	if (!strcmp(name, default_name))
		return ns_attr(ns, &object, out);
	r = ns_spec_named(ns, dir, name, user, &spec);
	if (r)
		return r == -EINVAL ? -ENOENT : r;
	object = ns_named_object(spec, strcmp(name, spec->text) ? NS_SPEC_LINK
								: NS_SPEC);
	r = ns_attr(ns, &object, out);
	out->is_named = true;
	ns_named_put(&spec);
	return r;
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

static int spec_find(struct ns *ns, const struct ns_object *dir,
		     const char *name, uid_t user, struct ns_entry *out)
{
	struct ns_named *epoch, *spec;
	uint64_t number;
	int r;

	if (!name_parse_u64(name, strlen(name), &number) ||
	    number > SPEC_EPOCH_MAX)
		return -ENOENT;
	spec = ns_named_get(ns, dir);
	if (!spec)
		return -ESTALE;
	r = ns_epoch_named(ns, spec, number, user, &epoch);
	ns_named_put(&spec);
	if (r)
		return r;
	out->object = ns_named_object(epoch, NS_EPOCH);
	out->is_named = true;
	ns_named_put(&epoch);
	return 0;
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

/* Computes the object of a batch's name. Reads no layout. */
static int batch_named(struct ns *ns, struct ns_named *epoch, const char *name,
		       uid_t user, struct ns_object *out)
{
	struct ns_named *piece;
	const char *rest;
	uint64_t number;
	int r;

	if (!name_parse_number(name, spec_batches(epoch->spec), &number,
			       &rest) ||
	    strcmp(rest, suffix))
		return -ENOENT;
	r = ns_piece_named(ns, epoch, number, user, &piece);
	if (r)
		return r;
	*out = ns_batch_object(piece, number);
	ns_named_put(&piece);
	return 0;
}

static int find_batch(struct ns *ns, const struct ns_object *dir,
		      const char *name, uid_t user, struct ns_object *out)
{
	struct ns_named *epoch = ns_named_get(ns, dir);
	int r = epoch ? batch_named(ns, epoch, name, user, out) : -ESTALE;

	ns_named_put(&epoch);
	return r;
}

static int epoch_find(struct ns *ns, const struct ns_object *dir,
		      const char *name, uid_t user, struct ns_entry *out)
{
	struct ns_object object;
	int r = find_batch(ns, dir, name, user, &object);

	return r ? r : ns_attr(ns, &object, out);
}

/* Emits the batches of one piece, from `first` on. Returns false if the listing
   is full. */
static bool list_piece(const struct ns_named *piece, uint64_t first,
		       const struct ns_listing *listing)
{
	uint64_t n = spec_batches(piece->spec);
	unsigned digits = name_digits(n);
	char text[NAME_DIGITS_MAX + sizeof(suffix)];
	struct ns_object object;

	for (uint64_t i = first; i < min_u64(n, piece->number + NS_PIECE);
	     i++) {
		object = ns_batch_object(piece, i);
		strcpy(text + name_number(text, i, digits), suffix);
		if (!ns_emit(listing, i + 1, text, &object))
			return false;
	}
	return true;
}

/* Lists names without sizes: a size needs the layout of its batch. */
static int epoch_list(struct ns *ns, const struct ns_object *dir,
		      const struct ns_listing *listing)
{
	struct ns_named *epoch = ns_named_get(ns, dir), *piece;
	uint64_t n = epoch ? spec_batches(epoch->spec) : 0;
	int r = epoch ? 0 : -ESTALE;
	bool has_room = true;

	for (uint64_t i = listing->first; i < n && !r && has_room;
	     i += NS_PIECE - i % NS_PIECE) {
		r = ns_piece_named(ns, epoch, i, listing->user, &piece);
		if (r)
			break;
		has_room = list_piece(piece, i, listing);
		ns_named_put(&piece);
	}
	ns_named_put(&epoch);
	return r;
}

int ns_batch_name(struct ns *ns, const struct ns_object *object,
		  char out[NS_NAME_MAX + 1])
{
	struct ns_named *piece =
		object->kind == NS_BATCH ? ns_named_get(ns, object) : NULL;
	unsigned digits;

	if (!piece)
		return -EINVAL;
	digits = name_digits(spec_batches(piece->spec));
	strcpy(out + name_number(out, ns_batch_number(piece, object), digits),
	       suffix);
	ns_named_put(&piece);
	return 0;
}

/* Returns the directory of an epoch or a batch. If it was forgotten, the kernel
   looks it up again before it lists it; therefore its parent does not matter
   then. */
static struct ns_object parent_of(struct ns *ns, const struct ns_object *object,
				  enum ns_kind kind)
{
	struct ns_named *named = ns_named_get(ns, object);
	struct ns_object parent =
		named ? ns_named_object(named->parent, kind)
		      : ns_make(object, NS_FIXED, 0, NS_BATCHES);

	ns_named_put(&named);
	return parent;
}

static struct ns_object epoch_parent(struct ns *ns,
				     const struct ns_object *object)
{
	return parent_of(ns, object, NS_SPEC);
}

/* --- a batch --- */

/* If the last layout met I/O errors, computes it again, because the size
   returned here must be that of the batch that is opened next. */
static int batch_of(struct ns *ns, const struct ns_object *object,
		    struct ns_named **piece, struct batch **out)
{
	int r;

	*piece = ns_named_get(ns, object);
	if (!*piece)
		return -ESTALE;
	r = stream_batch((*piece)->stream, ns_batch_number(*piece, object),
			 true, out);
	if (r)
		ns_named_put(piece);
	return r;
}

static int batch_attr(struct ns *ns, const struct ns_object *object,
		      struct ns_entry *out)
{
	struct ns_named *piece;
	struct batch *batch;
	int r = batch_of(ns, object, &piece, &batch);

	if (r)
		return r;
	out->size = batch->vfile.size;
	out->may_change = batch->has_io_errors;
	batch_put(&batch);
	ns_named_put(&piece);
	return 0;
}

static void batch_close(struct ns_file *file)
{
	struct batch *batch = (struct batch *)file->vfile;

	batch_put(&batch);
	ns_named_put(&file->named);
}

/* The open file holds the name, so that its stream stays. */
static int batch_open_file(struct ns *ns, const struct ns_object *object,
			   struct ns_file *out)
{
	struct ns_named *piece;
	struct batch *batch;
	int r = batch_of(ns, object, &piece, &batch);

	if (r)
		return r;
	*out = (struct ns_file){
		.vfile = &batch->vfile,
		.stream = piece->stream,
		.named = piece,
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
	return parent_of(ns, object, NS_EPOCH);
}

/* --- the way of a path to a batch --- */

/* Returns whether lookups in it read no dataset, and lead to a batch. */
static bool is_on_the_way(const struct ns_object *dir)
{
	if (dir->kind == NS_FIXED)
		return dir->index == NS_ROOT || dir->index == NS_BATCHES;
	return dir->kind == NS_SPEC;
}

int ns_batch_lookup(struct ns *ns, const struct ns_object *dir,
		    const char *name, uid_t user, struct ns_object *out)
{
	struct ns_entry entry;
	int r;

	if (dir->kind == NS_EPOCH)
		return find_batch(ns, dir, name, user, out);
	r = is_on_the_way(dir) ? ns_lookup(ns, dir, name, user, &entry)
			       : -EINVAL;
	if (!r)
		*out = entry.object;
	return r;
}

int ns_batch_stream(struct ns *ns, const struct ns_object *object,
		    struct stream **out, uint64_t *number)
{
	struct ns_named *piece =
		object->kind == NS_BATCH ? ns_named_get(ns, object) : NULL;
	int r;

	if (!piece)
		return object->kind == NS_BATCH ? -ESTALE : -EINVAL;
	*number = ns_batch_number(piece, object);
	r = stream_open(ns->engine, ns_dataset(ns, object), piece->spec,
			piece->parent->number, out);
	ns_named_put(&piece);
	return r;
}

const struct ns_row ns_spec_row = {
	.type = S_IFDIR,
	.find = spec_find,
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
	.find = epoch_find,
	.list = epoch_list,
	.parent = epoch_parent,
};

const struct ns_row ns_batch_row = {
	.type = S_IFREG,
	.attr = batch_attr,
	.open = batch_open_file,
	.parent = batch_parent,
};
