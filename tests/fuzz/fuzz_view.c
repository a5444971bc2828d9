/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a batch file: as they are, and again with the correct length and
 * CRC, because no mutation would find these. An accepted file is read whole.
 */
#include "fs/base/util/bytes.h"
#include "loader/run/feed/batch_view.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/seal.h"

enum { VALUES_MAX = 4096 };

/* Makes the compiler read them, and a sanitizer look. */
static volatile uint8_t sink;

static void read_value(const struct batch_view_value *v)
{
	if (!v->bytes || !v->size)
		return;
	sink = v->bytes[0];
	sink = v->bytes[v->size / 2];
	sink = v->bytes[v->size - 1];
}

static void read_all(const struct batch_view *v)
{
	const struct beton_batch_header *h = v->header;
	uint32_t rows = (uint32_t)min_u64(h->num_samples, VALUES_MAX);
	struct batch_view_value value;

	for (uint32_t i = 0; i < h->spec_size; i++)
		sink = (uint8_t)v->spec[i];
	for (uint32_t row = 0; row < rows; row++)
		sink = (uint8_t)v->ids[row];
	for (uint32_t f = 0; f < min_u64(h->num_fields, 64); f++) {
		MUST(strlen(v->fields[f].name) < sizeof(v->fields[f].name));
		for (uint32_t row = 0; row < rows; row++) {
			value = batch_view_at(v, f, row);
			read_value(&value);
		}
	}
}

static void try(const uint8_t *bytes, size_t size)
{
	char why[BATCH_VIEW_WHY_SIZE] = "";
	struct batch_view v;

	if (batch_view_init(&v, bytes, size, why))
		MUST(why[0]);
	else
		read_all(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = calloc(size ? size : 1, 1);

	MUST(bytes);
	if (size)
		memcpy(bytes, data, size);
	try(bytes, size);
	seal_batch(bytes, size);
	try(bytes, size);
	free(bytes);
	return 0;
}
