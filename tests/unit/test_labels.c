/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/data/writer/labels.h"
#include "tests/unit/t.h"

static struct class_names names_of(const char **names, uint64_t num)
{
	return (struct class_names){ .num = num, .names = names };
}

static void the_first_names_keep_their_numbers(void)
{
	const char *some[] = { "cat", "dog", "cat" };
	struct class_names names = names_of(some, 3);
	struct labels l = { .num = 0 };
	struct labels_map map;

	CHECK(!labels_add(&l, &names, &map) && map.num == 3 && !map.numbers);
	CHECK(l.num == 3 && !strcmp(labels_name(&l, 2), "cat"));
	/* The same names again: two classes of one name become the first. */
	CHECK(!labels_add(&l, &names, &map) && map.num == 3 && map.numbers);
	CHECK(map.numbers[0] == 0 && map.numbers[1] == 1);
	CHECK(map.numbers[2] == 0 && l.num == 3);
	free(map.numbers);
	labels_fini(&l);
}

static void new_names_follow(void)
{
	const char *some[] = { "cat", "dog" };
	const char *more[] = { "fox", "dog", "elk" };
	const char *all[] = { "cat", "dog", "fox", "elk" };
	struct class_names first = names_of(some, 2);
	struct class_names second = names_of(more, 3);
	struct class_names third = names_of(all, 4);
	struct labels l = { .num = 0 };
	struct labels_map map;
	const char **names;

	CHECK(!labels_add(&l, &first, &map) && !map.numbers);
	CHECK(!labels_add(&l, &second, &map) && map.num == 3);
	CHECK(map.numbers[0] == 2 && map.numbers[1] == 1);
	CHECK(map.numbers[2] == 3);
	free(map.numbers);
	CHECK(!labels_add(&l, &third, &map) && map.num == 4 && !map.numbers);
	names = labels_names(&l);
	CHECK(names && l.num == 4);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		CHECK(!strcmp(names[i], all[i]));
	free(names);
	labels_fini(&l);
}

/* Most numbers and no name are the same in both files. */
static void many_names_are_found(void)
{
	enum { NAMES = 100000 };
	static char text[2 * NAMES][8];
	static const char *names[2 * NAMES];
	struct class_names first = names_of(names, NAMES);
	struct class_names both = names_of(names, 2 * NAMES);
	struct labels l = { .num = 0 };
	struct labels_map map;

	for (size_t i = 0; i < ARRAY_LEN(text); i++) {
		snprintf(text[i], sizeof(text[i]), "%zx", i);
		names[i] = text[i];
	}
	CHECK(!labels_add(&l, &first, &map));
	/* 100,000 more names of five digits take over 1 MiB in all. */
	CHECK(labels_add(&l, &both, &map) == -E2BIG);
	labels_fini(&l);
}

int main(void)
{
	the_first_names_keep_their_numbers();
	new_names_follow();
	many_names_are_found();
	return 0;
}
