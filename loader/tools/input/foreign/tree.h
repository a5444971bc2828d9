/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main database of an LMDB file, read by its pages. liblmdb trusts the
 * pages of its files, and finds entries by key only. This room checks each
 * number, and finds an entry by its position, too. It takes no lock: a program
 * that writes to the file meanwhile makes entries look damaged.
 */
#ifndef LOADER_TOOLS_INPUT_FOREIGN_TREE_H
#define LOADER_TOOLS_INPUT_FOREIGN_TREE_H

#include "loader/tools/input/foreign/file.h"
#include "loader/util/scratch.h"

struct tree_leaf {
	uint64_t page;
	uint64_t first; /* entry */
};

/* Immutable once open. */
struct tree {
	uint32_t page_size;
	uint64_t num_pages; /* that the file has */
	uint64_t root;	    /* UINT64_MAX: no entries */
	uint64_t num_entries;
	struct tree_leaf *leaves;
	size_t num_leaves;
	size_t room;
};

struct tree_entry {
	const uint8_t *key;
	size_t key_size;
	const uint8_t *value; /* NULL: in the file at `value_at` */
	uint64_t value_at;
	uint64_t value_size;
	bool is_plain; /* neither a database nor several values of a key */
};

/* Pages of a thread. */
struct tree_reader {
	struct scratch page;
	uint64_t number; /* of the page in memory */
	bool is_loaded;
};

/* Called with each entry in order of keys. Not 0 ends the walk. */
typedef int tree_visit_fn(void *arg, uint64_t number,
			  const struct tree_entry *entry,
			  struct input_error *error);

int tree_open(struct tree *t, const struct input_file *file,
	      struct tree_reader *r, tree_visit_fn *visit, void *arg,
	      struct input_error *error);
void tree_close(struct tree *t);

/* Finds an entry by position. It is valid until the reader's next call. */
int tree_entry_at(const struct tree *t, const struct input_file *file,
		  struct tree_reader *r, uint64_t number,
		  struct tree_entry *out, struct input_error *error);
/* Finds an entry by key. -ENOENT: there is none. */
int tree_find(const struct tree *t, const struct input_file *file,
	      struct tree_reader *r, const char *key, struct tree_entry *out,
	      struct input_error *error);

void tree_reader_fini(struct tree_reader *r);

#endif
