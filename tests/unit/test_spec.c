/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "fs/base/order/order.h"
#include "fs/base/order/spec_text.h"
#include "fs/base/util/bytes.h"
#include "tests/unit/t.h"

static const struct spec_facts facts = { .samples = 1000,
					 .data_bytes = 1000 * 64 << 10 };
static char why[SPEC_WHY_SIZE];

static const char *canonical_of(const char *text, const struct spec_facts *of)
{
	static char out[SPEC_TEXT_MAX];
	struct spec spec;

	why[0] = '\0';
	if (spec_parse(text, of, &spec, why))
		return why;
	spec_canonical(&spec, out);
	return out;
}

static void every_spelling_has_one_canonical_form(void)
{
	static const char *const table[][2] = {
		{ "", "order=random,batch=256,seed=0,drop_last=1" },
		{ "order=random", "order=random,batch=256,seed=0,drop_last=1" },
		{ "seed=7,batch=3", "order=random,batch=3,seed=7,drop_last=1" },
		{ "drop_last=0,order=sequential",
		  "order=sequential,batch=256,seed=0,drop_last=0" },
		{ "seed=18446744073709551615",
		  "order=random,batch=256,seed=18446744073709551615,"
		  "drop_last=1" },
		{ "batch=1048576",
		  "order=random,batch=1048576,seed=0,drop_last=1" },
		/* Keys that an order does not use are checked, then dropped. */
		{ "block=4,window=9",
		  "order=random,batch=256,seed=0,drop_last=1" },
		{ "order=quasi_random,block=4,window=9",
		  "order=quasi_random,batch=256,seed=0,drop_last=1,"
		  "block=4,window=9" },
		{ "order=bucketed,batch=32",
		  "order=bucketed,batch=32,seed=0,drop_last=1,bucket=256" },
		{ "bucket=9,order=bucketed,window=3",
		  "order=bucketed,batch=256,seed=0,drop_last=1,bucket=9" },
		{ "bucket=9", "order=random,batch=256,seed=0,drop_last=1" },
		/* 512 KiB of 64 KiB samples. */
		{ "order=quasi_random",
		  "order=quasi_random,batch=256,seed=0,drop_last=1,"
		  "block=8,window=1000" },
		{ "order=quasi_random,window=1MiB",
		  "order=quasi_random,batch=256,seed=0,drop_last=1,"
		  "block=8,window=16" },
		{ "order=quasi_random,window=1KiB",
		  "order=quasi_random,batch=256,seed=0,drop_last=1,"
		  "block=8,window=1" },
		{ "subset=10-20",
		  "order=random,batch=256,seed=0,drop_last=1,subset=10-20" },
		{ "subset=0-1000",
		  "order=random,batch=256,seed=0,drop_last=1,subset=0-1000" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const char *text = canonical_of(table[i][0], &facts);

		CHECK(!strcmp(text, table[i][1]));
	}
}

static void the_canonical_form_is_its_own(void)
{
	static const char *const table[] = {
		"",
		"order=quasi_random",
		"subset=3-4,order=sequential",
		"order=quasi_random,window=64MiB,block=3,batch=7",
	};
	char once[SPEC_TEXT_MAX];

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		strcpy(once, canonical_of(table[i], &facts));
		CHECK(!strcmp(canonical_of(once, &facts), once));
	}
}

/* The longest canonical SPEC there can be. */
static void the_longest_spec_fits(void)
{
	const struct spec_facts most = { .samples = (uint64_t)1 << 36,
					 .data_bytes = 1 };
	const char *text = canonical_of(
		"order=quasi_random,batch=1048576,seed=18446744073709551615,"
		"drop_last=1,block=1099511627776,window=1099511627776,"
		"subset=68719476735-68719476736",
		&most);

	CHECK(!strncmp(text, "order=quasi_random", 18));
	CHECK(strstr(text, "subset=68719476735-68719476736"));
	CHECK(strlen(text) + 1 <= SPEC_TEXT_MAX);
}

/* The message is complete whatever orders the table has. */
static void a_wrong_order_lists_the_right_ones(void)
{
	struct spec spec;

	CHECK(spec_parse("order=x", &facts, &spec, why) == -EINVAL);
	for (size_t i = 0; order_name_at(i); i++)
		CHECK(strstr(why, order_name_at(i)));
}

