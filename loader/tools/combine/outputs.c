/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/combine/outputs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/files/place.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/source/url/url.h"

enum {
	NAME_SIZE = 200, /* a file name has at most 255 bytes */
	VALUE_SIZE = 24,
};

static const char mark[] = "{}";

void outputs_fini(struct outputs *o)
{
	for (size_t i = 0; i < o->num; i++) {
		free(o->names[i]);
		if (o->paths)
			free(o->paths[i]);
	}
	free(o->names);
	free(o->paths);
	*o = (struct outputs){ .num = 0 };
}

/* --- names --------------------------------------------------------------- */

/* Takes the name, also on failure. */
static int push_name(struct outputs *o, char *name, struct log *log)
{
	char **more = NULL;

	if (name)
		more = realloc(o->names, (o->num + 1) * sizeof(*more));
	if (!more) {
		free(name);
		return log_no_memory(log, NULL);
	}
	o->names = more;
	o->names[o->num++] = name;
	return 0;
}

int outputs_number(struct outputs *o, size_t num, struct log *log)
{
	char last[VALUE_SIZE], name[2 * VALUE_SIZE];
	int digits = snprintf(last, sizeof(last), "%zu", num - 1);
	int r = 0;

	for (size_t i = 0; i < num && !r; i++) {
		snprintf(name, sizeof(name), "%0*zu", digits, i);
		r = push_name(o, strdup(name), log);
	}
	return r;
}

static bool has_name(const struct outputs *o, const char *name)
{
	for (size_t i = 0; i < o->num; i++) {
		if (!strcmp(o->names[i], name))
			return true;
	}
	return false;
}

static int refuse(struct log *log, const char *name, const char *why)
{
	log_error(log, "--names: `%s' %s", name, why);
	return -EINVAL;
}

int outputs_list(struct outputs *o, size_t num, const char *list,
		 struct log *log)
{
	cleanup_free char *copy = strdup(list);
	char *rest = copy;
	int r = copy ? 0 : log_no_memory(log, NULL);

	for (char *name; !r && (name = strsep(&rest, ","));) {
		if (!*name || strchr(name, '/') || strlen(name) > NAME_SIZE)
			r = refuse(log, name,
				   "cannot be a part of a file name");
		else if (has_name(o, name))
			r = refuse(log, name, "is given twice");
		else
			r = push_name(o, strdup(name), log);
	}
	if (!r && o->num != num) {
		log_error(log, "--names: %zu names, expected %zu", o->num, num);
		r = -EINVAL;
	}
	return r;
}

/* Cuts an escaped name, but not within an escape. */
static void cut(char *name)
{
	size_t n = NAME_SIZE;

	if (strlen(name) <= NAME_SIZE)
		return;
	if (name[n - 1] == '%')
		n--;
	else if (name[n - 2] == '%')
		n -= 2;
	name[n] = '\0';
}

int outputs_add(struct outputs *o, const char *name, long long value,
		struct log *log)
{
	size_t room = NAME_ESCAPED * strlen(name) + 2 + VALUE_SIZE;
	char *escaped = malloc(room);
	size_t n;

	if (!escaped)
		return log_no_memory(log, NULL);
	name_escape(name, escaped);
	n = strlen(escaped);
	cut(escaped);
	if (n > NAME_SIZE || has_name(o, escaped)) {
		n = strlen(escaped);
		snprintf(escaped + n, room - n, "~%lld", value);
	}
	return push_name(o, escaped, log);
}

/* --- paths --------------------------------------------------------------- */

/* Makes the directory unless it is there. */
static int need_dir(const char *path, struct log *log)
{
	int dir, r = place_make_dir(path, &dir);

	if (r == -ENOTDIR)
		log_error(log,
			  "%s: not a directory: expected a directory, or a "
			  "pattern of files with {}",
			  path);
	else if (r)
		log_error(log, "%s: cannot make the directory: %s", path,
			  place_why(r));
	else
		close(dir);
	return r;
}

int outputs_place(struct outputs *o, const char *target, struct log *log)
{
	const char *at = strstr(target, mark), *tail = ".beton";
	int head = (int)strlen(target), r = 0;

	if (at) {
		head = (int)(at - target);
		tail = at + strlen(mark);
	} else {
		r = url_is(target) ? 0 : need_dir(target, log);
		while (head > 1 && target[head - 1] == '/')
			head--;
	}
	o->paths = calloc(o->num + 1, sizeof(*o->paths));
	if (!r && !o->paths)
		r = log_no_memory(log, NULL);
	for (size_t i = 0; i < o->num && !r; i++) {
		if (text_print(&o->paths[i], "%.*s%s%s%s", head, target,
			       at || target[head - 1] == '/' ? "" : "/",
			       o->names[i], tail))
			r = log_no_memory(log, NULL);
	}
	return r;
}
