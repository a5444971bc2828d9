/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/beton/defaults.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"

enum {
	/* Batches that are tried. Images of different sizes seldom have one
	   size in all of these. */
	TRIED = 4,
};

/* The default of libraries that train on ImageNet. */
#define SIZE_STAGE "center_crop(224)"

bool defaults_spec(const struct beton_loader_info *info, const char *given,
		   struct log *log, struct command_defaults *out)
{
	const char *own = given ? given : "", *comma = *own ? "," : "";
	unsigned long long n = info->samples;
	int size;

	if (!n || strstr(own, "batch="))
		return false;
	/* Without the dataset's subsets, the number of samples cannot be
	   computed here. */
	if (!strstr(info->spec, "subset=") &&
	    !strstr(info->spec, "num_samples="))
		size = snprintf(out->spec, DEFAULTS_SIZE, "%s%sbatch=%llu", own,
				comma, n);
	else if (!strstr(own, "drop_last="))
		size = snprintf(out->spec, DEFAULTS_SIZE, "%s%sdrop_last=0",
				own, comma);
	else
		return false;
	if (size >= DEFAULTS_SIZE)
		return false;
	log_info(log, "there are too few samples for a batch: using --spec=%s",
		 out->spec);
	return true;
}

/* Returns whether an output of a loader without a pipeline can be an image. */
static bool is_image(const struct beton_output *o)
{
	return o->ndim == 3 && !o->ragged && !strcmp(o->dtype, "|u1");
}

bool defaults_pipeline(struct beton_loader *loader,
		       struct command_defaults *out)
{
	struct beton_output o;
	size_t used = 0;

	for (uint32_t i = 0; !beton_loader_output(loader, i, &o); i++) {
		if (!is_image(&o))
			continue;
		used += (size_t)snprintf(
			out->pipeline + used, DEFAULTS_SIZE - used,
			"%s%s | " SIZE_STAGE, used ? "; " : "", o.name);
		if (used >= DEFAULTS_SIZE)
			return false;
	}
	return used > 0;
}

void defaults_log_pipeline(const struct command_defaults *choice,
			   struct log *log)
{
	log_info(log, "the images have different sizes: using --pipeline='%s'",
		 choice->pipeline);
}

/* Returns whether the first batches can be loaded. Opens a loader of its
   own. */
static int try_batches(const char *path,
		       const struct beton_loader_options *options)
{
	const struct beton_batch *batch;
	struct beton_loader *loader;
	int r = beton_loader_open(path, options, &loader);

	if (r)
		return r;
	for (int i = 0; i < TRIED && !r; i++) {
		r = beton_loader_next(loader, &batch);
		if (!r)
			beton_loader_release(loader, batch);
	}
	beton_loader_close(loader);
	return r == -ENODATA ? 0 : r;
}

/* Sets the pipeline if that makes batches load that do not. */
static void apply_pipeline(const char *path, struct log *log,
			   struct beton_loader_options *options,
			   struct command_defaults *out)
{
	if (!try_batches(path, options))
		return;
	options->pipeline = out->pipeline;
	if (try_batches(path, options))
		options->pipeline = NULL;
	else
		defaults_log_pipeline(out, log);
}

void defaults_apply(const char *path, struct log *log,
		    struct beton_loader_options *options,
		    struct command_defaults *out)
{
	struct beton_loader_info info;
	struct beton_loader *loader;
	bool has_images;

	if (beton_loader_open(path, options, &loader))
		return;
	beton_loader_info(loader, &info);
	if (!info.steps && defaults_spec(&info, options->spec, log, out))
		options->spec = out->spec;
	has_images = !options->pipeline && defaults_pipeline(loader, out);
	beton_loader_close(loader);
	if (has_images)
		apply_pipeline(path, log, options, out);
}
