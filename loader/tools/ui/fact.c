/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/fact.h"

#include <math.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/ui/html.h"

static const void *value_of(const struct fact *f, const void *thing)
{
	return (const char *)thing + f->at;
}

static bool is_known(const struct fact *f, const void *thing)
{
	if (f->type == FACT_TEXT && !*(const char *const *)value_of(f, thing))
		return false;
	return !f->known || *(const bool *)((const char *)thing + f->known);
}

/* NULL if the fact is a number. */
static const char *text_of(const struct fact *f, const void *thing)
{
	if (f->type == FACT_CHARS)
		return value_of(f, thing);
	return f->type == FACT_TEXT ? *(const char *const *)value_of(f, thing)
				    : NULL;
}

static double number_of(const struct fact *f, const void *thing)
{
	const void *value = value_of(f, thing);

	switch (f->type) {
	case FACT_REAL:
		return *(const double *)value;
	case FACT_INT:
		return *(const int *)value;
	case FACT_UNSIGNED:
		return *(const unsigned *)value;
	case FACT_U64:
		return (double)*(const uint64_t *)value;
	default:
		return *(const bool *)value;
	}
}

/* --- JSON --- */

static json_t *json_of(const struct fact *f, const void *thing)
{
	const void *value = value_of(f, thing);

	switch (f->type) {
	case FACT_REAL:
		return json_real(*(const double *)value);
	case FACT_INT:
		return json_integer(*(const int *)value);
	case FACT_UNSIGNED:
		return json_integer(*(const unsigned *)value);
	case FACT_U64:
		return json_integer((json_int_t) * (const uint64_t *)value);
	case FACT_BOOL:
		return json_boolean(*(const bool *)value);
	default:
		return json_string(text_of(f, thing));
	}
}

json_t *fact_json(json_t *object, const struct fact *facts, unsigned whose,
		  const void *thing)
{
	json_t *value;

	for (const struct fact *f = facts; f->type != FACT_END; f++) {
		if (!f->key || (f->whose && !(f->whose & whose)))
			continue;
		/* It makes none of what JSON has no words for. */
		value = is_known(f, thing) ? json_of(f, thing) : NULL;
		json_object_set_new(object, f->key,
				    value ? value : json_null());
	}
	return object;
}

/*
 * --- text ---
 */

/* "0", "3.0", "2037", "12M": below ten with `digits` behind the point. */
static const char *brief(double v, int digits, char out[FACT_NUMBER_SIZE])
{
	static const char units[] = " kMGTPEZ";
	unsigned i = 0;

	while (v >= 999999.5 && units[i + 2]) {
		v /= 1000;
		i++;
	}
	if (i)
		snprintf(out, FACT_NUMBER_SIZE, "%.0f%c", v, units[i]);
	else
		snprintf(out, FACT_NUMBER_SIZE, "%.*f",
			 v > 0 && v < 9.95 ? digits : 0, v);
	return out;
}

const char *fact_bytes(double v, char out[FACT_NUMBER_SIZE])
{
	static const char *const units[] = { "B",   "KiB", "MiB", "GiB",
					     "TiB", "PiB", "EiB" };
	unsigned i = 0;

	while (v >= 1023.5 && i + 1 < ARRAY_LEN(units)) {
		v /= 1024;
		i++;
	}
	snprintf(out, FACT_NUMBER_SIZE, "%.*f %s", i && v < 99.95, v, units[i]);
	return out;
}

/* Returns NULL if the unit has no text form. */
static const char *unit_text(const struct fact *f, const void *thing,
			     char out[FACT_NUMBER_SIZE])
{
	if (f->unit < FACT_BRIEF)
		return NULL;
	if (!is_known(f, thing))
		return "-";
	if (f->unit == FACT_BRIEF)
		return brief(number_of(f, thing), f->type == FACT_REAL, out);
	if (f->unit == FACT_BYTES)
		return fact_bytes(number_of(f, thing), out);
	snprintf(out, FACT_NUMBER_SIZE, "%.2f", number_of(f, thing));
	return out;
}

static double scaled(const struct fact *f, const void *thing)
{
	static const double scales[] = {
		[FACT_ONE] = 1,	    [FACT_PERCENT] = 100, [FACT_HALF] = 0.5,
		[FACT_MEGA] = 1e-6, [FACT_GIGA] = 1e-9,
	};

	return number_of(f, thing) * scales[f->unit];
}

void fact_titles(FILE *out, const struct fact *facts)
{
	for (const struct fact *f = facts; f->type != FACT_END; f++) {
		if (f->title)
			fprintf(out, " %*s", f->width, f->title);
	}
	fputc('\n', out);
}

void fact_text(FILE *out, const struct fact *facts, const void *thing)
{
	char number[FACT_NUMBER_SIZE];
	const char *text;

	for (const struct fact *f = facts; f->type != FACT_END; f++) {
		if (!f->text || (!is_known(f, thing) && f->unit < FACT_BRIEF))
			continue;
		text = text_of(f, thing);
		text = text ? text : unit_text(f, thing, number);
		if (text)
			fprintf(out, f->text, text);
		else if (f->type != FACT_BOOL)
			fprintf(out, f->text, scaled(f, thing));
		else if (number_of(f, thing) != 0)
			fputs(f->text, out);
	}
}

void fact_html(FILE *out, const struct fact *facts, const void *thing)
{
	const char *text;

	for (const struct fact *f = facts; f->type != FACT_END; f++) {
		if (!f->html || !is_known(f, thing))
			continue;
		text = text_of(f, thing);
		if (text)
			html_print(out, f->html, text);
		else if (f->type == FACT_BOOL && number_of(f, thing) == 0)
			continue;
		else
			html_print(out, f->html, scaled(f, thing));
	}
}

void fact_cell(const struct fact *f, const void *thing, char *out, size_t size)
{
	char number[FACT_NUMBER_SIZE];
	const char *text =
		is_known(f, thing) ? unit_text(f, thing, number) : "-";

	if (text)
		snprintf(out, size, "%s", text);
	else
		snprintf(out, size, f->text, scaled(f, thing));
}
