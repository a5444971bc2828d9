/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of a column of a Parquet file: found, decompressed and decoded. */
#ifndef LOADER_TOOLS_INPUT_PARQUET_PAGE_H
#define LOADER_TOOLS_INPUT_PARQUET_PAGE_H

#include "loader/tools/input/foreign/file.h"
#include "loader/tools/input/input.h"
#include "loader/tools/input/parquet/footer.h"
#include "loader/util/scratch.h"

/* The leaf of the schema that a column has the values of. */
struct pq_leaf {
	enum pq_type type;
	uint32_t length;      /* of PQ_FIXED_BYTES */
	unsigned definitions; /* the level of a value that is no null */
	unsigned repetitions; /* lists within lists */
	/* Lists: the values of an element of each level, outermost first. All
	   lists of a level have one length. 0: not known yet. */
	uint64_t stride[BETON_MAX_NDIM];
};

struct pq_place {
	uint64_t at;	/* of the page's header, in the file */
	uint64_t first; /* value of the chunk */
};

/* The pages of a chunk. place[n].first is the number of values. */
struct pq_pages {
	uint64_t dictionary_at; /* 0: none */
	size_t n;
	struct pq_place place[];
};

/* Where the value of a page is. */
enum pq_form {
	PQ_FIXED,  /* `width` bytes each */
	PQ_BITS,   /* a bit each */
	PQ_SPANS,  /* struct pq_span each */
	PQ_INDEX,  /* u32 each, of the dictionary */
	PQ_FLAGS,  /* u32 each: booleans */
	PQ_DELTAS, /* int64_t each */
	PQ_SPLIT,  /* first bytes of all values, then second bytes ... */
};

struct pq_span {
	uint32_t at;
	uint32_t size;
};

struct pq_page {
	uint64_t at; /* of the page's header; 0: no page is loaded */
	uint64_t num_values;
	uint64_t num_present; /* values that are no nulls */
	enum pq_form form;
	uint32_t width;
	const uint8_t *values;
	size_t values_size;
	bool has_nulls;
	struct scratch bytes;
	struct scratch decoded; /* by the form */
	struct scratch slots;	/* u32 each: the value, or UINT32_MAX */
};

struct pq_datum {
	const uint8_t *bytes; /* NULL: a null */
	uint64_t size;
	uint8_t small[8];
};

/* The arguments of loading a page. */
struct pq_source {
	const struct input_file *file;
	const struct pq_chunk *chunk;
	const struct pq_leaf *leaf;
	struct scratch *packed; /* shared by the pages of a thread */
	struct input_error *error;
};

/* Finds the pages of a chunk by their headers. The caller frees them. */
int pq_pages_find(const struct pq_source *s, struct pq_pages **out);

/* Loads a page. If the levels of nested values are not those of lists of one
   length, the result is -EBADMSG. */
int pq_page_load(const struct pq_source *s, const struct pq_place *place,
		 const struct pq_page *dictionary, struct pq_page *out);
int pq_dictionary_load(const struct pq_source *s, uint64_t at,
		       struct pq_page *out);

/*
 * Finds the lengths of lists from the page that a chunk of `rows` lists begins
 * with. Sets leaf->stride and the shape of a row.
 */
int pq_measure_lists(const struct pq_source *s, const struct pq_place *place,
		     uint64_t rows, struct pq_leaf *leaf, uint64_t *shape);

/* Returns a value of a loaded page, i < num_values. */
void pq_page_get(const struct pq_page *p, const struct pq_page *dictionary,
		 uint64_t i, struct pq_datum *out);
void pq_page_fini(struct pq_page *p);

#endif
