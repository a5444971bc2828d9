/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view of a mount as text for people: a function of what it is given and of
 * nothing else, so it needs no terminal.
 */
#ifndef LOADER_TOOLS_TOP_DRAW_H
#define LOADER_TOOLS_TOP_DRAW_H

#include <stdio.h>

#include "loader/tools/top/view.h"

/* How somebody wants to see it. */
struct top_look {
	const char *mount;
	double interval_s; /* 0: there is but one picture */
	enum top_sort sort;
	bool hides_ranks;
	bool shows_ended; /* also jobs that ended a while ago */
	size_t first;	  /* the first row of the table that is seen */
	/* Characters; 0: as many as it takes, and no help for keys. */
	unsigned width, height;
	bool has_styles; /* of ANSI terminals */
};

/*
 * Lines that end in '\n', at most `height` of at most `width` characters of
 * printable ASCII. Returns how far down the table can be scrolled: `first`
 * beyond that counts as that.
 */
size_t top_draw(const struct top_view *view, const struct top_look *look,
		FILE *out);

#endif
