/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/daemon/operand.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/files/paths.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/log.h"

int operand_absolute(const char *path, char out[PATH_MAX])
{
	char dir[PATH_MAX];
	int n;

	if (!*path)
		return -ENOENT;
	if (realpath(path, out))
		return 0;
	if (!getcwd(dir, sizeof(dir)))
		return -errno;
	n = snprintf(out, PATH_MAX, "%s%s%s", *path == '/' ? "" : dir,
		     *path == '/' ? "" : "/", path);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Returns the absolute path that all users see in /proc/mounts: the name of a
   link, not its target, which may be confidential. */
static int source_of(const char *path, char out[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *real = NULL;
	char dir[PATH_MAX];
	struct stat st;
	int n;

	if (lstat(path, &st) || !S_ISLNK(st.st_mode))
		return operand_absolute(path, out);
	n = snprintf(dir, PATH_MAX, "%.*s", slash ? (int)(slash - path) + 1 : 1,
		     slash ? path : ".");
	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	real = realpath(dir, NULL);
	if (!real)
		return -errno;
	n = snprintf(out, PATH_MAX, "%s/%s", real[1] ? real : "",
		     slash ? slash + 1 : path);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Lists the files of a pattern once, so that all later code uses the same
   files. */
static int resolve_pattern(const struct paths *paths, const char *pattern,
			   struct served_dataset *served)
{
	bool is_whole =
		*pattern == '/' || *pattern == '{' || paths_is_url(pattern);
	cleanup_free char *shown = paths_public(pattern);
	char dir[PATH_MAX] = "";
	int n, r = paths_text(paths, &served->path);

	if (!r && !shown)
		r = -ENOMEM;
	if (r)
		return r;
	if (!is_whole && !getcwd(dir, sizeof(dir)))
		return -errno;
	n = snprintf(served->source, OPERAND_SOURCE_MAX, "%s%s%s", dir,
		     *dir ? "/" : "", shown);
	if (n >= OPERAND_SOURCE_MAX)
		strcpy(served->source + OPERAND_SOURCE_MAX - 4, "...");
	return 0;
}

static int resolve_url(const char *url, struct served_dataset *served)
{
	cleanup_free char *shown = paths_public(url);
	int n;

	served->path = strdup(url);
	if (!served->path || !shown)
		return -ENOMEM;
	n = snprintf(served->source, OPERAND_SOURCE_MAX, "%s", shown);
	return n < OPERAND_SOURCE_MAX ? 0 : -ENAMETOOLONG;
}

static int resolve_path(const char *path, struct served_dataset *served)
{
	char real[PATH_MAX];
	int r;

	if (paths_is_url(path))
		return resolve_url(path, served);
	r = operand_absolute(path, real);
	if (r)
		return r;
	served->path = strdup(real);
	return served->path ? source_of(path, served->source) : -ENOMEM;
}

int operand_resolve(const char *text, struct log *log,
		    struct served_dataset *served)
{
	bool is_pattern = paths_is_pattern(text);
	struct paths paths = { 0 };
	int r = is_pattern || paths_is_url(text) ? paths_list(text, log, &paths)
						 : 0;

	if (r)
		return r;
	r = is_pattern ? resolve_pattern(&paths, text, served)
		       : resolve_path(text, served);
	paths_fini(&paths);
	if (r) {
		cleanup_free char *shown = paths_public(text);

		log_error(log, "%s: %s", shown ? shown : "", strerror(-r));
	}
	return r;
}
