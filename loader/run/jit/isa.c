/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/jit/isa.h"

#include "fs/base/util/bytes.h"
#include "loader/run/jit/emit.h"

/* Declared by the names that the Makefile gives to ISA. */
ISA_DECLARE(struct gather, gather);
extern const struct prebuilt prebuilt_plain[];

static bool is_always(void)
{
	return true;
}

#ifdef __x86_64__
extern const struct prebuilt prebuilt_v3[];
#endif

static const struct isa isas[] = {
#ifdef __x86_64__
	{ .name = "x86-64-v3",
	  .flags = { "-mavx2", "-mf16c" },
	  .is_supported = isa_has_v3,
	  .gather = &gather_v3,
	  .prebuilt = prebuilt_v3 },
	{ .name = "x86-64",
	  .is_weak = true,
#elif defined(__aarch64__)
	{ .name = "aarch64",
#else
	{ .name = "plain",
#endif
	  .is_supported = is_always,
	  .gather = &gather_plain,
	  .prebuilt = prebuilt_plain },
};

const struct isa *isa_row(size_t i)
{
	return i < ARRAY_LEN(isas) ? &isas[i] : NULL;
}

const struct isa *isa_best(void)
{
	size_t i = 0;

	while (!isas[i].is_supported())
		i++;
	return &isas[i];
}

kernel_fn *isa_find(const struct isa *isa, const char *text)
{
	uint64_t hash[2];
	const struct prebuilt *p;

	emit_hash(text, hash);
	for (p = isa->prebuilt; p->run; p++) {
		if (p->hash[0] == hash[0] && p->hash[1] == hash[1])
			break;
	}
	return p->run;
}
