/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/order/spec_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/order/order.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/suggest.h"
#include "fs/base/util/typed.h"

/* The default block is half a megabyte, which a disk reads at full speed
   (beton-orders(7)). The default window is a gigabyte of such blocks. */
enum { BLOCK_BYTES = 512 << 10, WINDOW_BLOCKS = 2048 };

/* The default bucket, in batches. */
enum { BUCKET_BATCHES = 8 };

/* The limit of blocks, windows and num_samples, so that their products fit in
   64 bits. It exceeds the samples of any dataset. */
#define SAMPLES_MAX ((uint64_t)1 << 40)

/* A part of the text: a key, or its value. It points into the caller's text,
   and has no NUL. */
struct spec_rest {
	const char *at;
	size_t size;
};

struct spec_key {
	const char *name;
	struct typed type; /* errors describe it, unless `expected` is set */
	size_t offset;	   /* of the uint64_t in struct spec, if !parse */
	bool (*parse)(const struct spec_key *key, const struct spec_rest *value,
		      const struct spec_facts *facts, struct spec *spec);
	const char *expected;
	/* Writes a better reason, or returns false. NULL: there is none. */
	bool (*complain)(const struct spec_rest *value,
			 const struct spec_facts *facts, char *why);
};

static bool is_text(const struct spec_rest *t, const char *word)
{
	return strlen(word) == t->size && !memcmp(word, t->at, t->size);
}

static bool parse_order(const struct spec_key *key, const struct spec_rest *v,
			const struct spec_facts *facts, struct spec *spec)
{
	const struct order_row *row = order_by_name(v->at, v->size);

	(void)key;
	(void)facts;
	if (row)
		spec->order = row->order;
	return row != NULL;
}

/* Returns the number of samples of mean size that fit into `bytes`, at
   least 1. */
static uint64_t samples_of_bytes(uint64_t bytes, const struct spec_facts *facts)
{
	unsigned __int128 n = (unsigned __int128)bytes * facts->samples /
			      max_u64(1, facts->data_bytes);

	if (n > SAMPLES_MAX)
		return SAMPLES_MAX;
	return max_u64(1, (uint64_t)n);
}

/* A number of samples or, with a unit, the size of them in bytes. */
static bool parse_window(const struct spec_key *key, const struct spec_rest *v,
			 const struct spec_facts *facts, struct spec *spec)
{
	static const struct typed size = { TYPED_SIZE, .min = 1,
					   .max = UINT64_MAX, .strict = true };
	uint64_t bytes;

	if (v->size && isdigit((unsigned char)v->at[v->size - 1]))
		return typed_parse(&key->type, v->at, v->size, &spec->window);
	if (!typed_parse(&size, v->at, v->size, &bytes))
		return false;
	spec->window = samples_of_bytes(bytes, facts);
	return true;
}

static bool parse_named(const struct subset_ref *ref,
			const struct spec_facts *facts, struct spec *spec)
{
	spec->subset = subset_find(facts->subsets, ref);
	if (!spec->subset || (ref->has_hash && ref->hash != spec->subset->hash))
		return false;
	spec->has_subset = true;
	spec->first = 0;
	spec->end = spec->subset->n;
	return true;
}

/* A canonical text has a hash of the list. If the file of the list has changed,
   refuse the text, because it would name other samples. */
static bool complain_of_hash(const struct spec_rest *v,
			     const struct spec_facts *facts, char *why)
{
	const struct subset *s = NULL;
	struct subset_ref ref;
	char now[SUBSET_TEXT_SIZE];

	if (subset_parse_ref(v->at, v->size, &ref))
		s = subset_find(facts->subsets, &ref);
	if (!s)
		return false;
	subset_text(s, now);
	snprintf(why, SPEC_WHY_SIZE,
		 "spec: subset=%.*s: it is %s: the file has changed",
		 (int)v->size, v->at, now);
	return true;
}

static bool complain_of_subset(const struct spec_rest *v,
			       const struct spec_facts *facts, char *why)
{
	if (!complain_of_hash(v, facts, why))
		snprintf(
			why, SPEC_WHY_SIZE,
			"spec: subset=%.*s: expected FIRST-END within the dataset's %llu samples, or a name that was given with its file, NAME:FILE",
			(int)min_u64(v->size, 40), v->at,
			(unsigned long long)facts->samples);
	return true;
}

static bool parse_range(const struct spec_rest *v, uint64_t min, uint64_t max,
			uint64_t *out)
{
	const struct typed range = TYPED_STRICT_IN(min, max);

	return typed_parse(&range, v->at, v->size, out);
}

