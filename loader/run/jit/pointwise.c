/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/jit/pointwise.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/pipeline/op/operands.h"
#include "loader/run/jit/definition.h"
#include "loader/run/jit/emit.h"

/* --- tables --- */

bool pointwise_fill_table(const struct pointwise *stage, const float *operands,
			  union pointwise_table *table)
{
	size_t size = POINTWISE_VALUES * dtype_size(stage->dtype);
	uint8_t *values = (uint8_t *)table;
	bool plain = true;

	for (unsigned c = 0; c < POINTWISE_CHANNELS; c++)
		plain &= definition_table(stage->chain, operands, c,
					  values + c * size);
	return plain;
}

/* Whether the channels have the same operands. */
static bool is_of_all_channels(const struct chain *chain, const float *operands)
{
	for (size_t i = 0; i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];
		const float *first = operands + n->first_operand;
		size_t count = n->op->value ? n->op->value->num_operands : 0;

		if (!node_is_value(n))
			continue;
		for (size_t k = count; k < POINTWISE_CHANNELS * count; k++) {
			if (first[k] != first[k - count])
				return false;
		}
	}
	return true;
}

const struct byte_map *pointwise_map(const struct pointwise *stage,
				     const float *operands,
				     struct byte_map *scratch)
{
	uint8_t table[POINTWISE_VALUES];

	if (!stage->varies)
		return stage->has_map ? &stage->map : NULL;
	if (!stage->is_of_bytes || !is_of_all_channels(stage->chain, operands))
		return NULL;
	definition_table(stage->chain, operands, 0, table);
	byte_map_init(scratch, table);
	return scratch;
}

/* --- a pointwise stage --- */

/* Repeats each operand for all lanes of a flat kernel. */
static void spread(const struct pointwise *stage, const float *operands,
		   float *out)
{
	const struct chain *chain = stage->chain;

	for (size_t i = 0; i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];
		const float *from = operands + n->first_operand;
		size_t count = n->op->value ? n->op->value->num_operands : 0;

		if (!node_is_value(n))
			continue;
		for (size_t k = 0; k < count * KERNEL_LANES; k++)
			*out++ = from[k % POINTWISE_CHANNELS * count +
				      k / KERNEL_LANES];
	}
}

const float *pointwise_operands(const struct pointwise *stage,
				const struct pipeline_row *row, float *scratch)
{
	size_t count = stage->chain->num_operands;

	if (!stage->varies)
		return stage->operands;
	operands_fill(stage->chain, row, scratch);
	if (stage->flat)
		spread(stage, scratch, scratch + count);
	return scratch;
}

static void init_facts(struct pointwise *stage, const struct chain *chain)
{
	const struct type *type = chain_type(chain);

	stage->chain = chain;
	stage->dtype = type->dtype;
	stage->layout = type->layout;
	stage->varies = operands_vary(chain);
	stage->flat = emit_is_flat(chain);
	stage->num_floats = chain->num_operands;
	if (stage->flat)
		stage->num_floats +=
			chain->num_operands / POINTWISE_CHANNELS * KERNEL_LANES;
	for (size_t i = 0; i < chain->num_nodes; i++) {
		stage->is_custom |= chain->nodes[i].custom != NULL;
		stage->is_wide |= chain->nodes[i].op->kind == OP_PIXEL;
	}
	stage->is_of_bytes =
		type->dtype == DTYPE_U1 && !stage->is_wide && !stage->is_custom;
}

void pointwise_set_kernel(struct pointwise *stage, kernel_fn *run,
			  enum pointwise_engine engine)
{
	atomic_store(&stage->engine, engine);
	atomic_store_explicit(&stage->kernel, run, memory_order_release);
}

int pointwise_emit(struct pointwise *stage)
{
	free(stage->code);
	stage->code = emit_chain(stage->chain);
	return stage->code ? 0 : -ENOMEM;
}

static int find_prebuilt(struct pointwise *stage)
{
	kernel_fn *run;
	int r = pointwise_emit(stage);

	if (r)
		return r;
	run = isa_find(stage->isa, stage->code);
	if (run)
		pointwise_set_kernel(stage, run, POINTWISE_PREBUILT);
	return 0;
}

int pointwise_init(struct pointwise *stage, const struct chain *chain,
		   const struct isa *isa)
{
	*stage = (struct pointwise){ .isa = isa };
	init_facts(stage, chain);
	if (!stage->varies) {
		stage->operands =
			calloc(stage->num_floats + 1, sizeof(*stage->operands));
		if (!stage->operands)
			return -ENOMEM;
		operands_fill(chain, NULL, stage->operands);
		if (stage->flat)
			spread(stage, stage->operands,
			       stage->operands + chain->num_operands);
		if (!stage->is_wide)
			stage->plain = pointwise_fill_table(
				stage, stage->operands, &stage->table);
		stage->has_map = stage->is_of_bytes &&
				 is_of_all_channels(chain, stage->operands);
		if (stage->has_map)
			byte_map_init(&stage->map, stage->table.of_8);
	}
	return stage->is_custom ? 0 : find_prebuilt(stage);
}

void pointwise_fini(struct pointwise *stage)
{
	free(stage->operands);
	free(stage->code);
}

bool pointwise_is_copy(const struct pointwise *stage)
{
	return stage->plain && stage->layout == LAYOUT_HWC;
}

enum pointwise_engine pointwise_engine(const struct pointwise *stage)
{
	return pointwise_is_copy(stage) ? POINTWISE_NOTHING
					: atomic_load(&stage->engine);
}

const char *pointwise_engine_name(const struct pointwise *stage)
{
	static const char *const names[] = { "generic", "prebuilt", "generated",
					     "none" };

	return names[pointwise_engine(stage)];
}
