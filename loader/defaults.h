/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces defaults of a loader's options by the settings in the file
 * $BETON_SETTINGS (fs/base/settings/settings.h). Options that the caller chose
 * keep their values. A message lists the applied and the ignored settings. If
 * the variable is not set, all defaults stay.
 */
#ifndef LOADER_DEFAULTS_H
#define LOADER_DEFAULTS_H

#include "beton/loader.h"

struct log;

struct defaults {
	struct beton_loader_options
		options; /* refers to the caller's strings */
	char *spec;	 /* owned, or NULL, like all members below */
	char *pipeline;
	char *cache;
	char *delivery;
};

/* Fills `out` with the caller's options, which have this library's size, and
   the settings. Logs and returns -EINVAL and the errors of reading the file. */
int defaults_open(const struct beton_loader_options *options, struct log *log,
		  struct defaults *out);
void defaults_fini(struct defaults *d);

#endif
