/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/sort.h"

#include "tests/unit/t.h"

int main(void)
{
	double reals[] = { 3, -1, 2.5, 1e300 };
	int64_t integers[] = { 7, INT64_MIN, INT64_MAX, 0, 7 };

	sort_reals(NULL, 0);
	sort_integers(NULL, 0);
	sort_reals(reals, 3);
	CHECK(reals[0] == -1 && reals[1] == 2.5 && reals[2] == 3);
	CHECK(reals[3] == 1e300);
	CHECK(sort_median(reals, 1) == -1);
	CHECK(sort_median(reals, 2) == 0.75);
	CHECK(sort_median(reals, 3) == 2.5);
	sort_integers(integers, 5);
	CHECK(integers[0] == INT64_MIN && integers[1] == 0);
	CHECK(integers[2] == 7 && integers[3] == 7 && integers[4] == INT64_MAX);
	return 0;
}
