/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defaults for options that the user leaves out, if the usual default would
 * fail: a batch size for a small dataset, and an image size if images have
 * different sizes. Each choice is logged as the option that makes it. One
 * thread.
 */
#ifndef LOADER_TOOLS_BETON_DEFAULTS_H
#define LOADER_TOOLS_BETON_DEFAULTS_H

#include "beton/loader.h"
#include "fs/base/util/log.h"

enum { DEFAULTS_SIZE = 4096 };

/* The text of a choice. */
struct command_defaults {
	char spec[DEFAULTS_SIZE];
	char pipeline[DEFAULTS_SIZE];
};

/*
 * Chooses a sampling spec with batches for a loader that has none. `given` is
 * the user's, or NULL. Returns false if the user chose the batch, or if no
 * choice helps.
 */
bool defaults_spec(const struct beton_loader_info *info, const char *given,
		   struct log *log, struct command_defaults *out);

/*
 * Chooses a pipeline that gives all images one size, for a loader that was
 * opened without a pipeline. Returns false if it has no images. The caller
 * calls defaults_log_pipeline() if it turns out that the pipeline helps.
 */
bool defaults_pipeline(struct beton_loader *loader,
		       struct command_defaults *out);
void defaults_log_pipeline(const struct command_defaults *choice,
			   struct log *log);

/*
 * Makes both choices for options with which a command is to open loaders. May
 * load some batches. Leaves the options alone if they work, or if no choice
 * helps.
 */
void defaults_apply(const char *path, struct log *log,
		    struct beton_loader_options *options,
		    struct command_defaults *out);

#endif
