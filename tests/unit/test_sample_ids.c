/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/op/sample_ids.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "tests/unit/t.h"
#include "tests/unit/write_file.h"

static char why[200];

static struct sample_ids *list(const char *text)
{
	struct sample_ids *ids = NULL;
	int r = sample_ids_open(text, &ids, why, sizeof(why));

	if (r)
		fprintf(stderr, "%s: %s\n", text, why);
	CHECK(!r && ids);
	return ids;
}

static void a_list_is_sorted_and_found_in(void)
{
	struct sample_ids *ids =
		list("40, 3,17 ,3,000007,18446744073709551615");

	CHECK(ids->count == 6 && ids->ids[0] == 3 && ids->ids[5] == UINT64_MAX);
	CHECK(sample_ids_has(ids, 3) && sample_ids_has(ids, 7) &&
	      sample_ids_has(ids, 17));
	CHECK(sample_ids_has(ids, 40) && sample_ids_has(ids, UINT64_MAX));
	CHECK(!sample_ids_has(ids, 0) && !sample_ids_has(ids, 4) &&
	      !sample_ids_has(ids, 41));
	sample_ids_close(ids);
	sample_ids_close(NULL);
}

static const char *const mistakes[] = {
	"1,,2",		"1,", ",",  " ", "1 2", "18446744073709551616",
	"no_such_file", "/",  "-1",
};

static void nonsense_is_refused(void)
{
	struct sample_ids *ids;

	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		why[0] = '\0';
		CHECK(sample_ids_open(mistakes[i], &ids, why, sizeof(why)) ==
		      -EINVAL);
		CHECK(why[0]);
	}
}

static char path[] = "/tmp/test_sample_ids-XXXXXX";

static void a_file_has_one_in_a_line(void)
{
	static const char text[] = "# poisoned\n 12\r\n\n000003 # a comment\n"
				   "\t7\n#9\n12";
	struct sample_ids *ids;

	write_file(path, text, strlen(text));
	ids = list(path);
	CHECK(ids->count == 4 && sample_ids_has(ids, 3) &&
	      sample_ids_has(ids, 7));
	CHECK(sample_ids_has(ids, 12) && !sample_ids_has(ids, 9));
	sample_ids_close(ids);
	write_file(path, "", 0);
	ids = list(path);
	CHECK(!ids->count && !sample_ids_has(ids, 0));
	sample_ids_close(ids);
}

static void a_line_that_is_none_is_named(void)
{
	static const struct {
		const char *text;
		size_t size;
		const char *says;
	} files[] = {
		{ "1\n2 3\n", 6,
		  ":2: expected a sample id, or # and a "
		  "comment, not `2 3'" },
		{ "1\n\nx\n", 5, ":3: expected" },
		{ "1\0002\n", 4, ": it contains a NUL" },
		{ "1,2\n", 4, ":1: expected" },
		{ "-1", 2, ":1: expected" },
	};
	struct sample_ids *ids;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		write_file(path, files[i].text, files[i].size);
		CHECK(sample_ids_open(path, &ids, why, sizeof(why)) == -EINVAL);
		CHECK(!strncmp(why, path, strlen(path)));
		CHECK(!strncmp(why + strlen(path), files[i].says,
			       strlen(files[i].says)));
	}
}

static void no_file_is_waited_for(void)
{
	struct sample_ids *ids;

	unlink(path);
	CHECK(!mkfifo(path, 0600));
	CHECK(sample_ids_open(path, &ids, why, sizeof(why)) == -EINVAL);
	unlink(path);
}

static void a_large_file_is_refused(void)
{
	struct sample_ids *ids;
	FILE *f = fopen(path, "w");

	CHECK(f && !ftruncate(fileno(f), (64 << 20) + 1) && !fclose(f));
	CHECK(sample_ids_open(path, &ids, why, sizeof(why)) == -EINVAL);
	CHECK(strstr(why, "large"));
	unlink(path);
}

static void many_are_found(void)
{
	struct rng rng = { .key = 1 };
	struct sample_ids *ids;
	FILE *f = fopen(path, "w");

	CHECK(f);
	for (int i = 0; i < 5000; i++)
		fprintf(f, "%llu\n",
			(unsigned long long)rng_next(&rng) % 20000 * 2);
	CHECK(!fclose(f));
	ids = list(path);
	rng.position = 0;
	for (int i = 0; i < 5000; i++) {
		uint64_t id = rng_next(&rng) % 20000 * 2;

		CHECK(sample_ids_has(ids, id) && !sample_ids_has(ids, id + 1));
	}
	sample_ids_close(ids);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0 && !close(fd));
	a_list_is_sorted_and_found_in();
	nonsense_is_refused();
	a_file_has_one_in_a_line();
	a_line_that_is_none_is_named();
	no_file_is_waited_for();
	a_large_file_is_refused();
	many_are_found();
	unlink(path);
	return 0;
}
