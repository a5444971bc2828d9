/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of classes: value i of an integer field has the i-th name. FFCV's
 * format has no place for names. Therefore betonfs uses the arguments of such a
 * field, 1024 bytes that FFCV leaves unused. They contain the names if these
 * fit, otherwise the offset of the names: behind the last value in its page, or
 * in a page of their own (beton(5)).
 */
#ifndef FS_DATA_DATASET_CLASS_NAMES_H
#define FS_DATA_DATASET_CLASS_NAMES_H

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

/* The range of a file that contains the names of a field. */
struct class_names_place {
	uint64_t off;  /* in the file */
	uint64_t size; /* 0: the field has none */
	uint64_t num;
};

/* Reads the place from a field's arguments. If the field has no names, its size
   is 0. */
struct class_names_place class_names_parse(const uint8_t *args);

/* Writes the place to a field's arguments. */
void class_names_put(const struct class_names_place *place, uint8_t *args);

/* Splits place->size bytes of malloc'ed text, which then belong to *out. If the
   text is damaged or memory is short, frees it and returns false. */
bool class_names_split(char *text, const struct class_names_place *place,
		       struct class_names **out);

/*
 * Joins names to the text of a file. Characters that cannot be printed become
 * '?', and so do empty names. The caller frees the text. Returns NULL if memory
 * is short.
 */
char *class_names_join(const char *const *names, size_t num, uint64_t *size);

/* Returns a list of these names, as a file has them: class_names_join(). The
   caller frees it. NULL: memory is short. */
struct class_names *class_names_copy(const char *const *names, size_t num);

/* Returns the name of a value, or NULL. `names` may be NULL. */
const char *class_name(const struct class_names *c, int64_t value);

/* Takes NULL. */
void class_names_free(struct class_names *c);

#endif