static bool parse_subset(const struct spec_key *key, const struct spec_rest *v,
			 const struct spec_facts *facts, struct spec *spec)
{
	const char *dash = memchr(v->at, '-', v->size);
	struct subset_ref ref;
	struct spec_rest first, end;

	(void)key;
	if (subset_parse_ref(v->at, v->size, &ref))
		return parse_named(&ref, facts, spec);
	if (!dash)
		return false;
	first = (struct spec_rest){ v->at, (size_t)(dash - v->at) };
	end = (struct spec_rest){ dash + 1, v->size - first.size - 1 };
	spec->has_subset = true;
	return parse_range(&first, 0, facts->samples, &spec->first) &&
	       parse_range(&end, spec->first + 1, facts->samples, &spec->end);
}

#define AT(member) .offset = offsetof(struct spec, member)
#define NUMBER(low, high) .type = TYPED_STRICT_IN(low, high)

/* The rows are in the order of the canonical text. */
static const struct spec_key keys[] = {
	{ "order", .type = { TYPED_WORD, .word_at = order_name_at },
	  .parse = parse_order },
	{ "batch", NUMBER(1, SPEC_BATCH_MAX), AT(batch) },
	{ "seed", NUMBER(0, UINT64_MAX), AT(seed) },
	{ "drop_last", NUMBER(0, 1), AT(drop_last) },
	{ "block", NUMBER(1, SAMPLES_MAX), AT(block) },
	{ "window", NUMBER(1, SAMPLES_MAX), .parse = parse_window,
	  .expected =
		  "a number of samples from 1 to 2^40, or a size, such as 64MiB" },
	{ "bucket", NUMBER(1, SAMPLES_MAX), AT(bucket) },
	{ "num_samples", NUMBER(1, SAMPLES_MAX), AT(draws) },
	{ "subset", .parse = parse_subset, .complain = complain_of_subset },
};

static const char *key_name_at(size_t i)
{
	return i < ARRAY_LEN(keys) ? keys[i].name : NULL;
}

static bool parse_value(const struct spec_key *key, const struct spec_rest *v,
			const struct spec_facts *facts, struct spec *spec)
{
	if (key->parse)
		return key->parse(key, v, facts, spec);
	return typed_parse(&key->type, v->at, v->size,
			   (uint64_t *)((char *)spec + key->offset));
}

static const struct typed names = { TYPED_WORD, .word_at = key_name_at };

/* Names of keys in other loaders, and ours. */
static const struct other_word other_keys[] = {
	{ "batch_size", "batch" },     { "bs", "batch" },
	{ "shuffle", "order=random" }, { "samples", "subset" },
	{ "split", "subset" },	       { "block_size", "block" },
	{ "window_size", "window" },   { NULL, NULL },
};

static int unknown_key(const struct spec_rest *name, char *why)
{
	struct suggestion s = { name->at, name->size, NULL, 0 };
	char expected[TYPED_EXPECTED_SIZE], meant[SUGGEST_TEXT_SIZE];

	for (size_t i = 0; name->size && i < ARRAY_LEN(keys); i++)
		suggest_try(&s, keys[i].name);
	if (name->size)
		suggest_other(&s, other_keys);
	snprintf(why, SPEC_WHY_SIZE, "spec: unknown key '%.*s': expected %s%s",
		 (int)min_u64(name->size, 40), name->at,
		 typed_expected(&names, expected),
		 suggest_text(&s, meant, sizeof(meant)));
	return -EINVAL;
}

static int refuse_value(const struct spec_key *key,
			const struct spec_rest *value, char *why)
{
	char expected[TYPED_EXPECTED_SIZE];

	snprintf(why, SPEC_WHY_SIZE, "spec: %s=%.*s: expected %s%s", key->name,
		 (int)min_u64(value->size, 40), value->at,
		 key->expected ? key->expected
			       : typed_expected(&key->type, expected),
		 memchr(value->at, ';', value->size) ||
				 memchr(value->at, ' ', value->size)
			 ? "; a `,' separates keys"
			 : "");
	return -EINVAL;
}

/* Returns the key of a name; NULL: there is none. */
static const struct spec_key *find_key(const struct spec_rest *name)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (is_text(name, keys[i].name))
			return &keys[i];
	}
	return NULL;
}

static int parse_key(const struct spec_rest *name,
		     const struct spec_rest *value,
		     const struct spec_facts *facts, struct spec *spec,
		     unsigned *seen, char *why)
{
	const struct spec_key *key = find_key(name);
	unsigned bit;

	if (!key)
		return unknown_key(name, why);
	bit = 1u << (key - keys);
	if (*seen & bit) {
		snprintf(why, SPEC_WHY_SIZE, "spec: %s is given twice",
			 key->name);
		return -EINVAL;
	}
	*seen |= bit;
	if (parse_value(key, value, facts, spec))
		return 0;
	if (key->complain && key->complain(value, facts, why))
		return -EINVAL;
	return refuse_value(key, value, why);
}

