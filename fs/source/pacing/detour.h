/* SPDX-License-Identifier: Apache-2.0 */
/* The target of a redirect: later requests begin there, which saves a round
   trip each, until one fails, because such URLs expire. One thread uses it. */
#ifndef FS_SOURCE_PACING_DETOUR_H
#define FS_SOURCE_PACING_DETOUR_H

#include <stdbool.h>

struct detour {
	char *url; /* may contain a signature; NULL: none */
	/* It has the origin of the first URL, and may see its secrets. */
	bool is_same_origin;
	unsigned serial; /* of the last URL, from 1 on */
};

/* A request was answered at this URL. Without memory, it is forgotten. */
void detour_found(struct detour *detour, const char *url, bool is_same_origin);
/* A request to the URL of a serial number failed: forgets it, unless there is
   another one meanwhile. 0: all of them. */
void detour_fails(struct detour *detour, unsigned serial);
void detour_fini(struct detour *detour);

#endif
