/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of beton_loader_open(): taken from callers of any version, and
 * checked. `why` has room for LOADER_ERROR_SIZE bytes.
 */
#ifndef LOADER_OPTIONS_H
#define LOADER_OPTIONS_H

#include <stdbool.h>

#include "beton/loader.h"

enum {
	LOADER_ERROR_SIZE = 1024,
	OPTIONS_THREADS_MAX = 4096, /* also batches to prefetch */
};

/* Copies the options of a caller, whose struct may be older or newer. */
int options_take(const struct beton_loader_options *from,
		 struct beton_loader_options *out, char *why);

/* Returns 0, or -EINVAL with the reason in `why`. */
int options_check(const struct beton_loader_options *o, char *why);

/* Parses "cuda:N", "cuda", "cpu" or NULL. The latter two set *gpu to -1. */
bool options_device(const char *text, int *gpu);

/* Returns the name of the job, or NULL if the daemon should count by
   session. */
const char *options_job(const struct beton_loader_options *o);

#endif
