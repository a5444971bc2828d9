/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/writer/labels.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

enum {
	/* A name and its NUL take two bytes at least. */
	NAMES_MAX = CLASS_NAMES_SIZE_MAX / 2,
	/* At most half of the slots are used. */
	SLOTS = 2 * NAMES_MAX,
};

static uint64_t hash_of(const char *name)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3;
	return h ^ h >> 32;
}

const char *labels_name(const struct labels *l, size_t number)
{
	return l->text + l->offsets[number];
}

/* Returns the slot of a name, or the free slot where it belongs. */
static uint32_t *slot_of(const struct labels *l, const char *name)
{
	size_t i = hash_of(name) % SLOTS;

	while (l->slots[i] && strcmp(labels_name(l, l->slots[i] - 1), name))
		i = (i + 1) % SLOTS;
	return &l->slots[i];
}

static int allocate(struct labels *l)
{
	if (l->slots)
		return 0;
	l->text = malloc(CLASS_NAMES_SIZE_MAX);
	l->offsets = calloc(NAMES_MAX, sizeof(*l->offsets));
	l->slots = calloc(SLOTS, sizeof(*l->slots));
	return l->text && l->offsets && l->slots ? 0 : -ENOMEM;
}

/* Adds a name. If another class has it, that one remains the name's number. */
static int push_name(struct labels *l, const char *name)
{
	uint32_t *slot = slot_of(l, name);
	size_t size = strlen(name) + 1;

	if (l->num == NAMES_MAX || size > CLASS_NAMES_SIZE_MAX - l->text_size)
		return -E2BIG;
	l->offsets[l->num++] = (uint32_t)l->text_size;
	memcpy(l->text + l->text_size, name, size);
	l->text_size += size;
	if (!*slot)
		*slot = (uint32_t)l->num;
	return 0;
}

/* The first dataset may give several classes one name. */
static int add_first(struct labels *l, const struct class_names *names)
{
	int r = 0;

	for (uint64_t i = 0; i < names->num && !r; i++)
		r = push_name(l, names->names[i]);
	return r;
}

static int add_more(struct labels *l, const struct class_names *names,
		    uint32_t **out)
{
	cleanup_free uint32_t *numbers =
		calloc(names->num + 1, sizeof(*numbers));
	bool moves = false;
	int r = numbers ? 0 : -ENOMEM;

	for (uint64_t i = 0; i < names->num && !r; i++) {
		const uint32_t *slot = slot_of(l, names->names[i]);

		if (!*slot)
			r = push_name(l, names->names[i]);
		numbers[i] = *slot - 1;
		moves |= numbers[i] != i;
	}
	if (!r && moves)
		*out = steal(numbers);
	return r;
}

int labels_add(struct labels *l, const struct class_names *names,
	       struct labels_map *map)
{
	int r = allocate(l);

	*map = (struct labels_map){ .num = names->num };
	if (r)
		return r;
	return l->num ? add_more(l, names, &map->numbers) : add_first(l, names);
}

const char **labels_names(const struct labels *l)
{
	const char **names = calloc(l->num + 1, sizeof(*names));

	for (size_t i = 0; names && i < l->num; i++)
		names[i] = labels_name(l, i);
	return names;
}

void labels_fini(struct labels *l)
{
	free(l->text);
	free(l->offsets);
	free(l->slots);
	*l = (struct labels){ .num = 0 };
}