static void nonsense_is_refused_by_name(void)
{
	static const char *const table[][2] = {
		{ ",", "key=value" },
		{ "order", "key=value" },
		{ "draws=4", "unknown key 'draws'" },
		{ "order=", "order=" },
		{ "order=rand", "order=rand: expected one of sequential, " },
		{ "order=Random", "order=Random" },
		{ "order=random,", "key=value" },
		{ ",order=random", "key=value" },
		{ "order=random,,seed=1", "key=value" },
		{ "batch=0", "batch=0" },
		{ "batch=1048577", "a whole number from 1 to 1048576" },
		{ "batch=007", "batch=007" },
		{ "batch=-1", "batch=-1" },
		{ "batch=1.5", "batch=1.5" },
		{ "batch= 1", "batch= 1" },
		{ "batch=1 ", "batch=1 " },
		{ "seed=18446744073709551616", "seed=" },
		{ "seed=", "seed=: expected a whole number below 2^64" },
		{ "drop_last=2", "drop_last=2: expected 0 or 1" },
		{ "drop_last=true", "drop_last" },
		{ "block=0", "block=0" },
		{ "block=1KiB", "block" },
		{ "window=0", "window=0" },
		{ "window=0MiB", "window" },
		{ "window=MiB", "window" },
		{ "window=1MB", "2^40, or a size, such as 64MiB" },
		{ "window=1M", "window=1M: expected" },
		{ "window=1miB", "window=1miB: expected" },
		{ "window=01KiB", "window=01KiB: expected" },
		{ "window=08", "window=08: expected" },
		{ "window=1099511627777", "window=1099511627777: expected" },
		{ "window=18446744073709551615TiB", "window" },
		{ "subset=", "subset" },
		{ "subset=5", "subset" },
		{ "subset=5-5", "subset" },
		{ "subset=6-5", "subset" },
		{ "subset=0-1001", "subset" },
		{ "subset=1000-1001", "subset" },
		{ "subset=-5", "subset" },
		{ "subset=1-2-3", "subset" },
		{ "subset=18446744073709551615-0", "subset" },
		{ "seed=1,seed=1", "seed is given twice" },
		{ "color=red", "'color': expected one of order, batch, seed" },
		{ "Seed=1", "'Seed'" },
		{ "=1", "''" },
		{ "order=random\n", "order=random" },
		{ "seed=1 ,batch=2", "seed" },
	};
	struct spec spec;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		why[0] = '\0';
		CHECK(spec_parse(table[i][0], &facts, &spec, why) == -EINVAL);
		CHECK(strstr(why, table[i][1]));
	}
}

static void long_nonsense_is_cut_not_overrun(void)
{
	char text[5000];
	struct spec spec;

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	CHECK(spec_parse(text, &facts, &spec, why) == -EINVAL);
	text[2000] = '=';
	CHECK(spec_parse(text, &facts, &spec, why) == -EINVAL);
	memcpy(text, "batch=", 6);
	CHECK(spec_parse(text, &facts, &spec, why) == -EINVAL);
	CHECK(strlen(why) < SPEC_WHY_SIZE);
}

static void datasets_without_samples_or_bytes_have_specs(void)
{
	const struct spec_facts none = { .samples = 0, .data_bytes = 0 },
				no_bytes = { .samples = 10, .data_bytes = 0 };
	struct spec spec;

	CHECK(!spec_parse("", &none, &spec, why));
	CHECK(spec_batches(&spec) == 0);
	CHECK(!spec_parse("order=quasi_random", &none, &spec, why));
	CHECK(spec.block >= 1 && spec.window >= 1);
	CHECK(!spec_parse("order=quasi_random", &no_bytes, &spec, why));
	CHECK(spec.block >= 1 && spec.window == 10);
	CHECK(spec_parse("subset=0-0", &none, &spec, why) == -EINVAL);
}

static struct spec spec_of(const char *text, uint64_t samples)
{
	const struct spec_facts f = { .samples = samples,
				      .data_bytes = samples };
	struct spec spec;

	CHECK(!spec_parse(text, &f, &spec, why));
	return spec;
}

static void batches_cover_the_samples(void)
{
	struct spec spec = spec_of("batch=3", 10);

	CHECK(spec_batches(&spec) == 3 && spec_batch_samples(&spec, 2) == 3);
	spec = spec_of("batch=3,drop_last=0", 10);
	CHECK(spec_batches(&spec) == 4 && spec_batch_samples(&spec, 3) == 1);
	spec = spec_of("batch=5,drop_last=0", 10);
	CHECK(spec_batches(&spec) == 2 && spec_batch_samples(&spec, 1) == 5);
	spec = spec_of("batch=11", 10);
	CHECK(spec_batches(&spec) == 0);
	spec = spec_of("batch=11,drop_last=0", 10);
	CHECK(spec_batches(&spec) == 1 && spec_batch_samples(&spec, 0) == 10);
	spec = spec_of("batch=3,drop_last=0,subset=2-9", 10);
	CHECK(spec_batches(&spec) == 3 && spec_batch_samples(&spec, 2) == 1);
}

int main(void)
{
	every_spelling_has_one_canonical_form();
	the_canonical_form_is_its_own();
	the_longest_spec_fits();
	a_wrong_order_lists_the_right_ones();
	nonsense_is_refused_by_name();
	long_nonsense_is_cut_not_overrun();
	datasets_without_samples_or_bytes_have_specs();
	batches_cover_the_samples();
	return 0;
}
