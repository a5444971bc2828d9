/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/foreign/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/bytes.h"

/* Offsets and numbers of the format, as 64-bit machines write it. */
enum {
	PAGE_FLAGS = 10, /* u16 */
	PAGE_LOWER = 12, /* u16: the end of the table of nodes */
	PAGE_HEAD = 16,
	BRANCH = 1,
	LEAF = 2,
	NODE_HEAD = 8, /* u16 low, high, flags, size of the key */
	BIG = 1,       /* the value is on pages of its own */
	DATABASE = 2,
	SEVERAL = 4, /* values of a key */
	META_MAGIC = 16,
	META_VERSION = 20,
	META_PAGE_SIZE = 40,
	META_FLAGS = 92,
	META_ENTRIES = 120,
	META_ROOT = 128,
	META_TRANSACTION = 144,
	META_SIZE = 152,
	DEPTH_MAX = 32,
	PAGE_LEAST = 512,
	PAGE_MOST = 65536,
	DUPLICATES = 4, /* flag of a database */
};

static const uint32_t MAGIC = 0xbeefc0de;

static int damaged(struct input_error *error, uint64_t page, const char *what)
{
	return input_refuse(error, -EBADMSG, "page %" PRIu64 ": %s", page,
			    what);
}

/* --- pages --------------------------------------------------------------- */

static int load_page(const struct tree *t, const struct input_file *file,
		     struct tree_reader *r, uint64_t number,
		     struct input_error *error)
{
	int code;

	if (r->is_loaded && r->number == number)
		return 0;
	r->is_loaded = false;
	if (number >= t->num_pages)
		return damaged(error, number, "outside of the file");
	if (scratch_grow(&r->page, t->page_size, 1))
		return input_refuse(error, -ENOMEM, "out of memory");
	code = input_file_read(file, r->page.p, t->page_size,
			       number * t->page_size, error);
	if (code)
		return code;
	r->number = number;
	r->is_loaded = true;
	return 0;
}

static uint16_t page_flags(const struct tree_reader *r)
{
	return load16((const uint8_t *)r->page.p + PAGE_FLAGS);
}

/* Returns the number of nodes of a branch or leaf, or -1. */
static int count_nodes(const struct tree *t, const struct tree_reader *r)
{
	uint16_t lower = load16((const uint8_t *)r->page.p + PAGE_LOWER);

	if (lower < PAGE_HEAD || lower > t->page_size || lower % 2)
		return -1;
	return (lower - PAGE_HEAD) / 2;
}

struct node {
	const uint8_t *at;
	uint16_t flags;
	uint16_t key_size;
	uint32_t low; /* size of a value, or part of a page's number */
	const uint8_t *key;
	uint32_t room; /* bytes behind the key in the page */
};

static bool find_node(const struct tree *t, const struct tree_reader *r, int i,
		      struct node *out)
{
	const uint8_t *page = r->page.p;
	uint32_t at = load16(page + PAGE_HEAD + 2 * (size_t)i);

	if (!range_ok(at, NODE_HEAD, t->page_size))
		return false;
	out->at = page + at;
	out->low = load16(out->at) | (uint32_t)load16(out->at + 2) << 16;
	out->flags = load16(out->at + 4);
	out->key_size = load16(out->at + 6);
	out->key = out->at + NODE_HEAD;
	if (!range_ok(at + NODE_HEAD, out->key_size, t->page_size))
		return false;
	out->room = t->page_size - at - NODE_HEAD - out->key_size;
	return true;
}

static uint64_t child_page(const struct node *n)
{
	return n->low | (uint64_t)n->flags << 32;
}

static int read_entry(const struct tree *t, const struct tree_reader *r, int i,
		      struct tree_entry *out, struct input_error *error)
{
	struct node n;

