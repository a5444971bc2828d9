/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A named subset: a list of sample ids from a file, beton-orders(7), with or
 * without weights. Place i is the i-th id of the file; an id may have several
 * places. Subsets never change once open. The caller that opened a list of
 * subsets owns it. Sampling specs point into it, so it outlives them.
 */
#ifndef FS_BASE_ORDER_SUBSET_H
#define FS_BASE_ORDER_SUBSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/base/util/log.h"

enum {
	SUBSET_NAME_MAX = 32,
	/* "NAME~HASH" with its NUL; the hash is 16 digits. */
	SUBSET_TEXT_SIZE = SUBSET_NAME_MAX + 18,
};

/* Sorted places are numbers of 32 bits. */
#define SUBSET_IDS_MAX ((uint64_t)UINT32_MAX)

/* Takes 8 bytes for each id, 8 more with weights, and 4 more if the ids do not
   ascend. */
struct subset {
	struct subset *next;
	char name[SUBSET_NAME_MAX + 1];
	uint64_t hash; /* of ids and weights */
	uint64_t n;
	uint64_t *ids;	  /* by place; NULL: only the members above are set */
	uint64_t *sums;	  /* of weights up to each place; NULL: no weights */
	uint32_t *sorted; /* places by their ids; NULL: `ids` ascends */
	bool repeats;	  /* an id has several places */
};

/*
 * Opens "NAME:FILE" and puts it before *list. -EINVAL: another text, a file
 * that does not list samples of the dataset, or a name that *list has already.
 * Logs all failures except -ENOMEM, with the line of the file.
 */
int subset_open(const char *text, uint64_t samples, struct log *log,
		struct subset **list);
void subset_close_all(struct subset *list);

/* A subset as a spec names it: "NAME" or "NAME~HASH". */
struct subset_ref {
	const char *name; /* not terminated */
	size_t size;
	bool has_hash;
	uint64_t hash;
};

/*
 * Returns false for any other text. A name has letters, digits, '_' and '-'.
 * Digits and '-' alone are a range, never a name.
 */
bool subset_parse_ref(const char *text, size_t size, struct subset_ref *out);

/* Finds a subset by its name; the hash does not matter. NULL: none. */
const struct subset *subset_find(const struct subset *list,
				 const struct subset_ref *ref);

/* Puts a subset without its ids before *list; `ref` has a hash. */
int subset_add_known(const struct subset_ref *ref, uint64_t n,
		     struct subset **list);

/* Writes "NAME" or "NAME~HASH", as it was parsed. */
void subset_ref_text(const struct subset_ref *ref, char out[SUBSET_TEXT_SIZE]);
/* Writes "NAME~HASH". */
void subset_text(const struct subset *subset, char out[SUBSET_TEXT_SIZE]);

/* Finds the nth place of an id, from 0, in O(log n). Returns false if it has
   fewer. */
bool subset_place(const struct subset *subset, uint64_t id, uint64_t nth,
		  uint64_t *place);

/* These two require weights. They return the weight of a place, and the place
   that a random number of 64 bits selects, in O(log n). */
uint64_t subset_weight(const struct subset *subset, uint64_t place);
uint64_t subset_draw(const struct subset *subset, uint64_t number);

#endif
