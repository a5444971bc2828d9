/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces the defaults of a loader's options by the file of settings that
 * $BETON_SETTINGS names (fs/engine/settings.h). Options that the caller chose
 * keep their values, and a message lists the settings taken and those ignored.
 * Without the variable nothing changes.
 */
#ifndef LOADER_DEFAULTS_H
#define LOADER_DEFAULTS_H

#include "beton/loader.h"

struct log;

struct defaults {
	struct beton_loader_options
		options; /* refers to the caller's strings */
	char *spec;	 /* this and the members below: owned, or NULL */
	char *pipeline;
	char *cache;
	char *delivery;
};

/* Fills `out` with the caller's options, which have this library's size, and
   the settings. -EINVAL and the errors of reading the file are logged. */
int defaults_open(const struct beton_loader_options *options, struct log *log,
		  struct defaults *out);
void defaults_fini(struct defaults *d);

#endif
