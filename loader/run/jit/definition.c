/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/jit/definition.h"

#include <string.h>

void definition_begin(struct definition_lot *lot, unsigned first,
		      unsigned channels, size_t count)
{
	lot->first = first;
	lot->channels = channels;
	lot->count = count;
	lot->type = DTYPE_U1;
	lot->now = lot->memory[0];
	lot->spare = lot->memory[1];
}

static void exchange(struct definition_lot *lot, enum dtype type)
{
	union definition_values *now = lot->spare;

	lot->spare = lot->now;
	lot->now = now;
	lot->type = type;
}

static void convert(struct definition_lot *lot, enum dtype to)
{
	if (lot->type == to)
		return;
	for (unsigned c = 0; c < lot->channels; c++)
		dtype_convert(lot->type, &lot->now[c], to, &lot->spare[c],
			      lot->count);
	exchange(lot, to);
}

/* The results of operations on uint8 are truncated, not rounded. */
static void truncate_reals(struct definition_lot *lot)
{
	for (unsigned c = 0; c < lot->channels; c++) {
		for (size_t i = 0; i < lot->count; i++) {
			float v = lot->now[c].real[i];

			v = v > 0 ? v : 0;
			lot->spare[c].byte[i] = (uint8_t)(v < 255 ? v : 255);
		}
	}
	exchange(lot, DTYPE_U1);
}

static void run_point(const struct node *n, const float *operands,
		      struct definition_lot *lot)
{
	operands += n->first_operand + lot->first * n->op->value->num_operands;
	for (unsigned c = 0; c < lot->channels; c++) {
		float *v = lot->now[c].real;

		for (size_t i = 0; i < lot->count; i++)
			v[i] = n->op->value->point(v[i], operands);
		operands += n->op->value->num_operands;
	}
}

static void run_pixel(const struct node *n, const float *operands,
		      struct definition_lot *lot)
{
	for (size_t i = 0; i < lot->count; i++) {
		float rgb[IMAGE_CHANNELS];

		for (unsigned c = 0; c < IMAGE_CHANNELS; c++)
			rgb[c] = lot->now[c].real[i];
		n->op->value->pixel(rgb, operands + n->first_operand);
		for (unsigned c = 0; c < IMAGE_CHANNELS; c++)
			lot->now[c].real[i] = rgb[c];
	}
}

void definition_run(const struct chain *chain, const float *operands,
		    struct definition_lot *lot)
{
	for (size_t i = 0; i < chain->num_nodes; i++) {
		const struct node *n = &chain->nodes[i];

		if (node_is_value(n)) {
			convert(lot, DTYPE_F4);
			if (n->op->kind == OP_POINT)
				run_point(n, operands, lot);
			else
				run_pixel(n, operands, lot);
			if (n->type.dtype == DTYPE_U1)
				truncate_reals(lot);
		}
		convert(lot, n->type.dtype);
	}
}

/* Whether the bytes from `first` on are unchanged. */
static bool is_count(const uint8_t *bytes, unsigned first)
{
	for (unsigned i = 0; i < DEFINITION_LOT; i++) {
		if (bytes[i] != first + i)
			return false;
	}
	return true;
}

bool definition_table(const struct chain *chain, const float *operands,
		      unsigned channel, void *out)
{
	enum dtype type = chain_type(chain)->dtype;
	size_t size = DEFINITION_LOT * dtype_size(type);
	bool plain = type == DTYPE_U1;
	struct definition_lot lot;

	for (unsigned v = 0; v < DEFINITION_VALUES; v += DEFINITION_LOT) {
		definition_begin(&lot, channel, 1, DEFINITION_LOT);
		for (unsigned i = 0; i < DEFINITION_LOT; i++)
			lot.now[0].byte[i] = (uint8_t)(v + i);
		definition_run(chain, operands, &lot);
		memcpy((uint8_t *)out + v / DEFINITION_LOT * size, lot.now,
		       size);
		plain = plain && is_count(lot.now[0].byte, v);
	}
	return plain;
}
