/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap of nodes that are embedded in structs of the owner; the greatest key
 * is on top. A zeroed heap is empty, and a zeroed node is in no heap. Not
 * thread-safe.
 */
#ifndef FS_DATA_CACHE_HEAP_H
#define FS_DATA_CACHE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
	uint64_t key;
	uint32_t index; /* in heap.nodes, plus one; 0: in no heap */
};

struct heap {
	struct heap_node **nodes;
	size_t n;
	size_t capacity;
};

/* Frees the heap, but not the nodes, which keep their index. */
void heap_fini(struct heap *heap);

/* The caller has set the node's key. -ENOMEM. */
int heap_push(struct heap *heap, struct heap_node *node);
void heap_remove(struct heap *heap, struct heap_node *node);
void heap_update(struct heap *heap, struct heap_node *node, uint64_t key);
/* NULL when empty. */
struct heap_node *heap_top(const struct heap *heap);

/* Call after keys were changed in place. O(n). */
void heap_rebuild(struct heap *heap);

static inline bool heap_holds(const struct heap_node *node)
{
	return node->index;
}

#endif
