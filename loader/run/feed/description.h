/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The description of a dataset that its directory in a mount contains:
 * dataset.json, and the values of sample 0. Any directory may contain such
 * files, so that they are untrusted. This module checks every number, and every
 * string by its grammar, before the rest of the loader sees it.
 */
#ifndef LOADER_RUN_FEED_DESCRIPTION_H
#define LOADER_RUN_FEED_DESCRIPTION_H

#include "loader/run/feed/feed.h"

enum {
	DESCRIPTION_WHY_SIZE = 200,
	/* The largest dataset.json. The longest field takes 1 KiB. */
	DESCRIPTION_MAX = 8 << 20,
};

/* Parses dataset.json into feed->facts, ->fingerprint and ->fields.
   -BETON_ECORRUPT: `why` receives the reason in one line. -ENOMEM */
int description_parse(struct feed *feed, const char *text, size_t size,
		      char why[DESCRIPTION_WHY_SIZE]);

/* Compares another dataset.json with the description of this feed. -ESTALE: it
   describes another dataset. Both write the fingerprint to `print`. Otherwise
   fails as description_parse(). */
int description_compare(const struct feed *feed, const char *text, size_t size,
			char print[2 * BETON_FINGERPRINT_SIZE + 1],
			char why[DESCRIPTION_WHY_SIZE]);

/* Completes the fields by the values of sample 0, the first one in a batch
   file. -BETON_ECORRUPT: the batch has other fields. */
int description_add_sample(struct feed *feed, const struct batch_view *view);

#endif