	if (!find_node(t, r, i, &n))
		return damaged(error, r->number, "a node outside of it");
	*out = (struct tree_entry){
		.key = n.key,
		.key_size = n.key_size,
		.value = n.key + n.key_size,
		.value_size = n.low,
		.is_plain = !(n.flags & (DATABASE | SEVERAL)),
	};
	if (!(n.flags & BIG))
		return n.low <= n.room ? 0
				       : damaged(error, r->number,
						 "a value outside of it");
	if (n.room < 8)
		return damaged(error, r->number, "a node outside of it");
	out->value_at = load64(n.key + n.key_size);
	if (out->value_at >= t->num_pages)
		return damaged(error, r->number, "a value outside of the file");
	out->value_at = out->value_at * t->page_size + PAGE_HEAD;
	out->value = NULL;
	return 0;
}

/* --- opening ------------------------------------------------------------- */

struct walk {
	struct tree *t;
	const struct input_file *file;
	struct tree_reader *r;
	tree_visit_fn *visit;
	void *arg;
	uint64_t pages; /* visited; a circle ends at all of them */
	struct input_error *error;
};

static int add_leaf(struct walk *w, uint64_t page, uint64_t n)
{
	struct tree *t = w->t;
	void *more;

	if (t->num_leaves == t->room) {
		t->room = t->room ? 2 * t->room : 64;
		more = reallocarray(t->leaves, t->room, sizeof(*t->leaves));
		if (!more)
			return input_refuse(w->error, -ENOMEM, "out of memory");
		t->leaves = more;
	}
	t->leaves[t->num_leaves++] = (struct tree_leaf){ page, t->num_entries };
	t->num_entries += n;
	return 0;
}

static int walk_leaf(struct walk *w, uint64_t page, int n)
{
	uint64_t first = w->t->num_entries;
	struct tree_entry entry;
	int r = add_leaf(w, page, (uint64_t)n);

	for (int i = 0; i < n && !r; i++) {
		r = read_entry(w->t, w->r, i, &entry, w->error);
		r = r ? r
		      : w->visit(w->arg, first + (uint64_t)i, &entry, w->error);
	}
	return r;
}

static int walk(struct walk *w, uint64_t page, unsigned depth)
{
	struct node node;
	int n, r = load_page(w->t, w->file, w->r, page, w->error);
	bool is_leaf;

	if (r)
		return r;
	if (depth == DEPTH_MAX || w->pages++ >= w->t->num_pages)
		return damaged(w->error, page, "a circle of pages");
	is_leaf = page_flags(w->r) & LEAF;
	n = count_nodes(w->t, w->r);
	if (n < 0 || (!is_leaf && !(page_flags(w->r) & BRANCH)))
		return damaged(w->error, page, "neither a branch nor a leaf");
	if (is_leaf)
		return walk_leaf(w, page, n);
	for (int i = 0; i < n && !r; i++) {
		/* A child takes the memory of its parent. */
		r = load_page(w->t, w->file, w->r, page, w->error);
		if (!r && !find_node(w->t, w->r, i, &node))
			r = damaged(w->error, page, "a node outside of it");
		r = r ? r : walk(w, child_page(&node), depth + 1);
	}
	return r;
}

static bool is_meta(const uint8_t *meta)
{
	uint32_t page_size = load32(meta + META_PAGE_SIZE);

	return load32(meta + META_MAGIC) == MAGIC &&
	       (load32(meta + META_VERSION) & 0xffff) == 1 &&
	       is_power_of_two(page_size) && page_size >= PAGE_LEAST &&
	       page_size <= PAGE_MOST;
}

/* Two pages describe the database; the one of the last transaction counts. */
static int read_meta(struct tree *t, const struct input_file *file,
		     struct input_error *error)
{
	uint8_t meta[META_SIZE], other[META_SIZE];
	int r = input_file_read(file, meta, META_SIZE, 0, error);

	if (r)
		return r;
	if (!is_meta(meta))
		return input_refuse(error, -EBADMSG,
				    "not an LMDB file of a 64-bit machine");
	t->page_size = load32(meta + META_PAGE_SIZE);
	t->num_pages = file->size / t->page_size;
	r = input_file_read(file, other, META_SIZE, t->page_size, error);
	if (r)
		return r;
	if (is_meta(other) &&
	    load64(other + META_TRANSACTION) > load64(meta + META_TRANSACTION))
		memcpy(meta, other, sizeof(meta));
	if (load16(meta + META_FLAGS) & DUPLICATES)
		return input_refuse(error, -ENOTSUP,
				    "several values of a key: write one value "
				    "of each key");
	t->root = load64(meta + META_ROOT);
	t->num_entries = load64(meta + META_ENTRIES);
	return 0;
}

