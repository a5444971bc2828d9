/* SPDX-License-Identifier: Apache-2.0 */
/* A view of a mount as text. The text depends on the arguments only, so drawing
   needs no terminal. */
#ifndef LOADER_TOOLS_TOP_DRAW_H
#define LOADER_TOOLS_TOP_DRAW_H

#include <stdio.h>

#include "loader/tools/top/view.h"

/* The choices of the user. */
struct top_look {
	const char *mount;
	double interval_s; /* between two pictures; 0: there is one */
	enum top_sort sort;
	bool hides_ranks;
	bool shows_ended; /* also shows jobs that ended a while ago */
	size_t first;	  /* the first visible row of the table */
	/* Characters and lines. 0: as many as the text needs, without the line
	   of keys. */
	unsigned width, height;
	bool has_styles; /* the terminal understands ANSI styles */
};

/*
 * Prints at most `height` lines of at most `width` characters of printable
 * ASCII, each with a '\n'. Returns the largest useful `first`; a larger one is
 * taken as that.
 */
size_t top_draw(const struct top_view *view, const struct top_look *look,
		FILE *out);

#endif
