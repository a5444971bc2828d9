/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/namespace/object.h"

#include <string.h>

enum { BLOCK = 512, IO_SIZE = 128 << 10 };

static const struct ns_row no_row = { .type = 0 };

static const struct ns_row *row_of(const struct ns *ns,
				   const struct ns_object *object)
{
	const struct ns_row *row = ns->kinds[object->kind];

	if (!row)
		return &no_row;
	if (object->kind != NS_FIXED)
		return row;
	return object->index < NS_FIXED_END ? &row[object->index] : &no_row;
}

bool ns_emit(const struct ns_listing *listing, uint64_t next, const char *name,
	     const struct ns_object *object)
{
	return listing->emit(listing->arg, &(struct ns_name){
						   .name = name,
						   .next = next,
						   .entry.object = *object,
					   });
}

bool ns_emit_entry(const struct ns_listing *listing, uint64_t next,
		   const char *name, const struct ns_entry *entry)
{
	return listing->emit(listing->arg, &(struct ns_name){
						   .name = name,
						   .next = next,
						   .entry = *entry,
						   .has_attr = true,
					   });
}

int ns_lookup(struct ns *ns, const struct ns_object *dir, const char *name,
	      uid_t user, struct ns_entry *out)
{
	const struct ns_row *row = row_of(ns, dir);

	if (!row->lookup && !row->find)
		return -ENOTDIR;
	if (strlen(name) > NS_NAME_MAX)
		return -ENAMETOOLONG;
	*out = (struct ns_entry){ .may_change = false };
	return row->find ? row->find(ns, dir, name, user, out)
			 : row->lookup(ns, dir, name, out);
}

int ns_attr(struct ns *ns, const struct ns_object *object, struct ns_entry *out)
{
	const struct ns_row *row = row_of(ns, object);

	*out = (struct ns_entry){ .object = *object };
	return row->attr ? row->attr(ns, object, out) : 0;
}

bool ns_is_at_hand(const struct ns *ns, const struct ns_object *object)
{
	const struct ns_row *row = row_of(ns, object);

	return row->is_at_hand && row->is_at_hand(ns, object);
}

static bool is_control(const struct ns_object *object)
{
	return object->kind == NS_JOB ||
	       (object->kind == NS_FIXED && object->index >= NS_CONTROL);
}

void ns_stat_object(const struct ns *ns, const struct ns_object *object,
		    struct stat *out)
{
	const struct ns_tree *tree = ns_tree(ns, object);
	const struct ns_owner *owner =
		is_control(object) ? &tree->control : &tree->owner;
	mode_t type = row_of(ns, object)->type;

	/* A value has names under samples/, columns/ and perhaps by/. The link
	   count is 1 nevertheless, because otherwise tar would search for the
	   other names. */
	*out = (struct stat){
		.st_ino = ns_ino(object),
		.st_mode = type | (S_ISDIR(type)   ? owner->dir_mode
				   : S_ISLNK(type) ? 0777
						   : owner->file_mode),
		.st_nlink = S_ISDIR(type) ? 2 : 1,
		.st_uid = owner->uid,
		.st_gid = owner->gid,
		.st_blksize = IO_SIZE,
		.st_atim = tree->time,
		.st_mtim = tree->time,
		.st_ctim = tree->time,
	};
}

void ns_stat(const struct ns *ns, const struct ns_entry *entry,
	     struct stat *out)
{
	ns_stat_object(ns, &entry->object, out);
	if (entry->time.tv_sec)
		out->st_atim = out->st_mtim = out->st_ctim = entry->time;
	out->st_size = (off_t)entry->size;
	out->st_blocks = (blkcnt_t)((entry->size + BLOCK - 1) / BLOCK);
}

struct ns_object ns_parent(struct ns *ns, const struct ns_object *object)
{
	const struct ns_row *row = row_of(ns, object);

	return row->parent ? row->parent(ns, object) : *object;
}

int ns_list(struct ns *ns, const struct ns_object *dir,
	    const struct ns_listing *listing)
{
	const struct ns_row *row = row_of(ns, dir);

	return row->list ? row->list(ns, dir, listing) : -ENOTDIR;
}

int ns_readlink(struct ns *ns, const struct ns_object *link,
		char out[SPEC_TEXT_MAX])
{
	const struct ns_row *row = row_of(ns, link);

	return row->readlink ? row->readlink(ns, link, out) : -EINVAL;
}

bool ns_is_value(const struct ns_object *object)
{
	return object->kind == NS_VALUE;
}

int ns_open_file(struct ns *ns, const struct ns_object *object,
		 struct ns_file *out)
{
	const struct ns_row *row = row_of(ns, object);

	*out = (struct ns_file){ .vfile = NULL };
	return row->open ? row->open(ns, object, out) : -EISDIR;
}

void ns_close_file(struct ns_file *file)
{
	if (file->vfile)
		file->close(file);
	file->vfile = NULL;
}
