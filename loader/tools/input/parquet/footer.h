/* SPDX-License-Identifier: Apache-2.0 */
/* The footer of a Parquet file: its schema, and where its columns are. */
#ifndef LOADER_TOOLS_INPUT_PARQUET_FOOTER_H
#define LOADER_TOOLS_INPUT_PARQUET_FOOTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/util/log.h"
#include "loader/tools/input/input.h"

/* The numbers of the format. */
enum pq_type {
	PQ_BOOL,
	PQ_INT32,
	PQ_INT64,
	PQ_INT96,
	PQ_FLOAT,
	PQ_DOUBLE,
	PQ_BYTES,
	PQ_FIXED_BYTES,
	PQ_GROUP = -1, /* not a leaf */
};

enum pq_repetition { PQ_REQUIRED, PQ_OPTIONAL, PQ_REPEATED };

/* The meaning of values, from either of the format's two notations. */
enum pq_meaning {
	PQ_PLAIN,
	PQ_TEXT,
	PQ_JSON,
	PQ_LIST,
	PQ_MAP,
	PQ_DECIMAL,
	PQ_FLOAT16,
	PQ_INTEGER, /* `bits`, `is_signed` */
	PQ_TIME,    /* dates, times, durations: integers */
	PQ_NOTHING, /* all values are null */
};

/* The nodes of the schema's tree are in depth-first order, root first. */
struct pq_node {
	const char *name; /* within the footer, without a NUL */
	size_t name_size;
	enum pq_type type;
	uint32_t length; /* of PQ_FIXED_BYTES */
	enum pq_repetition repetition;
	uint32_t num_children;
	enum pq_meaning meaning;
	unsigned bits;
	bool is_signed;
};

/* A column within a row group. */
struct pq_chunk {
	uint64_t at; /* of the first page, in the file */
	uint64_t size;
	uint64_t num_values; /* with nulls */
	int codec;
	enum pq_type type;
	bool is_encrypted;
};

struct pq_group {
	uint64_t rows;
	struct pq_chunk *chunks; /* one per leaf; within pq_footer.chunks */
};

struct pq_footer {
	uint8_t *bytes;
	struct pq_node *nodes;
	size_t num_nodes;
	size_t num_leaves;
	struct pq_group *groups;
	size_t num_groups;
	struct pq_chunk *chunks;
	/* Hugging Face's description of the features, within `bytes`. */
	const char *features;
	size_t features_size;
};

/* Reads and checks the footer of `path`. Failures are logged. */
int pq_footer_open(const char *path, struct log *log, struct pq_footer *out);
void pq_footer_close(struct pq_footer *f);

#endif
