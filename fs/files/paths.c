/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/files/paths.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/util/cleanup.h"

/* Characters that a backslash may precede. */
static const char special[] = "*?[]{},\\";

bool paths_is_pattern(const char *text)
{
	struct stat st;

	return strpbrk(text, "*?[{") && lstat(text, &st);
}

/* Appends the text and takes ownership of it. NULL fails with -ENOMEM. */
static int add_path(struct paths *paths, char *text)
{
	char **more = NULL;

	if (paths->num == PATHS_MAX) {
		free(text);
		return -E2BIG;
	}
	if (text)
		more = realloc(paths->at, (paths->num + 1) * sizeof(*more));
	if (!more) {
		free(text);
		return -ENOMEM;
	}
	paths->at = more;
	more[paths->num++] = text;
	return 0;
}

void paths_fini(struct paths *paths)
{
	for (size_t i = 0; i < paths->num; i++)
		free(paths->at[i]);
	free(paths->at);
	*paths = (struct paths){ 0 };
}

/* --- braces --- */

/* The alternatives of the first "{a,b}" of a text. */
struct group {
	const char *open;
	const char *close;
};

/* The character that a backslash precedes, or the same one. */
static const char *escaped(const char *p)
{
	return p[0] == '\\' && p[1] ? p + 1 : p;
}

/* Returns the end of an alternative: a comma or a brace that belongs to no
   group inside it. NULL: the text ends before. */
static const char *end_of_alternative(const char *p)
{
	size_t depth = 0;

	for (; *p; p++) {
		if (escaped(p) != p) {
			p++;
			continue;
		}
		if (!depth && (*p == ',' || *p == '}'))
			return p;
		depth += *p == '{';
		depth -= *p == '}';
	}
	return NULL;
}

/* Braces without a comma between them are ordinary characters, as in shells. */
static bool is_group(struct group *g)
{
	const char *end = end_of_alternative(g->open + 1);
	bool has_comma = end && *end == ',';

	while (end && *end == ',')
		end = end_of_alternative(end + 1);
	g->close = end;
	return end && has_comma;
}

static bool find_group(const char *text, struct group *g)
{
	for (const char *p = text; *p; p++) {
		g->open = p;
		if (escaped(p) != p)
			p++;
		else if (*p == '{' && is_group(g))
			return true;
	}
	return false;
}

/* Adds the text once for each alternative, the last one first. */
static int add_alternatives(struct paths *todo, const char *text,
			    const struct group *g)
{
	struct paths turned = { 0 };
	const char *from, *end = g->open;
	char *one;
	int r = 0;

	while (end != g->close && !r) {
		from = end + 1;
		end = end_of_alternative(from);
		if (asprintf(&one, "%.*s%.*s%s", (int)(g->open - text), text,
			     (int)(end - from), from, g->close + 1) < 0)
			one = NULL;
		r = add_path(&turned, one);
	}
	while (turned.num && !r)
		r = add_path(todo, turned.at[--turned.num]);
	paths_fini(&turned);
	return r;
}

/* --- patterns --- */

static void take_backslashes(char *text)
{
	char *out = text;

	for (const char *p = text; *p; p++) {
		p = escaped(p);
		*out++ = *p;
	}
	*out = '\0';
}

static bool has_wildcard(const char *p)
{
	for (; *p; p++) {
		if (escaped(p) != p)
			p++;
		else if (strchr("*?[", *p))
			return true;
	}
	return false;
}

/* glob() sorts by the locale's order of letters. */
static int glob_by_bytes(const char *pattern, glob_t *found)
{
	locale_t bytes = newlocale(LC_COLLATE_MASK, "C", 0), own;
	int r;

	if (!bytes)
		return GLOB_NOSPACE;
	own = uselocale(bytes);
	r = glob(pattern, GLOB_ERR, NULL, found);
	uselocale(own);
	freelocale(bytes);
	return r;
}

static int add_matches(struct paths *out, const char *pattern, struct log *log)
{
	glob_t found = { 0 };
	int failed = glob_by_bytes(pattern, &found), r = 0;

	if (failed == GLOB_NOSPACE) {
		r = -ENOMEM;
	} else if (failed == GLOB_ABORTED) {
		r = errno ? -errno : -EIO;
		log_error(log, "%s: cannot read a directory: %s", pattern,
			  strerror(-r));
	} else if (failed) {
		r = -ENOENT;
		log_error(log, "%s: no file matches", pattern);
	}
	for (size_t i = 0; i < found.gl_pathc && !r; i++)
		r = add_path(out, strdup(found.gl_pathv[i]));
	globfree(&found);
	return r;
}

static int list_pattern(const char *text, struct log *log, struct paths *out)
{
	struct paths todo = { 0 };
	struct group g;
	char *one;
	int r = add_path(&todo, strdup(text));

	while (todo.num && !r) {
		one = todo.at[--todo.num];
		if (find_group(one, &g)) {
			r = add_alternatives(&todo, one, &g);
		} else if (has_wildcard(one)) {
			r = add_matches(out, one, log);
		} else {
			take_backslashes(one);
			r = add_path(out, steal(one));
		}
		free(one);
	}
	paths_fini(&todo);
	if (r == -E2BIG)
		log_error(log, "%s: more than %d files", text, (int)PATHS_MAX);
	return r;
}

int paths_list(const char *text, struct log *log, struct paths *out)
{
	int r;

	*out = (struct paths){ 0 };
	r = paths_is_pattern(text) ? list_pattern(text, log, out)
				   : add_path(out, strdup(text));
	if (r == -ENOMEM)
		log_error(log, "%s: %s", text, strerror(-r));
	return r;
}

/* --- the text of a list --- */

static int print_real(FILE *out, const char *path)
{
	cleanup_free char *real = realpath(path, NULL);

	if (!real)
		return -errno;
	for (const char *p = real; *p; p++) {
		if (strchr(special, *p))
			fputc('\\', out);
		fputc(*p, out);
	}
	return 0;
}

static int print_group(FILE *out, const struct paths *paths)
{
	int r = 0;

	fputc('{', out);
	for (size_t i = 0; i < paths->num && !r; i++) {
		if (i)
			fputc(',', out);
		r = print_real(out, paths->at[i]);
	}
	fputc('}', out);
	return r;
}

int paths_text(const struct paths *paths, char **out)
{
	cleanup_free char *text = NULL;
	size_t size;
	FILE *file;
	int r;

	if (paths->num == 1) {
		*out = realpath(paths->at[0], NULL);
		return *out ? 0 : -errno;
	}
	file = open_memstream(&text, &size);
	if (!file)
		return -ENOMEM;
	r = print_group(file, paths);
	if (fclose(file) && !r)
		r = -ENOMEM;
	if (!r)
		*out = steal(text);
	return r;
}
