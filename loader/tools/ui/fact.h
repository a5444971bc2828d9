/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports as tables of facts. A row contains the offset of a value in a struct,
 * its key in JSON, its unit, and its form in text and HTML. To add a value to a
 * report, add a row. A table is an array that ends with FACT_LAST. No state;
 * any thread.
 */
#ifndef LOADER_TOOLS_UI_FACT_H
#define LOADER_TOOLS_UI_FACT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum fact_type {
	FACT_END,
	FACT_REAL,
	FACT_INT,
	FACT_UNSIGNED,
	FACT_U64,
	FACT_BOOL,
	FACT_CHARS, /* an array in the struct */
	FACT_TEXT,  /* a pointer; NULL: unknown */
};

/* The form of a number in text. JSON has the plain number. */
enum fact_unit {
	FACT_ONE,
	FACT_PERCENT, /* of a share */
	FACT_HALF,
	FACT_MEGA,
	FACT_GIGA,
	/* The units below convert a number to text, or "-" if it is unknown. */
	FACT_BRIEF, /* "1.5", "2037", "12M" */
	FACT_BYTES, /* "1.5 GiB" */
	FACT_RATIO, /* "1.50" */
};

struct fact {
	const char *key; /* in JSON; NULL: not there */
	enum fact_type type;
	enum fact_unit unit;
	size_t at;    /* offset of the value */
	size_t known; /* offset of a bool: the value is available; 0: it always
			 is */
	/* A format of printf() for the value, with %s for text and for units
	   that make text, and %f for other numbers. A bool has no conversion:
	   if it is true, its text is printed. NULL: not printed. */
	const char *text;
	const char *html; /* markup; not for bools, and not for such units */
	unsigned whose;	  /* bits of the objects that have it; 0: all have */
	/* Only for tables in text: */
	const char *title; /* of its column; NULL: it has none */
	int width;	   /* characters */
	int place;	   /* among the columns */
	int goes; /* the order in which columns leave a narrow window */
};

/* The type and offset of a member, which may be nested in another member. */
#define FACT_AT(type_, member)                                                 \
	.type = _Generic(&((type_ *)0)->member,                                \
			 double *: FACT_REAL,                                  \
			 int *: FACT_INT,                                      \
			 unsigned *: FACT_UNSIGNED,                            \
			 uint64_t *: FACT_U64,                                 \
			 bool *: FACT_BOOL,                                    \
			 char(*)[sizeof(((type_ *)0)->member)]: FACT_CHARS,    \
			 char **: FACT_TEXT,                                   \
			 const char **: FACT_TEXT),                            \
	.at = offsetof(type_, member)

#define FACT_LAST                                                              \
	{                                                                      \
		.type = FACT_END                                               \
	}

/* Adds the facts of `thing` to an object, and returns the object. Numbers that
   are not known or not finite, and text that is not UTF-8, are null. */
json_t *fact_json(json_t *object, const struct fact *facts, unsigned whose,
		  const void *thing);

/* A line of the titles, each as wide as its column. */
void fact_titles(FILE *out, const struct fact *facts);

/* Prints the facts that `text` or `html` is given for and that are known. */
void fact_text(FILE *out, const struct fact *facts, const void *thing);
void fact_html(FILE *out, const struct fact *facts, const void *thing);

/* A cell of a table: a number by its unit or its `text`; "-": not known. */
void fact_cell(const struct fact *fact, const void *thing, char *out,
	       size_t size);

enum { FACT_NUMBER_SIZE = 32 };

/* "512 MiB" */
const char *fact_bytes(double v, char out[FACT_NUMBER_SIZE]);

#endif
