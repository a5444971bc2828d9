/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/files/paths.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

/* The first kind that matches a path takes it. The last one takes all that no
   other kind does. */
static const struct input_kind *const kinds[] = {
	&input_beton, &input_directory,	 &input_list,	 &input_manifest,
	&input_numpy, &input_webdataset, &input_library,
};

static int read_head(struct input_path *path, struct log *log)
{
	cleanup_fd int fd =
		open(path->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : pread(fd, path->head, sizeof(path->head), 0);

	if (n < 0) {
		log_error(log, "%s: %s", path->path, strerror(errno));
		return -errno;
	}
	path->head_size = (size_t)n;
	return 0;
}

static int look_at(const char *source, struct log *log, struct input_path *out)
{
	*out = (struct input_path){ .path = source };
	if (!strcmp(source, "-") || paths_is_url(source))
		return 0;
	if (stat(source, &out->st) < 0) {
		log_error(log, "%s: %s", source, strerror(errno));
		return -errno;
	}
	if (S_ISREG(out->st.st_mode))
		return read_head(out, log);
	if (S_ISDIR(out->st.st_mode))
		return 0;
	log_error(log, "%s: not a file or directory", source);
	return -EINVAL;
}

static const struct input_kind *find_kind(const struct input_path *path)
{
	size_t i = 0;

	while (i + 1 < ARRAY_LEN(kinds) && !kinds[i]->matches(path))
		i++;
	return kinds[i];
}

/* All sources have one kind. */
static int choose_kind(const struct input_setup *setup,
		       const struct input_kind **out)
{
	const struct input_path *paths = setup->paths;
	const struct input_kind *kind = NULL;

	for (size_t i = 0; i < setup->num_paths; i++) {
		const struct input_kind *k = find_kind(&paths[i]);

		if (kind && k != kind) {
			log_error(setup->log,
				  "sources of two kinds: %s: %s, and %s: %s: "
				  "make a dataset of each kind, and join them "
				  "with beton merge",
				  paths[0].path, kind->words, paths[i].path,
				  k->words);
			return -EINVAL;
		}
		kind = k;
	}
	if (setup->split && !kind->has_splits) {
		log_error(setup->log, "--split=%s: %s has no splits",
			  setup->split, kind->words);
		return -EINVAL;
	}
	*out = kind;
	return 0;
}

int input_open(char *const *sources, size_t num_sources,
	       struct input_setup *setup, struct input **out)
{
	cleanup_free struct input_path *paths =
		calloc(num_sources + 1, sizeof(*paths));
	const struct input_kind *kind = NULL;
	int r = 0;

	if (!paths)
		return log_no_memory(setup->log, NULL);
	setup->paths = paths;
	setup->num_paths = num_sources;
	for (size_t i = 0; i < num_sources && !r; i++)
		r = look_at(sources[i], setup->log, &paths[i]);
	r = r ? r : choose_kind(setup, &kind);
	return r ? r : kind->open(setup, out);
}
