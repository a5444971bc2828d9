/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/order/subset.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/order/order.h"
#include "fs/base/order/spec_text.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "tests/unit/t.h"

enum { SAMPLES = 1000 };

static char folder[] = "/tmp/beton_unit.XXXXXX";
static char path[64]; /* of the list */
static char message[512];
static struct log log_kept;

static void keep_message(void *arg, enum beton_log_level level,
			 const char *text)
{
	(void)arg;
	(void)level;
	snprintf(message, sizeof(message), "%s", text);
}

static void write_list(const void *bytes, size_t size)
{
	FILE *f = fopen(path, "we");

	CHECK(f && fwrite(bytes, 1, size, f) == size);
	CHECK(!fclose(f));
}

static int open_as(const char *name, uint64_t samples, struct subset **list)
{
	char text[128];

	snprintf(text, sizeof(text), "%s:%s", name, path);
	message[0] = '\0';
	return subset_open(text, samples, &log_kept, list);
}

static struct subset *opened(const char *content)
{
	struct subset *s = NULL;

	write_list(content, strlen(content));
	CHECK(!open_as("s", SAMPLES, &s));
	CHECK(!message[0]);
	return s;
}

static void refused_bytes(const void *bytes, size_t size, uint64_t samples,
			  const char *word)
{
	struct subset *s = NULL;

	write_list(bytes, size);
	CHECK(open_as("s", samples, &s) == -EINVAL);
	CHECK(!s && strstr(message, path) && strstr(message, word));
}

static void refused(const char *content, const char *word)
{
	refused_bytes(content, strlen(content), SAMPLES, word);
}

static void test_ids_come_in_the_order_of_the_file(void)
{
	static const uint64_t want[] = { 7, 3, 999, 0, 42, 8 };
	struct subset *s = opened("# a comment\n"
				  "7\n\n \t3\t \n"
				  "999# another\r\n0 # one more\n"
				  "\r\n000042\n##\n8");

	CHECK(s->n == ARRAY_LEN(want));
	CHECK(!memcmp(s->ids, want, sizeof(want)));
	CHECK(s->hash == rng_key(want, ARRAY_LEN(want)));
	subset_close_all(s);
}

/* As beton-orders(7) prints it. */
static void test_the_hash_is_of_the_ids_alone(void)
{
	char text[SUBSET_TEXT_SIZE];
	struct subset *a = opened("3\n1\n4\n15\n9\n");
	struct subset *b = opened("# pi\n3 \n01\r\n4\n\n15\n9");
	struct subset *c = opened("1\n3\n4\n15\n9\n");

	subset_text(a, text);
	CHECK(!strcmp(text, "s~84e3d8f1253de9ed"));
	CHECK(a->hash == b->hash && a->hash != c->hash);
	subset_close_all(a);
	subset_close_all(b);
	subset_close_all(c);
}

static void test_lists_are_refused_with_their_line(void)
{
	refused("", "no sample");
	refused("# nothing\n\n", "no sample");
	refused("1\n2\n1000\n", ":3:");
	refused("1\n99999999999999999999999999\n", ":2:");
	refused("18446744073709551617\n", ":1:");
	refused("5\n-1\n", ":2:");
	refused("5\n+1\n", ":2:");
	refused("1 2 3\n", ":1:");
	refused("1.0\n", ":1:");
	refused("1,2\n", ":1:");
	refused("0x1\n", ":1:");
	refused("a\n", "0x61");
	refused("1\n2\n3 x\n", ":3:");
	refused_bytes("1\n\0\n", 4, SAMPLES, "0x00");
	refused_bytes("\x93NUMPY\1", 7, SAMPLES, "0x93");
	refused_bytes("0\n", 2, 0, "has 0");
}

