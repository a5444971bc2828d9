/* SPDX-License-Identifier: Apache-2.0 */
/* Which fields the schema of a Parquet file makes. */
#ifndef LOADER_TOOLS_INPUT_PARQUET_COLUMNS_H
#define LOADER_TOOLS_INPUT_PARQUET_COLUMNS_H

#include "loader/tools/input/input.h"
#include "loader/tools/input/parquet/footer.h"
#include "loader/tools/input/parquet/page.h"

/* How values of a column become those of the field with its index. */
struct pq_column {
	struct pq_leaf leaf;
	size_t chunk; /* index of the leaf in a row group */
	enum pq_meaning meaning;
	bool is_unsigned;
	/* Values without a type of their own become images if they begin like
	   images. */
	bool may_be_image;
	unsigned element; /* lists: bytes of an element of the array */
};

/* Adds a field to `in`, and a column, for each column of the schema that a
   dataset can hold; and a refused field for each other. Failures are logged.
   The caller frees the columns. */
int pq_columns_find(const struct pq_footer *footer, struct input *in,
		    struct pq_column **out);

#endif
