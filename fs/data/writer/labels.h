/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The union of the class names of an integer field in several datasets. The
 * names of the first dataset keep their numbers; new names of the others follow
 * in their order. One thread.
 */
#ifndef FS_DATA_WRITER_LABELS_H
#define FS_DATA_WRITER_LABELS_H

#include <stddef.h>
#include <stdint.h>

#include "fs/data/dataset/class_names.h"

/* Zero-initialize. */
struct labels {
	char *text; /* the names, with their NULs */
	size_t text_size;
	uint32_t *offsets; /* of each name in the text */
	size_t num;
	uint32_t *slots; /* a hash table of numbers + 1; 0: free */
};

/* The new number of each class of one dataset. */
struct labels_map {
	uint64_t num;	   /* classes of the dataset */
	uint32_t *numbers; /* NULL: every class keeps its number */
};

/*
 * Adds the names of a dataset. The caller frees map->numbers. -E2BIG: the names
 * take more than CLASS_NAMES_SIZE_MAX bytes. -ENOMEM. Logs nothing.
 */
int labels_add(struct labels *l, const struct class_names *names,
	       struct labels_map *map);

const char *labels_name(const struct labels *l, size_t number);

/* Returns all names in an array, which the caller frees. It points into the
   labels. NULL: memory is short. */
const char **labels_names(const struct labels *l);

void labels_fini(struct labels *l);

#endif
