/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "loader/pipeline/op/crop.h"
#include "tests/unit/t.h"

enum { DRAWS_MAX = 32 };

struct draws {
	double v[DRAWS_MAX];
	int num, used;
};

static double next(void *arg)
{
	struct draws *d = arg;

	CHECK(d->used < d->num);
	return d->v[d->used++];
}

/* Moves behind `key` and returns the number there. */
static double number_after(const char **at, const char *key)
{
	char *end;
	double v;

	*at = strstr(*at, key);
	CHECK(*at);
	v = strtod(*at + strlen(key), &end);
	*at = end;
	return v;
}

static double next_in_list(const char **at)
{
	char *end;
	double v = strtod(*at + strspn(*at, " ,"), &end);

	*at = end;
	return v;
}

static void read_draws(const char **at, struct draws *d)
{
	*d = (struct draws){ 0 };
	d->v[d->num++] = number_after(at, "\"draws\": [");
	while (**at != ']') {
		CHECK(d->num < DRAWS_MAX);
		d->v[d->num++] = next_in_list(at);
	}
}

static int check_case(const char **at)
{
	struct draws draws;
	struct crop_limits limits;
	uint32_t height = (uint32_t)number_after(at, "\"height\": ");
	uint32_t width = (uint32_t)number_after(at, "\"width\": ");
	struct rect r;

	limits.scale[0] = number_after(at, "\"scale\": [");
	limits.scale[1] = next_in_list(at);
	limits.ratio[0] = number_after(at, "\"ratio\": [");
	limits.ratio[1] = next_in_list(at);
	read_draws(at, &draws);
	r = crop_random(&limits, (struct uniform){ next, &draws }, width,
			height);
	CHECK(draws.used == draws.num);
	CHECK(r.y == (uint32_t)number_after(at, "\"row\": "));
	CHECK(r.x == (uint32_t)number_after(at, "\"col\": "));
	CHECK(r.height == (uint32_t)number_after(at, "\"crop_h\": "));
	CHECK(r.width == (uint32_t)number_after(at, "\"crop_w\": "));
	return draws.num == 20;
}

static void check_center(const char **at)
{
	uint32_t height = (uint32_t)number_after(at, "\"height\": ");
	uint32_t width = (uint32_t)number_after(at, "\"width\": ");
	double ratio = number_after(at, "\"ratio\": ");
	struct rect r = crop_center(ratio, width, height);

	CHECK(r.y == (uint32_t)number_after(at, "\"box\": ["));
	CHECK(r.x == (uint32_t)next_in_list(at));
	CHECK(r.height == (uint32_t)next_in_list(at));
	CHECK(r.width == (uint32_t)next_in_list(at));
}

static char *read_cases(void)
{
	const char *shared = getenv("BETON_SHARED");
	char path[4096];
	char *text = calloc(1, 1 << 20);
	FILE *f;

	snprintf(path, sizeof(path), "%s/data/golden/crop_cases.json",
		 shared ? shared : "../shared");
	f = fopen(path, "r");
	if (!f) {
		printf("skip: no %s\n", path);
		free(text);
		return NULL;
	}
	CHECK(text && fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	return text;
}

static void crops_are_ffcvs_draw_by_draw(void)
{
	char *text = read_cases();
	const char *at = text, *centers;
	int cases = 0, fallbacks = 0;

	if (!text)
		return;
	centers = strstr(text, "\"center\": [");
	CHECK(centers);
	while ((at = strstr(at, "{\"height\"")) && at < centers) {
		fallbacks += check_case(&at);
		cases++;
	}
	CHECK(cases == 300 && fallbacks >= 196);
	for (at = centers; (at = strstr(at, "{\"height\"")); cases++)
		check_center(&at);
	CHECK(cases > 300);
	free(text);
}

static void the_largest_draws_stay_inside(void)
{
	struct draws draws = { .num = 4 };
	struct crop_limits limits = { { 0.08, 1 }, { 0.75, 4.0 / 3 } };

	for (uint32_t side = 1; side < 3000; side += 7) {
		struct rect r;

		draws.used = 0;
		draws.v[0] = 0.1;
		draws.v[1] = 0.5;
		draws.v[2] = draws.v[3] = 1 - 0x1p-53;
		r = crop_random(&limits, (struct uniform){ next, &draws },
				side + 20, side + 20);
		CHECK(r.y + r.height == side + 20);
		CHECK(r.x + r.width == side + 20);
	}
}

int main(void)
{
	crops_are_ffcvs_draw_by_draw();
	the_largest_draws_stay_inside();
	return 0;
}