static void test_an_id_may_have_many_places(void)
{
	static const uint64_t want[] = { 5, 9, 1, 9, 5, 9 };
	struct subset *s = opened("5\n9\n1\n9\n5\n9");
	uint64_t place;

	CHECK(s->repeats && s->n == ARRAY_LEN(want));
	CHECK(!memcmp(s->ids, want, sizeof(want)));
	CHECK(s->hash == rng_key(want, ARRAY_LEN(want)));
	CHECK(subset_place(s, 9, 0, &place) && place == 1);
	CHECK(subset_place(s, 9, 1, &place) && place == 3);
	CHECK(subset_place(s, 9, 2, &place) && place == 5);
	CHECK(!subset_place(s, 9, 3, &place));
	CHECK(!subset_place(s, 9, UINT64_MAX, &place));
	CHECK(subset_place(s, 5, 1, &place) && place == 4);
	CHECK(!subset_place(s, 1, 1, &place));
	subset_close_all(s);
	s = opened("1\n2\n2\n");
	CHECK(s->repeats);
	subset_close_all(s);
	s = opened("2\n1\n");
	CHECK(!s->repeats);
	subset_close_all(s);
}

static void test_weights_stand_behind_ids(void)
{
	static const uint64_t ids[] = { 7, 3, 7 }, sums[] = { 2, 2, 102 };
	const uint64_t words[] = { rng_key(ids, 3), rng_key(sums, 3) };
	struct subset *s = opened("7 2 # two\n3\t0\r\n\n007 100");

	CHECK(s->n == 3 && s->repeats && s->sums);
	CHECK(!memcmp(s->ids, ids, sizeof(ids)));
	CHECK(!memcmp(s->sums, sums, sizeof(sums)));
	CHECK(s->hash == rng_key(words, 2));
	CHECK(subset_weight(s, 0) == 2 && subset_weight(s, 1) == 0);
	CHECK(subset_weight(s, 2) == 100);
	/* number * 102 / 2^64 is the tick. */
	CHECK(subset_draw(s, 0) == 0 && subset_draw(s, UINT64_MAX) == 2);
	CHECK(subset_draw(s, UINT64_MAX / 51 - 51) == 0);
	CHECK(subset_draw(s, UINT64_MAX / 51 + 51) == 2);
	subset_close_all(s);
	s = opened("1 0\n2 18446744073709551615\n3 0\n");
	for (uint64_t i = 0; i < 1000; i++)
		CHECK(subset_draw(s, rng_mix(i)) == 1);
	subset_close_all(s);
}

static void test_weights_are_refused_with_their_line(void)
{
	refused("1 1\n2\n", ":2: no weight");
	refused("1 1\n2", ":2: no weight");
	refused("1 1\n2 # x\n", ":2: no weight");
	refused("1\n2 1\n", ":2: a weight");
	refused("1 18446744073709551616\n", ":1: a weight");
	refused("1 18446744073709551615\n2 1\n", ":2: the weights");
	refused("1 -1\n", "0x2d");
	refused("1 1.5\n", "0x2e");
	refused("1 0\n2 0\n", "all weights");
}

static void test_long_lines_and_files_are_read_in_pieces(void)
{
	enum { SIZE = 3 << 20 };
	char *bytes = malloc(SIZE);
	struct subset *s = NULL;

	CHECK(bytes);
	memset(bytes, '0', SIZE);
	bytes[SIZE - 1] = '7';
	write_list(bytes, SIZE);
	CHECK(!open_as("s", SAMPLES, &s));
	CHECK(s->n == 1 && s->ids[0] == 7);
	subset_close_all(s);
	memset(bytes, '9', SIZE);
	refused_bytes(bytes, SIZE, SAMPLES, ":1:");
	memset(bytes, '\n', SIZE);
	refused_bytes(bytes, SIZE, SAMPLES, "no sample");
	memset(bytes, 'x', SIZE);
	bytes[0] = '#';
	refused_bytes(bytes, SIZE, SAMPLES, "no sample");
	free(bytes);
}

