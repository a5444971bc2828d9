/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/class_union.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

#define WHY(why, ...) snprintf(why, CLASS_WHY_SIZE, __VA_ARGS__)

/* All names so far, found by a hash table of their numbers + 1. */
struct class_union_table {
	const char **names;
	size_t num;
	uint32_t *slots;
	size_t num_slots; /* twice the names at least, a power of two */
	bool *ambiguous;  /* by number: another class has the same name */
	bool *taken;	  /* by number: a class of the further source has it */
};

static uint64_t hash_of(const char *name)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3;
	return h ^ h >> 32;
}

/* Returns the slot of a name, or the free slot where it belongs. */
static uint32_t *slot_of(const struct class_union_table *t, const char *name)
{
	size_t i = hash_of(name) & (t->num_slots - 1);

	while (t->slots[i] && strcmp(t->names[t->slots[i] - 1], name))
		i = (i + 1) & (t->num_slots - 1);
	return &t->slots[i];
}

static void push_name(struct class_union_table *t, const char *name)
{
	uint32_t *slot = slot_of(t, name);

	t->names[t->num++] = name;
	if (*slot)
		t->ambiguous[*slot - 1] = true;
	else
		*slot = (uint32_t)t->num;
}

static void table_fini(struct class_union_table *t)
{
	free(t->names);
	free(t->slots);
	free(t->ambiguous);
	free(t->taken);
}

static int table_init(struct class_union_table *t,
		      const struct class_names *all, size_t room)
{
	*t = (struct class_union_table){ .num_slots = 64 };
	while (t->num_slots < 2 * room)
		t->num_slots *= 2;
	t->names = calloc(room, sizeof(*t->names));
	t->slots = calloc(t->num_slots, sizeof(*t->slots));
	t->ambiguous = calloc(room, sizeof(*t->ambiguous));
	t->taken = calloc(room, sizeof(*t->taken));
	if (!t->names || !t->slots || !t->ambiguous || !t->taken)
		return -ENOMEM;
	for (size_t i = 0; i < all->num; i++)
		push_name(t, all->names[i]);
	return 0;
}

/* Finds the number of class i of a further source: a class at its place keeps
   it, even if others have its name. */
static int map_class(struct class_union_table *t, const struct class_names *all,
		     const struct class_names *more, uint64_t i, uint32_t *out)
{
	const char *name = more->names[i];

	if (i < all->num && !strcmp(all->names[i], name)) {
		*out = (uint32_t)i;
	} else {
		const uint32_t *slot = slot_of(t, name);

		if (!*slot)
			push_name(t, name);
		*out = *slot - 1;
		if (t->ambiguous[*out])
			return -EINVAL;
	}
	if (t->taken[*out])
		return -EINVAL;
	t->taken[*out] = true;
	return 0;
}

static int replace(struct class_names **all, const char *const *names,
		   size_t num, char *why)
{
	struct class_names *made;
	uint64_t size = 0;

	for (size_t i = 0; i < num; i++)
		size += strlen(names[i]) + 1;
	if (size > CLASS_NAMES_SIZE_MAX) {
		WHY(why,
		    "has, with the names before, over %d bytes of class names",
		    CLASS_NAMES_SIZE_MAX);
		return -E2BIG;
	}
	made = class_names_copy(names, num);
	if (!made)
		return -ENOMEM;
	class_names_free(*all);
	*all = made;
	return 0;
}

static int unite_by_table(struct class_union_table *t, struct class_names **all,
			  const struct class_names *more, uint32_t *numbers,
			  char *why)
{
	int r = table_init(t, *all, (*all)->num + more->num);

	if (r)
		return r;
	for (uint64_t i = 0; i < more->num; i++) {
		r = map_class(t, *all, more, i, &numbers[i]);
		if (!r)
			continue;
		WHY(why,
		    "has several classes '%.60s', which a name cannot distinguish",
		    more->names[i]);
		return r;
	}
	return t->num > (*all)->num ? replace(all, t->names, t->num, why) : 0;
}

static int unite_by_name(struct class_names **all,
			 const struct class_names *more, struct class_map *map,
			 char *why)
{
	cleanup_free uint32_t *numbers = calloc(more->num, sizeof(*numbers));
	struct class_union_table t = { 0 };
	int r = numbers ? unite_by_table(&t, all, more, numbers, why) : -ENOMEM;

	table_fini(&t);
	if (!r)
		map->numbers = steal(numbers);
	return r;
}

/* Returns the number of classes at which both lists are equal. */
static uint64_t count_equal(const struct class_names *a,
			    const struct class_names *b)
{
	uint64_t both = min_u64(a->num, b->num), i = 0;

	while (i < both && !strcmp(a->names[i], b->names[i]))
		i++;
	return i;
}

static int refuse_one(bool has, const char *first, char *why)
{
	WHY(why, "has %sclass names, but in %s it has %s", has ? "" : "no ",
	    first, has ? "none" : "some");
	return -ENODATA;
}

static int unite(struct class_names **all, const struct class_names *more,
		 struct class_map *map, const char *first, char *why)
{
	uint64_t equal;

	if (!*all != !more)
		return refuse_one(more, first, why);
	if (!more)
		return 0;
	equal = count_equal(*all, more);
	if (equal == more->num)
		return 0;
	if (equal == (*all)->num)
		return replace(all, more->names, more->num, why);
	if (map)
		return unite_by_name(all, more, map, why);
	WHY(why, "has class %llu '%.60s', but in %s it is '%.60s'",
	    (unsigned long long)equal, more->names[equal], first,
	    (*all)->names[equal]);
	return -EINVAL;
}

int class_names_unite(struct class_names **all, const struct class_names *more,
		      struct class_map *map, const char *first,
		      char why[CLASS_WHY_SIZE])
{
	int r;

	if (map)
		*map = (struct class_map){ .num = more ? more->num : 0 };
	r = unite(all, more, map, first, why);
	if (r == -ENOMEM)
		WHY(why, "has class names: out of memory");
	return r;
}

int class_map_apply(const struct class_map *map, const struct class_names *all,
		    int64_t *label)
{
	if (!map->num || !class_name(all, *label))
		return 0;
	if ((uint64_t)*label >= map->num)
		return -EDOM;
	if (map->numbers)
		*label = map->numbers[*label];
	return 0;
}
