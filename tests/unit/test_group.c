/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/group.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "fs/data/writer/writer.h"
#include "tests/unit/t.h"

static const struct writer_field fields[] = {
	{ .name = "other", .type = BETON_TYPE_FLOAT },
	{ .name = "label", .type = BETON_TYPE_INT },
};

enum { LABEL = 1 };

static char path[] = "/tmp/test_group.XXXXXX";

static struct dataset *dataset_of(const int64_t *values, uint64_t n)
{
	struct writer_value v[2];
	struct dataset *ds;
	struct writer *w;

	CHECK(!writer_open(path, fields, 2, n, 2 << 20, NULL, &w));
	memset(v, 0, sizeof(v));
	for (uint64_t i = 0; i < n; i++) {
		v[LABEL].integer = values[i];
		CHECK(!writer_append(w, v));
	}
	CHECK(!writer_finish(&w));
	CHECK(!dataset_open(path, NULL, NULL, &ds));
	return ds;
}

/* Every sample is once in the group of its value, and nowhere else. */
static void check_group(const int64_t *values, uint64_t n, uint64_t num)
{
	struct dataset *ds = dataset_of(values, n);
	struct group *g;
	uint64_t k = 0;

	CHECK(!group_open(ds, LABEL, &g));
	CHECK(g->num == num && g->starts[num] == n);
	CHECK(group_bytes(g) >= 4 * n + 12 * num);
	for (uint64_t v = 0; v < num; v++) {
		CHECK(!v || g->values[v - 1] < g->values[v]);
		CHECK(g->starts[v] == k && g->starts[v + 1] > k);
		for (; k < g->starts[v + 1]; k++) {
			CHECK(values[g->samples[k]] == g->values[v]);
			CHECK(k == g->starts[v] ||
			      g->samples[k - 1] < g->samples[k]);
		}
	}
	for (uint64_t i = 0; i < n; i++) {
		CHECK(group_find(g, values[i], &k) && group_has(g, k, i));
		CHECK(g->values[k] == values[i]);
		CHECK(num == 1 || !group_has(g, (k + 1) % num, i));
	}
	group_close(g);
	dataset_close(ds);
}

static void test_few_values(void)
{
	static const int64_t values[] = { 3, 1, 3, 3, 0, 1, 207, 3 };
	static const int64_t ascending[] = { -5, -5, 0, 0, 0, 9 };

	check_group(values, ARRAY_LEN(values), 4);
	check_group(ascending, ARRAY_LEN(ascending), 3);
	check_group(values, 1, 1);
	check_group(values, 0, 0);
}

static void test_extremes_sort_as_numbers(void)
{
	static const int64_t values[] = { INT64_MAX, 0,	    INT64_MIN,
					  -1,	     1,	    INT64_MAX - 1,
					  -1,	     65536, -65536 };

	check_group(values, ARRAY_LEN(values), 8);
}

static void test_all_values_differ(void)
{
	enum { N = 300000 };
	int64_t *values = malloc(N * sizeof(*values));

	for (uint64_t i = 0; i < N; i++)
		values[i] = (int64_t)rng_mix(i);
	check_group(values, N, N);
	free(values);
}

static void test_absent_values_are_not_found(void)
{
	static const int64_t values[] = { 4, 2, 2 };
	static const int64_t absent[] = { INT64_MIN, 1, 3, 5, INT64_MAX };
	struct dataset *ds = dataset_of(values, ARRAY_LEN(values));
	struct group *g;
	uint64_t k;

	CHECK(!group_open(ds, LABEL, &g));
	for (size_t i = 0; i < ARRAY_LEN(absent); i++)
		CHECK(!group_find(g, absent[i], &k));
	CHECK(!group_has(g, 0, 0) && !group_has(g, 0, 3));
	CHECK(group_has(g, 1, 0) && !group_has(g, 1, 1));
	group_close(g);
	group_close(NULL);
	dataset_close(ds);
}

static void count_line(void *arg, enum beton_log_level level,
		       const char *message)
{
	(void)level;
	*(unsigned *)arg += strstr(message, "too many to group") != NULL;
}

static void test_too_many_samples_are_refused(void)
{
	static const int64_t values[] = { 1, 2 };
	struct dataset *ds = dataset_of(values, ARRAY_LEN(values));
	unsigned lines = 0;
	struct group *g;
	struct log log;

	log_init(&log, count_line, &lines);
	ds->log = &log;
	ds->format.samples = GROUP_SAMPLES_MAX + 1;
	CHECK(group_open(ds, LABEL, &g) == -EFBIG && lines == 1);
	dataset_close(ds);
	log_fini(&log);
}

static void test_a_truncated_file_is_an_error(void)
{
	static const int64_t values[] = { 1, 2, 1 };
	struct dataset *ds = dataset_of(values, ARRAY_LEN(values));
	struct group *g;

	CHECK(!truncate(path, (off_t)(ds->format.meta_off + 20)));
	CHECK(group_open(ds, LABEL, &g) == -EIO);
	dataset_close(ds);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	test_few_values();
	test_extremes_sort_as_numbers();
	test_all_values_differ();
	test_absent_values_are_not_found();
	test_too_many_samples_are_refused();
	test_a_truncated_file_is_an_error();
	unlink(path);
	return 0;
}