static void test_other_than_regular_files_are_refused_at_once(void)
{
	struct subset *s = NULL;
	char text[128];

	unlink(path);
	CHECK(open_as("s", SAMPLES, &s) == -ENOENT && message[0]);
	CHECK(!mkfifo(path, 0600));
	CHECK(open_as("s", SAMPLES, &s) == -EINVAL && message[0]);
	unlink(path);
	snprintf(text, sizeof(text), "s:%s", folder);
	CHECK(subset_open(text, SAMPLES, &log_kept, &s) == -EISDIR);
	CHECK(subset_open("s:/dev/zero", SAMPLES, &log_kept, &s) == -EINVAL);
	CHECK(!s);
}

static void test_names_are_distinguished_from_ranges(void)
{
	static const char *const names[] = { "a",	 "train", "_", "1pct",
					     "2012-val", "a-b",	  "-x" };
	static const char *const others[] = {
		"",
		"5",
		"5-6",
		"-",
		"5-",
		"a b",
		"a/b",
		"a.b",
		"a~",
		"a~0123456789abcde",
		"~",
		"a,b",
		"a=b",
		"\xc3\xa4",
		"a~0123456789ABCDEF",
		"a~~0",
		"5~0123456789abcdef",
	};
	char most[SUBSET_NAME_MAX + 2];
	struct subset_ref ref;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		CHECK(subset_parse_ref(names[i], strlen(names[i]), &ref) &&
		      ref.size == strlen(names[i]) && !ref.has_hash);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		CHECK(!subset_parse_ref(others[i], strlen(others[i]), &ref));
	CHECK(subset_parse_ref("a~0123456789abcdef", 18, &ref));
	CHECK(ref.size == 1 && ref.has_hash && ref.hash == 0x0123456789abcdef);
	memset(most, 'n', sizeof(most));
	CHECK(subset_parse_ref(most, SUBSET_NAME_MAX, &ref));
	CHECK(!subset_parse_ref(most, SUBSET_NAME_MAX + 1, &ref));
}

static void test_a_text_is_a_name_and_a_file(void)
{
	static const char *const wrong[] = {
		"",    "s",	":",
		"s:",  ":file", "1-2:f",
		"7:f", "a b:f", "s~0123456789abcdef:f"
	};
	struct subset *s = opened("1\n");

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		message[0] = '\0';
		CHECK(subset_open(wrong[i], SAMPLES, &log_kept, &s) == -EINVAL);
		CHECK(message[0]);
	}
	CHECK(open_as("s", SAMPLES, &s) == -EINVAL);
	CHECK(strstr(message, "twice"));
	CHECK(!open_as("t", SAMPLES, &s));
	CHECK(!strcmp(s->name, "t") && !strcmp(s->next->name, "s"));
	subset_close_all(s);
}

/* Every id of a permutation has its place, whatever the radix. */
static void test_an_id_reports_its_place(void)
{
	enum { N = 70000 };
	struct permutation p = permutation_init(N, 5);
	FILE *f = fopen(path, "we");
	struct subset *s = NULL;
	uint64_t place;

	CHECK(f);
	for (uint64_t i = 0; i < N; i++)
		fprintf(f, "%llu\n",
			(unsigned long long)(3 * permutation_at(&p, i)));
	CHECK(!fclose(f));
	CHECK(!open_as("s", 3 * N, &s));
	CHECK(s->n == N && s->sorted);
	for (uint64_t i = 0; i < N; i++)
		CHECK(subset_place(s, s->ids[i], 0, &place) && place == i);
	for (uint64_t id = 1; id < 3 * N; id += 3)
		CHECK(!subset_place(s, id, 0, &place));
	CHECK(!subset_place(s, UINT64_MAX, 0, &place));
	subset_close_all(s);
}

static void test_ascending_ids_cost_no_second_list(void)
{
	struct subset *s = opened("3\n5\n900\n");
	uint64_t place;

	CHECK(!s->sorted);
	CHECK(subset_place(s, 900, 0, &place) && place == 2);
	CHECK(subset_place(s, 3, 0, &place) && place == 0);
	CHECK(!subset_place(s, 4, 0, &place) &&
	      !subset_place(s, 901, 0, &place));
	subset_close_all(s);
}

/* --- in a sampling spec --- */

static char why[SPEC_WHY_SIZE];

