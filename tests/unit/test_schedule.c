/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/pipeline/text/schedule.h"
#include "tests/unit/t.h"

static void check_part(struct schedule *s, uint64_t epoch, const char *numbers)
{
	CHECK(s->rest && !schedule_next(s) && !*s->wrong);
	CHECK(s->epoch == epoch);
	CHECK((size_t)(s->end - s->numbers) == strlen(numbers));
	CHECK(!strncmp(s->numbers, numbers, strlen(numbers)));
}

static void constants_apply_to_all_epochs(void)
{
	static const char *const texts[] = { "", "160", "0.08, 1", ",", "x" };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct schedule s = { .rest = texts[i] };

		check_part(&s, 0, texts[i]);
		CHECK(!s.rest && !s.is_scheduled);
	}
}

static void parts_come_in_order_with_their_epochs(void)
{
	struct schedule s = { .rest = " 0 =160, 128 ,10=192,\t14 = ,15=1" };

	check_part(&s, 0, "160, 128 ");
	CHECK(s.is_scheduled && s.at[0] == '0');
	check_part(&s, 10, "192");
	CHECK(!strncmp(s.at, "10=", 3));
	check_part(&s, 14, " ");
	check_part(&s, 15, "1");
	CHECK(!s.rest);
}

struct mistake {
	const char *text;
	size_t at;
	const char *wrong;
};

static const struct mistake mistakes[] = {
	{ "1=2", 0, "the first epoch is 0, not 1" },
	{ " 3,0=2", 1, "`0=' is missing before the first" },
	{ "0=1,0=2", 4, "epoch 0 does not come after 0" },
	{ "0=1,7=2,6=2", 8, "epoch 6 does not come after 7" },
	{ "0=1,00=2", 4, "`00' is not the number of an epoch" },
	{ "0=1,-1=2", 4, "`-1' is not the number of an epoch" },
	{ "0=1,1 1=2", 4, "`1 1' is not the number of an epoch" },
	{ "0=1,=2", 4, "`' is not the number of an epoch" },
	{ "=", 0, "`' is not the number of an epoch" },
	{ "0=1=2", 3, "a comma is missing before an epoch" },
	{ "0==", 2, "a comma is missing before an epoch" },
	{ "0=1,123456789012345678901234567890=2", 4,
	  "`123456789012345678901234' is not the number of an epoch" },
};

static void mistakes_are_reported_where_they_are(void)
{
	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		const struct mistake *m = &mistakes[i];
		struct schedule s = { .rest = m->text };
		int r = 0;

		while (!r && s.rest)
			r = schedule_next(&s);
		if (r != -EINVAL || strcmp(s.wrong, m->wrong) != 0)
			fprintf(stderr, "%s: %s\n", m->text, s.wrong);
		CHECK(r == -EINVAL && !strcmp(s.wrong, m->wrong));
		CHECK(s.at == m->text + m->at);
	}
}

static void the_nearest_epoch_ahead_is_the_end(void)
{
	struct epochs e = { 5, UINT64_MAX };

	CHECK(epochs_reach(&e, 0) && epochs_reach(&e, 5));
	CHECK(e.end == UINT64_MAX);
	CHECK(!epochs_reach(&e, 9) && e.end == 9);
	CHECK(!epochs_reach(&e, 7) && e.end == 7);
	CHECK(!epochs_reach(&e, 8) && e.end == 7 && e.now == 5);
}

int main(void)
{
	constants_apply_to_all_epochs();
	parts_come_in_order_with_their_epochs();
	mistakes_are_reported_where_they_are();
	the_nearest_epoch_ahead_is_the_end();
	return 0;
}
