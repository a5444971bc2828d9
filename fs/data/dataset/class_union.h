/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One list of class names for the same integer field of several sources. The
 * first source gives the list. A further one either has the same numbers, or
 * its labels get other numbers by a map, or it is refused:
 *
 *	its names		if labels are mapped	if they stay as they are
 *	equal			no change		no change
 *	one list begins		the longer list		the longer list
 *	with the other
 *	any others		united by name: new	refused
 *				names follow
 *	a name of several	refused, unless each	refused, likewise
 *	classes			is at its place
 *	only one has names	-ENODATA: the caller refuses or warns
 */
#ifndef FS_DATA_DATASET_CLASS_UNION_H
#define FS_DATA_DATASET_CLASS_UNION_H

#include "fs/data/dataset/class_names.h"

enum { CLASS_WHY_SIZE = 512 };

/* The number that each class of one source has among all names. */
struct class_map {
	uint64_t num;	   /* classes of the source; 0: it has no names */
	uint32_t *numbers; /* NULL: every class keeps its number */
};

/*
 * Adds the names of a further source to *all, which may become a new list; the
 * caller frees it and map->numbers. Both lists may be NULL: no names. If `map`
 * is NULL, labels stay as they are. `first` is the path of the first source. If
 * it fails, leaves *all as it was, and writes to `why` a text that follows
 * "field 'NAME'":
 *
 *	-ENODATA	only one of both has names
 *	-EINVAL		other names, which cannot be united
 *	-E2BIG		over CLASS_NAMES_SIZE_MAX bytes of names
 *	-ENOMEM
 */
int class_names_unite(struct class_names **all, const struct class_names *more,
		      struct class_map *map, const char *first,
		      char why[CLASS_WHY_SIZE]);

/* Sets the number that a label of the source has among all names; `all` may be
   NULL. -EDOM: it has no name in its source, but would get one. */
int class_map_apply(const struct class_map *map, const struct class_names *all,
		    int64_t *label);

#endif