static struct spec spec_of(const char *text, const struct subset *subsets)
{
	const struct spec_facts facts = { .samples = SAMPLES,
					  .data_bytes = SAMPLES,
					  .subsets = subsets };
	struct spec spec;

	CHECK(!spec_parse(text, &facts, &spec, why));
	return spec;
}

static void refused_spec(const char *text, const struct subset *subsets,
			 const char *word)
{
	const struct spec_facts facts = { .samples = SAMPLES,
					  .data_bytes = SAMPLES,
					  .subsets = subsets };
	struct spec spec;

	CHECK(spec_parse(text, &facts, &spec, why) == -EINVAL);
	CHECK(strstr(why, word));
}

static void test_a_spec_names_a_subset(void)
{
	static const char canonical[] =
		"order=sequential,batch=2,seed=0,drop_last=0,"
		"subset=s~84e3d8f1253de9ed";
	struct subset *s = opened("3\n1\n4\n15\n9\n");
	struct spec spec =
		spec_of("subset=s,order=sequential,drop_last=0,batch=2", s);
	char text[SPEC_TEXT_MAX];
	struct order o = order_init(&spec, 0);

	CHECK(spec.subset == s && spec_batches(&spec) == 3);
	CHECK(spec_batch_samples(&spec, 2) == 1);
	for (uint64_t i = 0; i < s->n; i++)
		CHECK(order_sample(&o, i) == s->ids[i]);
	spec_canonical(&spec, text);
	CHECK(!strcmp(text, canonical));
	spec = spec_of(canonical, s);
	CHECK(spec.subset == s);
	refused_spec("subset=s~84e3d8f1253de9ee", s, "has changed");
	refused_spec("subset=s~84e3d8f1253de9ee", s, "s~84e3d8f1253de9ed");
	refused_spec("subset=t", s, "subset=t");
	refused_spec("subset=s", NULL, "subset=s");
	refused_spec("subset=s~", s, "subset=s~");
	refused_spec("subset=s~84E3D8F1253DE9ED", s, "subset=s~");
	refused_spec("subset=s,subset=s", s, "twice");
	spec = spec_of("subset=1-9", s);
	CHECK(!spec.subset);
	subset_close_all(s);
}

static void test_a_spec_draws_by_weights(void)
{
	struct subset *s = opened("3 1\n1 0\n4 6\n15 1\n4 2\n"), *plain;
	struct spec spec = spec_of(
		"order=weighted,subset=s,num_samples=10000,batch=7,drop_last=0",
		s);
	char text[SPEC_TEXT_MAX];
	struct order o = order_init(&spec, 3);
	unsigned counts[16] = { 0 };

	spec_canonical(&spec, text);
	CHECK(strstr(text, "order=weighted,batch=7,seed=0,drop_last=0,"
			   "num_samples=10000,subset=s~"));
	CHECK(spec_batches(&spec) == 1429 &&
	      spec_batch_samples(&spec, 1428) == 4);
	CHECK(spec_repeats(&spec));
	for (uint64_t i = 0; i < 10000; i++)
		counts[order_sample(&o, i)]++;
	CHECK(!counts[1]);
	CHECK(counts[3] > 800 && counts[3] < 1200 && counts[15] > 800);
	CHECK(counts[4] > 7700 && counts[4] < 8300);
	CHECK(order_gap(&o, 4) == 1 && order_gap(&o, 3) == 10);
	CHECK(order_gap(&o, 1) == ORDER_NONE && order_gap(&o, 2) == ORDER_NONE);
	spec = spec_of("order=weighted,subset=s", s);
	CHECK(spec.draws == 5);
	/* Other orders have no use for weights and draws. */
	spec = spec_of("order=random,subset=s,num_samples=9", s);
	CHECK(!spec.draws && spec_positions(&spec) == 5 && spec_repeats(&spec));
	refused_spec("order=weighted", s, "weights");
	refused_spec("order=weighted,subset=0-5", s, "weights");
	refused_spec("order=weighted,subset=s,num_samples=0", s,
		     "num_samples=0");
	subset_close_all(s);
	plain = opened("1\n2\n");
	refused_spec("order=weighted,subset=s", plain, "weights");
	spec = spec_of("subset=s", plain);
	CHECK(!spec_repeats(&spec));
	subset_close_all(plain);
}

