/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/graph/op_table.h"

#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/pipeline/graph/synonym.h"

/* The list of loader/pipeline/ops, made by the Makefile: OP(center_crop) ... */
#define OP(name) extern const struct op op_##name;
#include "ops.inc"
#undef OP

static const struct op *const ops[] = {
#define OP(name) &op_##name,
#include "ops.inc"
#undef OP
};

const struct op *op_table_row(size_t i)
{
	return i < ARRAY_LEN(ops) ? ops[i] : NULL;
}

static const struct op *by_own_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		if (!strcmp(ops[i]->name, name))
			return ops[i];
	}
	return NULL;
}

const struct op *op_table_find(const char *name)
{
	const struct op *op = by_own_name(name);
	const struct alias *alias = op ? NULL : alias_of(name);
	char american[SYNONYM_AMERICAN_SIZE];

	if (alias)
		return by_own_name(alias->ours);
	if (!op && synonym_american(name, american))
		op = by_own_name(american);
	return op;
}