static int parse_pairs(const char *text, const struct spec_facts *facts,
		       struct spec *spec, char *why)
{
	unsigned seen = 0;
	size_t size, equals;
	int r = 0;

	for (const char *at = text; *text && !r; at += size + 1) {
		size = strcspn(at, ",");
		equals = strcspn(at, ",=");
		if (equals >= size) {
			snprintf(why, SPEC_WHY_SIZE,
				 "spec: expected key=value instead of '%.*s'",
				 (int)min_u64(size, 40), at);
			return -EINVAL;
		}
		r = parse_key(&(struct spec_rest){ at, equals },
			      &(struct spec_rest){ at + equals + 1,
						   size - equals - 1 },
			      facts, spec, &seen, why);
		if (!at[size])
			break;
	}
	return r;
}

/* Fills in defaults that depend on the dataset, and clears keys that the order
   does not use. */
static void resolve_defaults(struct spec *spec, const struct spec_facts *facts)
{
	const struct order_row *row = order_by_id(spec->order);

	if (!row->draws)
		spec->draws = 0;
	else if (!spec->draws)
		spec->draws = spec->end;
	if (!row->uses_buckets)
		spec->bucket = 0;
	else if (!spec->bucket)
		spec->bucket = BUCKET_BATCHES * spec->batch;
	if (!row->uses_blocks) {
		spec->block = 0;
		spec->window = 0;
		return;
	}
	if (!spec->block)
		spec->block = samples_of_bytes(BLOCK_BYTES, facts);
	if (!spec->window)
		spec->window = max_u64(1, min_u64(facts->samples,
						  WINDOW_BLOCKS * spec->block));
}

/* Refuses order=weighted without weights. A subset whose ids are not loaded
   passes: its file may have weights. */
static int check_weights(const struct spec *spec, char *why)
{
	const struct subset *s = spec->subset;

	if (!order_by_id(spec->order)->draws || (s && (!s->ids || s->sums)))
		return 0;
	snprintf(
		why, SPEC_WHY_SIZE,
		"spec: order=weighted: expected subset=NAME too, a list with weights");
	return -EINVAL;
}

int spec_parse(const char *text, const struct spec_facts *facts,
	       struct spec *out, char why[SPEC_WHY_SIZE])
{
	struct spec spec = {
		.order = BETON_ORDER_RANDOM,
		.batch = 256,
		.drop_last = 1,
		.end = facts->samples,
	};
	int r = parse_pairs(text, facts, &spec, why);

	if (!r)
		r = check_weights(&spec, why);
	if (r)
		return r;
	resolve_defaults(&spec, facts);
	*out = spec;
	return 0;
}

bool spec_names_subset(const char *text, struct subset_ref *out)
{
	static const char key[] = "subset=";
	const size_t n = sizeof(key) - 1;
	size_t size;

	for (; *text; text += size + (text[size] == ',')) {
		size = strcspn(text, ",");
		if (size > n && !memcmp(text, key, n))
			return subset_parse_ref(text + n, size - n, out);
	}
	return false;
}

void spec_canonical(const struct spec *spec, char out[SPEC_TEXT_MAX])
{
	typedef unsigned long long ull;
	const struct order_row *row = order_by_id(spec->order);
	char subset[SUBSET_TEXT_SIZE];
	int n = snprintf(out, SPEC_TEXT_MAX,
			 "order=%s,batch=%llu,seed=%llu,drop_last=%llu",
			 row->name, (ull)spec->batch, (ull)spec->seed,
			 (ull)spec->drop_last);

	if (row->uses_blocks)
		n += snprintf(out + n, SPEC_TEXT_MAX - (size_t)n,
			      ",block=%llu,window=%llu", (ull)spec->block,
			      (ull)spec->window);
	if (row->uses_buckets)
		n += snprintf(out + n, SPEC_TEXT_MAX - (size_t)n,
			      ",bucket=%llu", (ull)spec->bucket);
	if (row->draws)
		n += snprintf(out + n, SPEC_TEXT_MAX - (size_t)n,
			      ",num_samples=%llu", (ull)spec->draws);
	if (spec->subset) {
		subset_text(spec->subset, subset);
		snprintf(out + n, SPEC_TEXT_MAX - (size_t)n, ",subset=%s",
			 subset);
	} else if (spec->has_subset) {
		snprintf(out + n, SPEC_TEXT_MAX - (size_t)n,
			 ",subset=%llu-%llu", (ull)spec->first, (ull)spec->end);
	}
}
