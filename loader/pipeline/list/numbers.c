/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/list/numbers.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* A double has fewer significant digits than a number of this length. */
enum { NUMBER_MAX = 400 };

struct numbers_reader {
	const char *at;
	const char *end;
	uint32_t ndim;
	const uint64_t *shape;
	numbers_fn *each;
	void *arg;
	locale_t plain;
};

static char next(struct numbers_reader *r)
{
	while (r->at < r->end && memchr(" \t\r\n", *r->at, 4))
		r->at++;
	return r->at < r->end ? *r->at : '\0';
}

static bool take(struct numbers_reader *r, char c)
{
	if (next(r) != c)
		return false;
	r->at++;
	return true;
}

static bool is_digit(const char *p, const char *end)
{
	return p < end && *p >= '0' && *p <= '9';
}

static const char *skip_digits(const char *p, const char *end)
{
	while (is_digit(p, end))
		p++;
	return p;
}

/* The end of the fraction and the exponent that begin at p; NULL: there is
   something else. */
static const char *skip_rest(const char *p, const char *end)
{
	if (p < end && *p == '.') {
		if (!is_digit(++p, end))
			return NULL;
		p = skip_digits(p, end);
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		return is_digit(p, end) ? skip_digits(p, end) : NULL;
	}
	return p;
}

/* A whole number in digits that fits is exact. */
static void parse_whole(const char *p, const char *end, struct number *out)
{
	bool minus = *p == '-';
	uint64_t v = 0, most = (uint64_t)INT64_MAX + minus;

	for (p += minus; p < end; p++) {
		unsigned digit = (unsigned)(*p - '0');

		if (v > (most - digit) / 10)
			return;
		v = 10 * v + digit;
	}
	out->is_whole = true;
	out->whole = minus ? (int64_t)-v : (int64_t)v;
}

/* As in the C locale, whatever the process has. */
static bool parse_real(const struct numbers_reader *r, const char *begin,
		       const char *end, double *out)
{
	char copy[NUMBER_MAX + 1];

	if (end - begin > NUMBER_MAX)
		return false;
	memcpy(copy, begin, (size_t)(end - begin));
	copy[end - begin] = '\0';
	*out = strtod_l(copy, NULL, r->plain);
	return true;
}

static const char *read_number(struct numbers_reader *r)
{
	const char *begin = (next(r), r->at);
	const char *digits = begin + (begin < r->end && *begin == '-');
	const char *whole = skip_digits(digits, r->end), *end;
	struct number number = { .is_whole = false };

	if (whole == digits || (*digits == '0' && whole > digits + 1))
		return "expected an array of numbers, all rows of one shape";
	end = skip_rest(whole, r->end);
	if (!end || !parse_real(r, begin, end, &number.real))
		return "a number is not one of JSON, or has over 400 digits";
	if (end == whole)
		parse_whole(begin, end, &number);
	r->at = end;
	return r->each(&number, r->arg);
}

static const char *read_row(struct numbers_reader *r, uint32_t depth)
{
	const char *wrong = NULL;

	if (depth == r->ndim)
		return read_number(r);
	if (!take(r, '['))
		return "a row is no array of the shape that was given";
	for (uint64_t i = 0; !wrong && i < r->shape[depth]; i++) {
		if (i && !take(r, ','))
			return "a row has too few numbers";
		wrong = read_row(r, depth + 1);
	}
	if (!wrong && !take(r, ']'))
		return "a row has too many numbers";
	return wrong;
}

static const char *read_rows(struct numbers_reader *r, uint64_t *rows)
{
	const char *wrong;

	*rows = 0;
	if (!take(r, '['))
		return "the text is no array of JSON";
	if (take(r, ']'))
		return NULL;
	do {
		wrong = read_row(r, 0);
		if (wrong)
			return wrong;
		++*rows;
	} while (take(r, ','));
	return take(r, ']') ? NULL : "the array has no end";
}

/* Behind the JSON there may be NULs, because FFCV pads with them. */
static const char *read_text(struct numbers_reader *r, uint64_t *rows)
{
	const char *wrong = read_rows(r, rows);

	if (wrong)
		return wrong;
	(void)next(r);
	while (r->at < r->end && !*r->at)
		r->at++;
	return r->at == r->end ? NULL : "something follows the array";
}

const char *numbers_read(const char *text, uint64_t size, uint32_t ndim,
			 const uint64_t *shape, numbers_fn *each, void *arg,
			 uint64_t *rows)
{
	struct numbers_reader r = {
		.at = text,
		.end = text + size,
		.ndim = ndim,
		.shape = shape,
		.each = each,
		.arg = arg,
		.plain = newlocale(LC_ALL_MASK, "C", NULL),
	};
	const char *wrong;

	if (!r.plain)
		return "out of memory";
	wrong = read_text(&r, rows);
	freelocale(r.plain);
	return wrong;
}
