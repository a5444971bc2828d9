/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A named subset: a list of sample ids from a file, beton-orders(7), perhaps
 * with weights. Place i is the i-th id of the file; an id may have many.
 * Immutable once open; subsets are kept in lists, each owned by who opened it,
 * and SPECs borrow from them.
 */
#ifndef FS_ORDER_SUBSET_H
#define FS_ORDER_SUBSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/util/log.h"

enum {
	SUBSET_NAME_MAX = 32,
	/* "NAME~HASH" with its NUL; the hash is 16 digits. */
	SUBSET_TEXT_SIZE = SUBSET_NAME_MAX + 18,
};

/* Places are 32 bits where they are sorted. */
#define SUBSET_IDS_MAX ((uint64_t)UINT32_MAX)

/* 8 bytes an id, 8 more with weights, and 4 where the ids do not ascend. */
struct subset {
	struct subset *next;
	char name[SUBSET_NAME_MAX + 1];
	uint64_t hash; /* of ids and weights */
	uint64_t n;
	uint64_t *ids;	  /* by place; NULL: no more is known than the above */
	uint64_t *sums;	  /* of the weights up to each place; NULL: none */
	uint32_t *sorted; /* places in the order of their ids; NULL: ids is */
	bool repeats;	  /* some id has several places */
};

/*
 * Opens "NAME:FILE" and puts it before *list. -EINVAL: not that, a file that is
 * no list of samples of the dataset, or a name that *list has. All failures but
 * -ENOMEM are logged, with the line.
 */
int subset_open(const char *text, uint64_t samples, struct log *log,
		struct subset **list);
void subset_close_all(struct subset *list);

/* What a SPEC says: "NAME" or "NAME~HASH". */
struct subset_ref {
	const char *name; /* not terminated */
	size_t size;
	bool has_hash;
	uint64_t hash;
};

/*
 * False for any other text. A name is of letters, digits, '_' and '-', and not
 * of digits and '-' alone: what could be a range is one.
 */
bool subset_parse_ref(const char *text, size_t size, struct subset_ref *out);

/* By its name alone; NULL: there is none. */
const struct subset *subset_find(const struct subset *list,
				 const struct subset_ref *ref);

/* Puts a subset whose ids are not known before *list; `ref` has a hash. */
int subset_add_known(const struct subset_ref *ref, uint64_t n,
		     struct subset **list);

/* As it was parsed. */
void subset_ref_text(const struct subset_ref *ref, char out[SUBSET_TEXT_SIZE]);
/* "NAME~HASH". */
void subset_text(const struct subset *subset, char out[SUBSET_TEXT_SIZE]);

/* The nth place of an id, from 0, in O(log n); false if it has not so many. */
bool subset_place(const struct subset *subset, uint64_t id, uint64_t nth,
		  uint64_t *place);

/* Of a subset with weights: that of a place; and the place that a random number
   of 64 bits means, in O(log n). */
uint64_t subset_weight(const struct subset *subset, uint64_t place);
uint64_t subset_draw(const struct subset *subset, uint64_t number);

#endif
