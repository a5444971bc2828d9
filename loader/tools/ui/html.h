/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Self-contained HTML pages: without scripts, external fonts or external
 * images, in the reader's light or dark theme. Names, files and pipelines may
 * be hostile. html_text() and the tables and charts below escape them. One
 * thread.
 */
#ifndef LOADER_TOOLS_UI_HTML_H
#define LOADER_TOOLS_UI_HTML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "fs/base/util/log.h"

/* Writes a page. Returns 0 or -errno, which it has logged. */
typedef int html_write_fn(FILE *out, void *arg);

/* Calls a function that writes the page to `path`, which appears when it is
   complete. NULL: standard output. Returns 0 or -errno, which it has logged. */
int html_save(const char *path, struct log *log, html_write_fn *write,
	      void *arg);

/* Replaces `{name}` in a template. Set one of the other members. */
struct html_part {
	const char *name;
	const char *text; /* escaped */
	const char *markup;
	void (*write)(FILE *out, const void *arg);
};

/* A page in the frame of ui/page.html, with the style of ui/page.css. */
struct html_page {
	const char *title;
	const char *style;	       /* CSS in addition to ui/page.css */
	const char *body;	       /* a template */
	const struct html_part *parts; /* the last has no name; or NULL */
	const void *arg;	       /* for `write` */
};

void html_page(FILE *out, const struct html_page *page);

/* Writes text as escaped UTF-8. Invalid bytes are replaced, and control
   characters become blanks. */
void html_text(FILE *out, const char *text);
/* Like printf(), but escapes the arguments of %s; `format` itself is markup.
   Supports %s, %d, %u, %x, %llu, %zu, %f and %g, without `*`. */
void html_print(FILE *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A row of a bar chart. The length of a bar is relative to the longest. */
struct html_bar {
	char name[64];
	char number[64];
	double value;
	bool marked;
};

struct html_bar html_bar(const char *name, double value, bool marked,
			 const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* `title` describes the table to readers who do not see it. */
void html_bars(FILE *out, const char *title, const struct html_bar *bars,
	       size_t n);

#endif
