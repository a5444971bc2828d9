/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/util/value_store.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"

enum {
	HUGE_PAGE = 2 << 20,
	/* Bytes of memory per slot of the index. If values are as small as
	   images of 32 x 32 pixels, half of the slots are in use. The index
	   takes a hundredth of the memory. */
	SIZE_PER_PLACE = 1024,
	/* Greatest distance of an item from its first slot. If no slot is free
	   in this distance, the store drops the item. */
	REACH = 32,
};

/* The header of a value. */
struct value_store_item {
	uint64_t id;
	uint64_t size; /* with this header; a refusal has no more bytes */
};

_Static_assert(sizeof(struct value_store_item) == VALUE_STORE_ALIGN,
	       "values are aligned");

/* A slot of the index: the offset of an item in the memory, or 0. */
typedef atomic_uint_fast64_t place;

struct value_store {
	uint8_t *memory; /* slots, then items */
	place *places;
	uint64_t mask; /* number of slots, minus one */
	uint64_t size;
	atomic_uint_fast64_t used;
	atomic_uint_fast64_t values;
	atomic_uint_fast64_t hits;
};

static uint64_t count_places(uint64_t size)
{
	uint64_t n = 1;

	while (n < size / SIZE_PER_PLACE)
		n *= 2;
	return n;
}

int value_store_open(uint64_t size, struct value_store **out)
{
	struct value_store *s;
	void *memory;

	if (size < VALUE_STORE_SIZE_MIN || size > INT64_MAX)
		return -ENOMEM;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		free(s);
		return -ENOMEM;
	}
	if (size >= HUGE_PAGE)
		madvise(memory, size, MADV_HUGEPAGE);
	s->memory = memory;
	s->places = memory;
	s->mask = count_places(size) - 1;
	s->size = size;
	s->used = align_up((s->mask + 1) * sizeof(place), VALUE_STORE_ALIGN);
	*out = s;
	return 0;
}

void value_store_close(struct value_store *s)
{
	if (!s)
		return;
	munmap(s->memory, s->size);
	free(s);
}

/* Returns the i-th slot to search for an item. */
static place *place_at(const struct value_store *s, uint64_t id, unsigned i)
{
	return &s->places[(rng_mix(id) + i) & s->mask];
}

/* Returns the item of a slot, or NULL. */
static struct value_store_item *item_at(const struct value_store *s, place *p)
{
	uint64_t at = atomic_load_explicit(p, memory_order_acquire);

	return at ? (struct value_store_item *)(s->memory + at) : NULL;
}

enum value_store_found value_store_get(struct value_store *s, uint64_t id,
				       const void **out)
{
	for (unsigned i = 0; i < REACH; i++) {
		const struct value_store_item *item =
			item_at(s, place_at(s, id, i));

		if (!item)
			break;
		if (item->id != id)
			continue;
		if (item->size == sizeof(*item))
			return VALUE_STORE_REFUSED;
		atomic_fetch_add_explicit(&s->hits, 1, memory_order_relaxed);
		*out = item + 1;
		return VALUE_STORE_VALUE;
	}
	return VALUE_STORE_NOTHING;
}

static bool has_place(const struct value_store *s, uint64_t id)
{
	for (unsigned i = 0; i < REACH; i++) {
		if (!item_at(s, place_at(s, id, i)))
			return true;
	}
	return false;
}

void *value_store_take(struct value_store *s, uint64_t id, uint64_t size)
{
	uint64_t at = atomic_load(&s->used), end;
	struct value_store_item *item;

	if (!add_ok(size, sizeof(*item) + VALUE_STORE_ALIGN - 1, &size) ||
	    !has_place(s, id))
		return NULL;
	size -= size % VALUE_STORE_ALIGN;
	do {
		if (!range_ok(at, size, s->size))
			return NULL;
		end = at + size;
	} while (!atomic_compare_exchange_weak(&s->used, &at, end));
	item = (struct value_store_item *)(s->memory + at);
	*item = (struct value_store_item){ id, size };
	return item + 1;
}

void value_store_give(struct value_store *s, void *value)
{
	struct value_store_item *item = (struct value_store_item *)value - 1;
	uint64_t at = (uint64_t)((uint8_t *)item - s->memory);
	uint64_t end = at + item->size;

	atomic_compare_exchange_strong(&s->used, &end, at);
}

/* Adds an item to the index. */
static int publish(struct value_store *s, struct value_store_item *item)
{
	uint64_t at = (uint64_t)((uint8_t *)item - s->memory);

	for (unsigned i = 0; i < REACH; i++) {
		place *p = place_at(s, item->id, i);
		uint64_t there = 0;

		if (atomic_compare_exchange_strong_explicit(
			    p, &there, at, memory_order_acq_rel,
			    memory_order_acquire))
			return 0;
		if (((struct value_store_item *)(s->memory + there))->id ==
		    item->id)
			return -EEXIST;
	}
	return -ENOSPC;
}

int value_store_put(struct value_store *s, void *value)
{
	int r = publish(s, (struct value_store_item *)value - 1);

	if (r)
		value_store_give(s, value);
	else
		atomic_fetch_add(&s->values, 1);
	return r;
}

void value_store_refuse(struct value_store *s, uint64_t id)
{
	void *value = value_store_take(s, id, 0);

	if (value && publish(s, (struct value_store_item *)value - 1))
		value_store_give(s, value);
}

void value_store_stats(const struct value_store *s,
		       struct value_store_stats *out)
{
	*out = (struct value_store_stats){
		.size = s->size,
		.used = atomic_load(&s->used),
		.values = atomic_load(&s->values),
		.hits = atomic_load(&s->hits),
	};
}