static void test_orders_give_each_id_once(void)
{
	static const char *const texts[] = {
		"subset=s", "subset=s,order=quasi_random,block=3,window=7"
	};
	struct subset *s = NULL;
	uint8_t seen[SAMPLES];
	uint64_t place;
	FILE *f = fopen(path, "we");

	CHECK(f);
	for (unsigned i = 0; i < 100; i++)
		fprintf(f, "%u\n", (i * 37 + 11) % 101 * 9);
	CHECK(!fclose(f));
	CHECK(!open_as("s", SAMPLES, &s));
	for (size_t t = 0; t < ARRAY_LEN(texts); t++) {
		const struct spec spec = spec_of(texts[t], s);
		const struct order o = order_init(&spec, 4);

		memset(seen, 0, sizeof(seen));
		for (uint64_t i = 0; i < s->n; i++) {
			uint64_t id = order_sample(&o, i);

			CHECK(subset_place(s, id, 0, &place) && !seen[id]++);
		}
	}
	subset_close_all(s);
}

static void test_the_longest_name_fits(void)
{
	char text[SPEC_TEXT_MAX], again[SPEC_TEXT_MAX];
	struct subset_ref ref = { .size = SUBSET_NAME_MAX, .has_hash = true };
	struct subset *s = NULL;
	char name[SUBSET_NAME_MAX + 1], wrong[400];
	struct spec spec;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ref.name = name;
	CHECK(!subset_add_known(&ref, 5, &s));
	snprintf(text, sizeof(text),
		 "order=quasi_random,batch=1048576,seed=18446744073709551615,"
		 "drop_last=1,block=1099511627776,window=1099511627776,"
		 "subset=%s",
		 name);
	spec = spec_of(text, s);
	CHECK(spec.end == 5 && !spec.subset->ids);
	spec_canonical(&spec, again);
	CHECK(strstr(again, "nn~0000000000000000"));
	snprintf(wrong, sizeof(wrong), "subset=%s~0123456789abcdef", name);
	refused_spec(wrong, s, "has changed");
	subset_close_all(s);
}

static void test_a_subset_is_found_in_any_spelling(void)
{
	struct subset_ref ref;

	CHECK(spec_names_subset("subset=a", &ref) && ref.size == 1);
	CHECK(spec_names_subset("batch=1,subset=ab,seed=3", &ref));
	CHECK(ref.size == 2 && !memcmp(ref.name, "ab", 2));
	CHECK(spec_names_subset("subset=x~0123456789abcdef", &ref));
	CHECK(!spec_names_subset("", &ref));
	CHECK(!spec_names_subset("subset=", &ref));
	CHECK(!spec_names_subset("subset=1-2", &ref));
	CHECK(!spec_names_subset("xsubset=a,,batch=subset=a", &ref));
}

int main(void)
{
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/list", folder);
	log_init(&log_kept, keep_message, NULL);
	test_ids_come_in_the_order_of_the_file();
	test_the_hash_is_of_the_ids_alone();
	test_lists_are_refused_with_their_line();
	test_an_id_may_have_many_places();
	test_weights_stand_behind_ids();
	test_weights_are_refused_with_their_line();
	test_long_lines_and_files_are_read_in_pieces();
	test_other_than_regular_files_are_refused_at_once();
	test_names_are_distinguished_from_ranges();
	test_a_text_is_a_name_and_a_file();
	test_an_id_reports_its_place();
	test_ascending_ids_cost_no_second_list();
	test_a_spec_names_a_subset();
	test_a_spec_draws_by_weights();
	test_orders_give_each_id_once();
	test_the_longest_name_fits();
	test_a_subset_is_found_in_any_spelling();
	unlink(path);
	rmdir(folder);
	return 0;
}
