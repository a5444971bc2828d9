/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/run/loop/state.h"
#include "tests/unit/t.h"

static const struct state good = {
	.fingerprint = "0123456789abcdef0123456789abcdef",
	.spec = "order=random,batch=256,seed=0,drop_last=1",
	.epoch = 3,
	.batches = 17,
};

static bool same(const struct state *a, const struct state *b)
{
	return !strcmp(a->fingerprint, b->fingerprint) &&
	       !strcmp(a->spec, b->spec) && a->epoch == b->epoch &&
	       a->batches == b->batches;
}

static void states_survive_being_written(void)
{
	char text[4096], why[SPEC_WHY_SIZE];
	struct state s;

	CHECK(!state_format(&good, text, sizeof(text)));
	CHECK(!state_parse(text, &s, why) && same(&s, &good));
}

/* A state contains the source only if its batches were synthetic. */
static void a_source_is_reported(void)
{
	char text[4096], why[SPEC_WHY_SIZE];
	struct state s = good, t;

	CHECK(!state_format(&s, text, sizeof(text)));
	CHECK(!strstr(text, "source"));
	CHECK(!state_parse(text, &t, why) && !*t.source);
	strcpy(s.source, "constant");
	CHECK(!state_format(&s, text, sizeof(text)));
	CHECK(strstr(text, "\"source\": \"constant\""));
	CHECK(!state_parse(text, &t, why) && same(&s, &t));
	CHECK(!strcmp(t.source, "constant"));
}

static void the_largest_state_fits_in_4_kib(void)
{
	char text[4096], why[SPEC_WHY_SIZE];
	struct state s = good, t;

	memset(s.spec, 'x', sizeof(s.spec) - 1);
	memset(s.source, 'y', sizeof(s.source) - 1);
	s.epoch = INT64_MAX;
	s.batches = INT64_MAX;
	CHECK(!state_format(&s, text, sizeof(text)));
	CHECK(!state_parse(text, &t, why) && same(&s, &t));
}

static void a_buffer_too_small_is_reported(void)
{
	char text[4096], part[4096];
	size_t size;

	CHECK(!state_format(&good, text, sizeof(text)));
	size = strlen(text);
	CHECK(state_format(&good, part, size) == -ENOSPC);
	CHECK(state_format(&good, part, 1) == -ENOSPC);
	CHECK(!state_format(&good, part, size + 1) && !strcmp(part, text));
}

/* Keys in any order, and keys of later versions of the same number. */
static void json_is_read_as_json(void)
{
	char why[SPEC_WHY_SIZE];
	struct state s;

	CHECK(!state_parse(" {\n\"batches\": 5, \"epoch\": 0, \"more\": [1],"
			   "\"spec\": \"s\", \"fingerprint\": \"f\","
			   "\"version\": 1}\n",
			   &s, why));
	CHECK(s.batches == 5 && !strcmp(s.spec, "s"));
}

static void other_texts_are_refused_with_a_reason(void)
{
#define REST "\"fingerprint\": \"f\", \"spec\": \"s\""
	static const char *const table[] = {
		"",
		"{",
		"[]",
		"null",
		"42",
		"{}",
		"{\"version\": 1}",
		"{\"version\": 2, " REST ", \"epoch\": 0, \"batches\": 0}",
		"{\"version\": \"1\", " REST ", \"epoch\": 0, \"batches\": 0}",
		"{\"version\": 1, " REST ", \"epoch\": -1, \"batches\": 0}",
		"{\"version\": 1, " REST ", \"epoch\": 0, \"batches\": -1}",
		"{\"version\": 1, " REST ", \"epoch\": 0, \"batches\": 1.5}",
		"{\"version\": 1, " REST ", \"epoch\": 99999999999999999999,"
		" \"batches\": 0}",
		"{\"version\": 1, " REST ", \"epoch\": 0}",
		"{\"version\": 1, " REST ", \"epoch\": 0, \"batches\": 0} x",
		"{\"version\": 1, \"fingerprint\": 1, \"spec\": \"s\","
		" \"epoch\": 0, \"batches\": 0}",
		"{\"version\": 1, \"fingerprint\": \"f\", \"spec\": \"\\u0000\""
		", \"epoch\": 0, \"batches\": 0}",
		"{\"version\": 1, \"fingerprint\":"
		" \"0123456789abcdef0123456789abcdef0\", \"spec\": \"s\","
		" \"epoch\": 0, \"batches\": 0}",
		"{\"version\": 1, " REST ", \"epoch\": 0, \"batches\": 0,"
		" \"source\": 1}",
		"{\"version\": 1, " REST ", \"epoch\": 0, \"batches\": 0,"
		" \"source\": \"0123456789abcdef\"}",
		"\xff\xfe",
	};
#undef REST
	char why[SPEC_WHY_SIZE];
	struct state s;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		why[0] = '\0';
		CHECK(state_parse(table[i], &s, why) == -EINVAL && why[0]);
	}
}

static void a_spec_too_long_is_refused(void)
{
	char text[1024], why[SPEC_WHY_SIZE], spec[SPEC_TEXT_MAX + 1];
	struct state s;

	memset(spec, 'x', sizeof(spec));
	spec[SPEC_TEXT_MAX] = '\0';
	snprintf(text, sizeof(text),
		 "{\"version\": 1, \"fingerprint\": \"f\", \"spec\": \"%s\", "
		 "\"epoch\": 0, \"batches\": 0}",
		 spec);
	CHECK(state_parse(text, &s, why) == -EINVAL);
}

int main(void)
{
	states_survive_being_written();
	a_source_is_reported();
	the_largest_state_fits_in_4_kib();
	a_buffer_too_small_is_reported();
	json_is_read_as_json();
	other_texts_are_refused_with_a_reason();
	a_spec_too_long_is_refused();
	return 0;
}
