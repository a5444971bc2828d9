/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/cache/heap.h"

#include <errno.h>
#include <stdlib.h>

enum { CAPACITY_MIN = 64 };

static void put_at(struct heap *h, size_t i, struct heap_node *node)
{
	h->nodes[i] = node;
	node->index = (uint32_t)(i + 1);
}

/* sift_up() and sift_down() move a node from index i to its position in the
   heap. */
static void sift_up(struct heap *h, size_t i)
{
	struct heap_node *node = h->nodes[i];

	for (; i && h->nodes[(i - 1) / 2]->key < node->key; i = (i - 1) / 2)
		put_at(h, i, h->nodes[(i - 1) / 2]);
	put_at(h, i, node);
}

static void sift_down(struct heap *h, size_t i)
{
	struct heap_node *node = h->nodes[i];
	size_t child;

	while ((child = 2 * i + 1) < h->n) {
		if (child + 1 < h->n &&
		    h->nodes[child + 1]->key > h->nodes[child]->key)
			child++;
		if (h->nodes[child]->key <= node->key)
			break;
		put_at(h, i, h->nodes[child]);
		i = child;
	}
	put_at(h, i, node);
}

static int grow_nodes(struct heap *h)
{
	size_t capacity = h->capacity ? 2 * h->capacity : CAPACITY_MIN;
	void *nodes;

	if (capacity > UINT32_MAX)
		return -ENOMEM;
	nodes = realloc(h->nodes, capacity * sizeof(*h->nodes));
	if (!nodes)
		return -ENOMEM;
	h->nodes = nodes;
	h->capacity = capacity;
	return 0;
}

void heap_fini(struct heap *h)
{
	free(h->nodes);
	*h = (struct heap){ 0 };
}

int heap_push(struct heap *h, struct heap_node *node)
{
	int r = h->n == h->capacity ? grow_nodes(h) : 0;

	if (r)
		return r;
	h->nodes[h->n] = node;
	sift_up(h, h->n++);
	return 0;
}

/* Moves the last node to the free index, and up or down from there. */
void heap_remove(struct heap *h, struct heap_node *node)
{
	size_t i = node->index - 1;
	struct heap_node *last = h->nodes[--h->n];

	node->index = 0;
	if (last == node)
		return;
	h->nodes[i] = last;
	sift_up(h, i);
	sift_down(h, last->index - 1);
}

void heap_update(struct heap *h, struct heap_node *node, uint64_t key)
{
	node->key = key;
	sift_up(h, node->index - 1);
	sift_down(h, node->index - 1);
}

struct heap_node *heap_top(const struct heap *h)
{
	return h->n ? h->nodes[0] : NULL;
}

void heap_rebuild(struct heap *h)
{
	for (size_t i = h->n / 2; i-- > 0;)
		sift_down(h, i);
}
