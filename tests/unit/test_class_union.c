/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/data/dataset/class_union.h"
#include "tests/unit/t.h"

enum { MOST = 6 };

/* "cat dog" as names; NULL: none. */
static struct class_names *names_of(const char *words)
{
	const char *names[MOST];
	size_t num = 0;
	char text[80];

	if (!words)
		return NULL;
	CHECK(strlen(words) < sizeof(text));
	strcpy(text, words);
	for (char *w = strtok(text, " "); w; w = strtok(NULL, " "))
		names[num++] = w;
	return class_names_copy(names, num);
}

static bool are_words(const struct class_names *names, const char *words)
{
	struct class_names *want = names_of(words);
	bool same = !names == !want && (!want || names->num == want->num);

	for (size_t i = 0; same && want && i < want->num; i++)
		same = !strcmp(names->names[i], want->names[i]);
	class_names_free(want);
	return same;
}

struct row {
	const char *first, *more;
	int r;
	const char *all, *numbers; /* NULL: as they were */
	const char *why;
};

static void check_row(const struct row *row, bool maps)
{
	struct class_names *all = names_of(row->first);
	struct class_names *more = names_of(row->more);
	struct class_map map = { 0 };
	char why[CLASS_WHY_SIZE] = "";

	CHECK(class_names_unite(&all, more, maps ? &map : NULL, "1st", why) ==
	      row->r);
	CHECK(are_words(all, row->all ? row->all : row->first));
	CHECK(!row->why == !*why && (!*why || strstr(why, row->why)));
	CHECK(!map.numbers == !row->numbers);
	for (size_t i = 0; map.numbers && i < map.num; i++)
		CHECK(map.numbers[i] == (uint32_t)(row->numbers[i] - '0'));
	free(map.numbers);
	class_names_free(all);
	class_names_free(more);
}

static void labels_are_mapped_by_name(void)
{
	static const struct row rows[] = {
		{ "cat dog", "cat dog", 0, NULL, NULL, NULL },
		{ "cat dog", "cat", 0, NULL, NULL, NULL },
		{ "cat", "cat dog", 0, "cat dog", NULL, NULL },
		{ "cat dog", "dog cat", 0, NULL, "10", NULL },
		{ "cat dog", "dog", 0, NULL, "1", NULL },
		{ "cat dog", "fox dog elk", 0, "cat dog fox elk", "213", NULL },
		{ NULL, NULL, 0, NULL, NULL, NULL },
		{ "cat", NULL, -ENODATA, NULL, NULL, "has no class names" },
		{ NULL, "cat", -ENODATA, NULL, NULL, "has class names" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_row(&rows[i], true);
}

/* Two classes never become one. */
static void a_name_of_several_classes_keeps_its_place_or_is_refused(void)
{
	static const struct row rows[] = {
		{ "crane crane maillot", "crane crane maillot", 0, NULL, NULL,
		  NULL },
		{ "crane crane", "crane crane elk", 0, "crane crane elk", NULL,
		  NULL },
		{ "crane crane elk", "crane crane fox", 0,
		  "crane crane elk fox", "013", NULL },
		{ "crane crane maillot", "maillot crane crane", -EINVAL, NULL,
		  NULL, "'crane'" },
		{ "elk", "crane crane", -EINVAL, NULL, NULL, "'crane'" },
		{ "elk crane", "crane crane", -EINVAL, NULL, NULL, "'crane'" },
		{ "crane elk", "crane fox crane", -EINVAL, NULL, NULL,
		  "'crane'" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_row(&rows[i], true);
}

static void labels_that_stay_need_one_list_to_begin_the_other(void)
{
	static const struct row rows[] = {
		{ "cat dog", "cat dog", 0, NULL, NULL, NULL },
		{ "cat dog", "cat", 0, NULL, NULL, NULL },
		{ "cat", "cat dog", 0, "cat dog", NULL, NULL },
		{ "cat dog", "dog cat", -EINVAL, NULL, NULL,
		  "has class 0 'dog', but in 1st it is 'cat'" },
		{ "cat dog", "cat fox elk", -EINVAL, NULL, NULL,
		  "has class 1 'fox', but in 1st it is 'dog'" },
		{ "cat", NULL, -ENODATA, NULL, NULL, "has no class names" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_row(&rows[i], false);
}

static void a_number_without_a_name_gets_none(void)
{
	uint32_t numbers[] = { 2, 1 };
	const struct class_map map = { 2, numbers }, none = { 0 };
	struct class_names *all = names_of("a b c");
	int64_t label = 0;

	CHECK(!class_map_apply(&map, all, &label) && label == 2);
	CHECK(class_map_apply(&map, all, &label) == -EDOM && label == 2);
	label = 3;
	CHECK(!class_map_apply(&map, all, &label) && label == 3);
	label = -1;
	CHECK(!class_map_apply(&map, all, &label) && label == -1);
	CHECK(!class_map_apply(&none, NULL, &label) && label == -1);
	class_names_free(all);
}

/* Most names are not at the same place in both lists. */
static void many_names_are_found(void)
{
	enum { NAMES = 100000 };
	static char text[2 * NAMES][8];
	static const char *names[2 * NAMES];
	struct class_names *all, *more, *too_many;
	struct class_map map;
	char why[CLASS_WHY_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(text); i++) {
		snprintf(text[i], sizeof(text[i]), "%zx", i);
		names[i] = text[i];
	}
	all = class_names_copy(names, NAMES);
	more = class_names_copy(names + 1, NAMES);
	/* 100,000 more names of five digits take over 1 MiB in all. */
	too_many = class_names_copy(names, 2 * NAMES);
	CHECK(all && more && too_many);
	CHECK(!class_names_unite(&all, more, &map, "1st", why));
	CHECK(all->num == NAMES + 1 && map.num == NAMES);
	for (size_t i = 0; i < NAMES; i++)
		CHECK(map.numbers[i] == i + 1);
	free(map.numbers);
	CHECK(class_names_unite(&all, too_many, &map, "1st", why) == -E2BIG);
	CHECK(all->num == NAMES + 1);
	class_names_free(all);
	class_names_free(more);
	class_names_free(too_many);
}

int main(void)
{
	labels_are_mapped_by_name();
	a_name_of_several_classes_keeps_its_place_or_is_refused();
	labels_that_stay_need_one_list_to_begin_the_other();
	a_number_without_a_name_gets_none();
	many_names_are_found();
	return 0;
}
