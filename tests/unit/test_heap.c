/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/util/rng.h"
#include "fs/data/cache/heap.h"
#include "tests/unit/t.h"

enum { N = 2000 };

static void check_heap(const struct heap *h)
{
	for (size_t i = 0; i < h->n; i++) {
		CHECK(h->nodes[i]->index == i + 1);
		CHECK(!i || h->nodes[(i - 1) / 2]->key >= h->nodes[i]->key);
	}
}

/* All elements come out of the heap, greatest key first. */
static void drain(struct heap *h, size_t expected)
{
	uint64_t before = UINT64_MAX;
	struct heap_node *top;
	size_t n = 0;

	for (; (top = heap_top(h)); n++) {
		CHECK(top->key <= before && heap_holds(top));
		before = top->key;
		heap_remove(h, top);
		CHECK(!heap_holds(top));
	}
	CHECK(n == expected && !h->n);
}

static void fill(struct heap *h, struct heap_node *nodes, uint64_t range)
{
	struct rng rng = { .key = range };

	for (size_t i = 0; i < N; i++) {
		nodes[i] = (struct heap_node){ .key = rng_next(&rng) % range };
		CHECK(!heap_push(h, &nodes[i]));
	}
	check_heap(h);
}

static void nodes_come_out_in_order(void)
{
	struct heap h = { 0 };
	struct heap_node nodes[N];

	CHECK(!heap_top(&h));
	fill(&h, nodes, UINT64_MAX);
	drain(&h, N);
	/* Many equal keys. */
	fill(&h, nodes, 7);
	drain(&h, N);
	heap_fini(&h);
}

static void any_node_may_go_or_change(void)
{
	struct heap h = { 0 };
	struct heap_node nodes[N];
	struct rng rng = { .key = 1 };
	size_t left = N;

	fill(&h, nodes, 1000);
	for (size_t i = 0; i < N; i++) {
		if (i % 3) {
			heap_update(&h, &nodes[i], rng_next(&rng) % 1000);
		} else {
			heap_remove(&h, &nodes[i]);
			left--;
		}
		if (i % 50 == 0)
			check_heap(&h);
	}
	check_heap(&h);
	drain(&h, left);
	heap_fini(&h);
}

static void keys_may_change_in_place(void)
{
	struct heap h = { 0 };
	struct heap_node nodes[N];

	fill(&h, nodes, 1000);
	for (size_t i = 0; i < N; i++)
		nodes[i].key = 1000 - nodes[i].key;
	heap_rebuild(&h);
	check_heap(&h);
	drain(&h, N);
	heap_rebuild(&h);
	heap_fini(&h);
}

int main(void)
{
	nodes_come_out_in_order();
	any_node_may_go_or_change();
	keys_may_change_in_place();
	return 0;
}