int tree_open(struct tree *t, const struct input_file *file,
	      struct tree_reader *r, tree_visit_fn *visit, void *arg,
	      struct input_error *error)
{
	struct walk w = { t, file, r, visit, arg, 0, error };
	uint64_t expected;
	int code;

	*t = (struct tree){ 0 };
	r->is_loaded = false;
	code = read_meta(t, file, error);
	if (code)
		return code;
	expected = t->num_entries;
	t->num_entries = 0;
	if (t->root != UINT64_MAX)
		code = walk(&w, t->root, 0);
	if (!code && t->num_entries != expected)
		code = input_refuse(error, -EBADMSG,
				    "%" PRIu64 " entries instead of %" PRIu64,
				    t->num_entries, expected);
	return code;
}

void tree_close(struct tree *t)
{
	free(t->leaves);
	t->leaves = NULL;
}

/* --- finding ------------------------------------------------------------- */

int tree_entry_at(const struct tree *t, const struct input_file *file,
		  struct tree_reader *r, uint64_t number,
		  struct tree_entry *out, struct input_error *error)
{
	size_t low = 0, high = t->num_leaves;
	const struct tree_leaf *leaf;
	uint64_t i;
	int code;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (t->leaves[middle].first <= number)
			low = middle;
		else
			high = middle;
	}
	leaf = &t->leaves[low];
	i = number - leaf->first;
	code = load_page(t, file, r, leaf->page, error);
	if (code)
		return code;
	if (!(page_flags(r) & LEAF) || count_nodes(t, r) < 0 ||
	    i >= (uint64_t)count_nodes(t, r))
		return damaged(error, leaf->page, "changed while it was read");
	return read_entry(t, r, (int)i, out, error);
}

static int compare(const struct node *n, const char *key, size_t size)
{
	size_t both = n->key_size < size ? n->key_size : size;
	int r = memcmp(n->key, key, both);

	return r ? r : (n->key_size > size) - (n->key_size < size);
}

/* Sets *out to the last node whose key is not above `key`, or -1. The first
   key of a branch counts as lowest. */
static int search_page(const struct tree *t, const struct tree_reader *r,
		       const char *key, int *out, struct input_error *error)
{
	int low = page_flags(r) & BRANCH ? 0 : -1, high = count_nodes(t, r);
	struct node n;

	if (high < 0 || !(page_flags(r) & (BRANCH | LEAF)))
		return damaged(error, r->number, "neither a branch nor a leaf");
	if (!high)
		low = -1;
	while (high - low > 1) {
		int middle = low + (high - low) / 2;

		if (!find_node(t, r, middle, &n))
			return damaged(error, r->number,
				       "a node outside of it");
		if (compare(&n, key, strlen(key)) <= 0)
			low = middle;
		else
			high = middle;
	}
	*out = low;
	return 0;
}

int tree_find(const struct tree *t, const struct input_file *file,
	      struct tree_reader *r, const char *key, struct tree_entry *out,
	      struct input_error *error)
{
	uint64_t page = t->root;
	struct node n;
	int i = -1, code = 0;

	for (unsigned depth = 0; page != UINT64_MAX && depth < DEPTH_MAX;
	     depth++) {
		code = load_page(t, file, r, page, error);
		code = code ? code : search_page(t, r, key, &i, error);
		if (code)
			return code;
		if (i < 0)
			break;
		if (!find_node(t, r, i, &n))
			return damaged(error, page, "a node outside of it");
		if (page_flags(r) & LEAF) {
			if (compare(&n, key, strlen(key)) != 0)
				break;
			return read_entry(t, r, i, out, error);
		}
		page = child_page(&n);
	}
	return input_refuse(error, -ENOENT, "no key '%.60s'", key);
}

void tree_reader_fini(struct tree_reader *r)
{
	scratch_fini(&r->page);
	r->is_loaded = false;
}
