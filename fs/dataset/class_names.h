/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of classes: value i of an integer field has the i-th name. FFCV has
 * no place for them. The arguments of such a field, 1024 bytes that FFCV leaves
 * unused, say where in the file they are: among the arguments themselves if
 * they fit, otherwise behind the last value in its page, or in a page of their
 * own (beton(5)).
 */
#ifndef FS_DATASET_CLASS_NAMES_H
#define FS_DATASET_CLASS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* Bytes of all names of a dataset, each with its NUL. ImageNet-21K,
	   whose 21,841 names are long, has 0.6 MiB. */
	CLASS_NAMES_SIZE_MAX = 1 << 20,
	CLASS_NAMES_ARGS_SIZE = 1024,
	/* The part of the arguments that precedes names. */
	CLASS_NAMES_HEAD_SIZE = 32,
};

struct class_names {
	uint64_t num;
	const char **names; /* UTF-8, without control characters; not empty */
	char *text;	    /* the names, with their NULs */
};

/* Where a file has the names of a field. */
struct class_names_place {
	uint64_t off;  /* in the file */
	uint64_t size; /* 0: the field has none */
	uint64_t num;
};

/* Reads the place out of a field's arguments. size 0: there is none. */
struct class_names_place class_names_parse(const uint8_t *args);

/* Writes it there. */
void class_names_put(const struct class_names_place *place, uint8_t *args);

/* Splits place->size bytes of text, which were malloc'ed and now belong to
 *out. False: they are damaged or memory is short, and they were freed. */
bool class_names_split(char *text, const struct class_names_place *place,
		       struct class_names **out);

/*
 * Joins names to the text of a file: characters that cannot be shown become
 * '?', and so do empty names. The caller frees it; NULL without memory.
 */
char *class_names_join(const char *const *names, size_t num, uint64_t *size);

/* The name of a value, or NULL. Takes NULL for no names. */
const char *class_name(const struct class_names *c, int64_t value);

/* Takes NULL. */
void class_names_free(struct class_names *c);

#endif
