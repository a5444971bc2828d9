/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/pacing/detour.h"

#include <string.h>

#include "fs/source/net/secret.h"

void detour_found(struct detour *d, const char *url, bool is_same_origin)
{
	if (d->url && !strcmp(d->url, url))
		return;
	secret_free(&d->url);
	d->url = strdup(url);
	d->is_same_origin = is_same_origin;
	d->serial++;
}

void detour_fails(struct detour *d, unsigned serial)
{
	if (!serial || serial == d->serial)
		secret_free(&d->url);
}

void detour_fini(struct detour *d)
{
	secret_free(&d->url);
}
