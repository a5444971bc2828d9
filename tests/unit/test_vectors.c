/* SPDX-License-Identifier: Apache-2.0 */
/* The golden vectors of beton-orders(7), tests/vectors.json: the meaning of a
   seed never changes. */
#include <jansson.h>
#include <string.h>

#include "fs/base/order/order.h"
#include "fs/base/order/spec_text.h"
#include "fs/base/util/rng.h"
#include "tests/unit/t.h"

enum { WORDS_MAX = 16 };

static json_t *vectors;

static uint64_t word(const json_t *o)
{
	CHECK(json_is_string(o));
	return strtoull(json_string_value(o), NULL, 16);
}

static uint64_t number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	CHECK(json_is_integer(v));
	return (uint64_t)json_integer_value(v);
}

static const json_t *rng_part(const char *key)
{
	const json_t *part =
		json_object_get(json_object_get(vectors, "rng"), key);

	CHECK(json_is_array(part) && json_array_size(part));
	return part;
}

static void test_words_are_mixed_as_ever(void)
{
	const json_t *mix = rng_part("mix");

	for (size_t i = 0; i < json_array_size(mix); i++) {
		const json_t *pair = json_array_get(mix, i);

		CHECK(rng_mix(word(json_array_get(pair, 0))) ==
		      word(json_array_get(pair, 1)));
	}
}

static void test_keys_are_made_of_words_as_ever(void)
{
	const json_t *keys = rng_part("key");

	for (size_t i = 0; i < json_array_size(keys); i++) {
		const json_t *from = json_array_get(json_array_get(keys, i), 0);
		uint64_t words[WORDS_MAX];
		size_t n = json_array_size(from);

		CHECK(n <= WORDS_MAX);
		for (size_t k = 0; k < n; k++)
			words[k] = word(json_array_get(from, k));
		CHECK(rng_key(words, n) ==
		      word(json_array_get(json_array_get(keys, i), 1)));
	}
}

static void test_keys_are_made_of_texts_as_ever(void)
{
	const json_t *texts = rng_part("text");

	for (size_t i = 0; i < json_array_size(texts); i++) {
		const json_t *pair = json_array_get(texts, i);

		CHECK(rng_key_of_text(json_string_value(json_array_get(
			      pair, 0))) == word(json_array_get(pair, 1)));
	}
}

static void test_streams_give_the_numbers_they_gave(void)
{
	const json_t *s =
		json_object_get(json_object_get(vectors, "rng"), "stream");
	const json_t *numbers = json_object_get(s, "numbers");
	const json_t *uniform = json_object_get(s, "uniform");
	struct rng raw = { .key = word(json_object_get(s, "key")) };
	struct rng scaled = raw;

	CHECK(json_array_size(numbers) && json_array_size(uniform));
	for (size_t i = 0; i < json_array_size(numbers); i++)
		CHECK(rng_next(&raw) == word(json_array_get(numbers, i)));
	for (size_t i = 0; i < json_array_size(uniform); i++)
		CHECK(rng_uniform(&scaled) ==
		      json_real_value(json_array_get(uniform, i)));
}

static void test_permutations_are_what_they_were(void)
{
	const json_t *all = json_object_get(vectors, "permutations");

	CHECK(json_array_size(all));
	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *v = json_array_get(all, i);
		const json_t *first = json_object_get(v, "first");
		struct permutation p = permutation_init(
			number(v, "n"), word(json_object_get(v, "key")));

		for (size_t k = 0; k < json_array_size(first); k++)
			CHECK(permutation_at(&p, k) ==
			      (uint64_t)json_integer_value(
				      json_array_get(first, k)));
		CHECK(permutation_at(&p, p.n - 1) == number(v, "last"));
	}
}

static void check_order(const json_t *v)
{
	const struct spec_facts facts = {
		.samples = number(v, "samples"),
		.data_bytes = number(v, "data_bytes"),
	};
	const json_t *first = json_object_get(v, "first");
	char why[SPEC_WHY_SIZE], text[SPEC_TEXT_MAX];
	struct spec spec;
	struct order order;

	CHECK(!spec_parse(json_string_value(json_object_get(v, "spec")), &facts,
			  &spec, why));
	spec_canonical(&spec, text);
	CHECK(!strcmp(text,
		      json_string_value(json_object_get(v, "canonical"))));
	CHECK(spec_batches(&spec) == number(v, "batches"));
	order = order_init(&spec, number(v, "epoch"));
	for (size_t k = 0; k < json_array_size(first); k++)
		CHECK(order_sample(&order, k) ==
		      (uint64_t)json_integer_value(json_array_get(first, k)));
	CHECK(order_sample(&order, order.n - 1) == number(v, "last"));
}

static void test_orders_are_what_they_were(void)
{
	const json_t *all = json_object_get(vectors, "orders");

	CHECK(json_array_size(all));
	for (size_t i = 0; i < json_array_size(all); i++)
		check_order(json_array_get(all, i));
}

int main(void)
{
	vectors = json_load_file("tests/vectors.json", 0, NULL);
	CHECK(vectors);
	test_words_are_mixed_as_ever();
	test_keys_are_made_of_words_as_ever();
	test_keys_are_made_of_texts_as_ever();
	test_streams_give_the_numbers_they_gave();
	test_permutations_are_what_they_were();
	test_orders_are_what_they_were();
	json_decref(vectors);
	return 0;
}
