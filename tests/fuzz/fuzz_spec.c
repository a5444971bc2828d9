/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a sampling spec. If it is accepted, it has one canonical form,
   and its order contains only its own samples. */
#include "fs/base/order/order.h"
#include "fs/base/order/spec_text.h"
#include "fs/base/util/bytes.h"
#include "tests/fuzz/fuzz.h"

static uint64_t ids[] = { 41, 7, 999, 0, 40, 8 };
static const struct subset named = {
	.name = "few",
	.hash = 0x0123456789abcdef,
	.n = ARRAY_LEN(ids),
	.ids = ids,
};

static const struct spec_facts facts[] = {
	{ .samples = 1000, .data_bytes = 1000 << 10, .subsets = &named },
	{ .samples = 0, .data_bytes = 0 },
	{ .samples = 1, .data_bytes = 0 },
	{ .samples = (uint64_t)1 << 36, .data_bytes = UINT64_MAX },
};

static void check_order(const struct spec *spec)
{
	uint64_t n = spec->end - spec->first, id;
	const uint64_t positions[] = { 0, n / 2, n - 1 };
	struct order o;

	if (!n)
		return;
	o = order_init(spec, 3);
	for (size_t i = 0; i < ARRAY_LEN(positions); i++) {
		id = order_sample(&o, positions[i]);
		if (spec->subset)
			MUST(id < 1000);
		else
			MUST(id >= spec->first && id < spec->end);
	}
}

static void check_spec(const struct spec *spec, const struct spec_facts *f)
{
	char text[SPEC_TEXT_MAX], again[SPEC_TEXT_MAX], why[SPEC_WHY_SIZE];
	struct spec same;

	spec_canonical(spec, text);
	MUST(!spec_parse(text, f, &same, why));
	spec_canonical(&same, again);
	MUST(!strcmp(text, again));
	MUST(spec_batches(spec) == spec_batches(&same));
	if (spec_batches(spec)) {
		MUST(spec_batch_samples(spec, spec_batches(spec) - 1) >= 1);
		MUST(spec_steps(spec, 0, 3) <= spec_batches(spec));
	}
	check_order(spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), why[SPEC_WHY_SIZE];
	struct spec spec;

	for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
		why[0] = '\0';
		if (!spec_parse(text, &facts[i], &spec, why))
			check_spec(&spec, &facts[i]);
		else
			MUST(why[0]);
	}
	free(text);
	return 0;
}
