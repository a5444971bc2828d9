/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a text names: one file, or the files of a pattern. If a file
 * or directory has the text as its path, the text is that path. Otherwise
 * "{a,b}" stands for a and for b, in this order, and *, ? and [] match names as
 * in glob(7), in the order of their bytes, whatever the locale. A backslash
 * takes the meaning of the character behind it. "{000..127}" stands for 128
 * numbers of three digits. A URL is no path: nothing but braces has a meaning
 * in it.
 */
#ifndef FS_BASE_FILES_PATHS_H
#define FS_BASE_FILES_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#include "fs/base/util/log.h"

enum { PATHS_MAX = 4096 };

struct paths {
	char **at;
	size_t num;
};

/* Returns whether the text begins with a scheme and "://". */
bool paths_is_url(const char *text);

/*
 * Returns a text without the users and the queries of the URLs in it, because
 * these can contain secrets: for messages and lists. Any other text stays as it
 * is. The caller frees it; NULL if memory is short.
 */
char *paths_public(const char *text);

/* Returns whether the text is a pattern, and no file or directory has it as its
   path. */
bool paths_is_pattern(const char *text);

/*
 * Lists the files; a path that is no pattern need not exist. The caller calls
 * paths_fini() in any case. -ENOENT: a pattern matches nothing, -E2BIG: over
 * PATHS_MAX files, -EINVAL: a wildcard in a URL, or another -errno. Failures
 * are logged.
 */
int paths_list(const char *text, struct log *log, struct paths *out);
void paths_fini(struct paths *paths);

/* Sets *out to the text that names the files, absolute and without links; URLs
   stay as they are. The caller frees it. -ENOENT and other errors of realpath(), -ENOMEM. */
int paths_text(const struct paths *paths, char **out);

#endif
