/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/files/paths.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"

/* Characters that a backslash may precede. */
static const char special[] = "*?[]{},\\";

bool paths_is_url(const char *text)
{
	const char *p = text;

	while (isalnum((unsigned char)*p) || *p == '+' || *p == '.' ||
	       *p == '-')
		p++;
	return p > text && isalpha((unsigned char)*text) &&
	       !strncmp(p, "://", 3);
}

/*
 * Copies a URL, up to the end of the text or of its alternative if it is one,
 * but its user and its query. Returns what follows the URL.
 */
static const char *copy_public(const char *url, bool is_alternative, char **out)
{
	const char *p = strstr(url, "://") + 3;
	const char *user = memrchr(p, '@', strcspn(p, "/?#"));
	bool is_query = false;
	size_t depth = 0;

	*out = mempcpy(*out, url, (size_t)(p - url));
	for (p = user ? user + 1 : p; *p; p++) {
		if (is_alternative && !depth && (*p == ',' || *p == '}'))
			break;
		depth += *p == '{';
		depth -= *p == '}' && depth;
		is_query |= *p == '?' || *p == '#' || *p == '\\';
		if (!is_query)
			*(*out)++ = *p;
	}
	return p;
}

char *paths_public(const char *text)
{
	char *copy = malloc(strlen(text) + 1), *out = copy;
	size_t depth = 0;

	while (copy && *text) {
		if (paths_is_url(text)) {
			text = copy_public(text, depth, &out);
			continue;
		}
		depth += *text == '{';
		depth -= *text == '}' && depth;
		*out++ = *text++;
	}
	if (copy)
		*out = '\0';
	return copy;
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

/* The alternatives of the first "{a,b}" of a text, or the numbers of a
   "{1..9}". */
struct paths_group {
	const char *open;
	const char *close;
	bool is_range;
	unsigned long from, to;
	int digits; /* at least, with zeros in front */
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

/* Reads digits that fit into a number, and returns how many there are. */
static int read_number(const char *text, unsigned long *out)
{
	int n = (int)strspn(text, "0123456789");

	*out = n && n < 10 ? strtoul(text, NULL, 10) : 0;
	return n < 10 ? n : 0;
}

/* Numbers that begin with a zero have as many digits as the longer limit. */
static bool is_range(struct paths_group *g)
{
	const char *from = g->open + 1, *to;
	int first = read_number(from, &g->from), last;

	to = from + first + 2;
	if (!first || strncmp(from + first, "..", 2) != 0)
		return false;
	last = read_number(to, &g->to);
	g->close = to + last;
	g->digits = 1;
	if ((*from == '0' && first > 1) || (*to == '0' && last > 1))
		g->digits = first > last ? first : last;
	g->is_range = last && *g->close == '}' && g->from <= g->to;
	return g->is_range;
}

/* Braces with neither a comma nor a range between them are ordinary characters,
   as in shells. */
static bool is_group(struct paths_group *g)
{
	const char *end = end_of_alternative(g->open + 1);
	bool has_comma = end && *end == ',';

	g->is_range = false;
	if (is_range(g))
		return true;

	while (end && *end == ',')
		end = end_of_alternative(end + 1);
	g->close = end;
	return end && has_comma;
}

static bool find_group(const char *text, struct paths_group *g)
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

/* Adds the text once for each number, the last one first. */
static int add_numbers(struct paths *todo, const char *text,
		       const struct paths_group *g)
{
	char *one;
	int r = 0;

	if (g->to - g->from >= PATHS_MAX)
		return -E2BIG;
	for (unsigned long i = g->to + 1; i-- > g->from && !r;) {
		text_print(&one, "%.*s%0*lu%s", (int)(g->open - text), text,
			   g->digits, i, g->close + 1);
		r = add_path(todo, one);
	}
	return r;
}

/* Adds the text once for each alternative, the last one first. */
static int add_alternatives(struct paths *todo, const char *text,
			    const struct paths_group *g)
{
	struct paths turned = { 0 };
	const char *from, *end = g->open;
	char *one;
	int r = 0;

	if (g->is_range)
		return add_numbers(todo, text, g);
	while (end != g->close && !r) {
		from = end + 1;
		end = end_of_alternative(from);
		text_print(&one, "%.*s%.*s%s", (int)(g->open - text), text,
			   (int)(end - from), from, g->close + 1);
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

bool paths_is_pattern(const char *text)
{
	struct paths_group g;
	struct stat st;

	if (paths_is_url(text))
		return find_group(text, &g);
	return strpbrk(text, "*?[{") && lstat(text, &st);
}

/* A server lists no files. In a URL, ? begins a query, and a number in []
   is an address. */
static int add_url(struct paths *out, const char *url, struct log *log)
{
	cleanup_free char *shown = NULL;

	if (!strchr(url, '*'))
		return add_path(out, strdup(url));
	shown = paths_public(url);
	log_error(
		log,
		"%s: a URL has no wildcards: list the files in braces, as in {000..127}, or write a * of a name as %%2A",
		shown ? shown : "");
	return -EINVAL;
}

static int list_pattern(const char *text, struct log *log, struct paths *out)
{
	struct paths todo = { 0 };
	struct paths_group g;
	char *one;
	int r = add_path(&todo, strdup(text));

	while (todo.num && !r) {
		one = todo.at[--todo.num];
		if (find_group(one, &g)) {
			r = add_alternatives(&todo, one, &g);
		} else if (paths_is_url(one)) {
			take_backslashes(one);
			r = add_url(out, one, log);
		} else if (has_wildcard(one)) {
			r = add_matches(out, one, log);
		} else {
			take_backslashes(one);
			r = add_path(out, steal(one));
		}
		free(one);
	}
	paths_fini(&todo);
	if (r == -E2BIG) {
		cleanup_free char *shown = paths_public(text);

		log_error(log, "%s: more than %d files", shown ? shown : "",
			  (int)PATHS_MAX);
	}
	return r;
}

int paths_list(const char *text, struct log *log, struct paths *out)
{
	int r;

	*out = (struct paths){ 0 };
	if (paths_is_pattern(text))
		r = list_pattern(text, log, out);
	else if (paths_is_url(text))
		r = add_url(out, text, log);
	else
		r = add_path(out, strdup(text));
	if (r == -ENOMEM)
		log_error(log, "list of files: %s", strerror(-r));
	return r;
}

/* --- the text of a list --- */

/* The caller frees it; NULL, and errno, if it fails. */
static char *real_path(const char *path)
{
	return paths_is_url(path) ? strdup(path) : realpath(path, NULL);
}

static int print_real(FILE *out, const char *path)
{
	cleanup_free char *real = real_path(path);

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
		*out = real_path(paths->at[0]);
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
