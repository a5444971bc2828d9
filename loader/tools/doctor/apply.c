/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/doctor/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/files/outfile.h"
#include "fs/base/settings/settings.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

enum { TEXT_SIZE = 16384, KEYS_SIZE = 1024 };

const char *apply_fate_name(enum apply_fate fate)
{
	static const char *const names[] = {
		[APPLY_NONE] = "no setting",
		[APPLY_WRITTEN] = "written",
		[APPLY_NO_GAIN] = "no gain",
		[APPLY_OTHER] = "a better fix sets the same key",
		[APPLY_NOT_ALLOWED] = "not allowed",
	};

	return names[fate];
}

/* Replaces settings files only: a mistyped path must not cost the user a
   file. */
int apply_check(const char *path, struct log *log)
{
	char head[sizeof(SETTINGS_HEAD)] = "";
	cleanup_fd int fd =
		open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd >= 0 ? read(fd, head, sizeof(head) - 1) : 0;

	if (fd < 0 && errno == ENOENT)
		return 0;
	/* An empty file may be replaced. */
	if (fd >= 0 && (!n || !strcmp(head, SETTINGS_HEAD)))
		return 0;
	log_error(
		log,
		"%s: exists, but is not a settings file: give --apply another path",
		path);
	return -EEXIST;
}

/* Whether `keys`, " a c ", contains a key of `setting`, "a=b,c=d". Adds all
   keys of the setting. */
static bool is_taken(const char *setting, char *keys)
{
	bool found = false;

	while (*setting) {
		char key[64] = " ";
		size_t n = strlen(keys), size = strcspn(setting, "=");

		strncat(key, setting,
			size < sizeof(key) - 3 ? size : sizeof(key) - 3);
		strcat(key, " ");
		found |= strstr(keys, key) != NULL;
		snprintf(keys + n, KEYS_SIZE - n, "%s", key);
		setting += strcspn(setting, ",");
		setting += strspn(setting, ",");
	}
	return found;
}

static enum apply_fate fate_of(const struct fix *f, unsigned allowed,
			       char *keys)
{
	if (!*f->setting)
		return APPLY_NONE;
	if (f->gain < FIX_GAIN_LEAST)
		return APPLY_NO_GAIN;
	if (f->changes & ~allowed)
		return APPLY_NOT_ALLOWED;
	return is_taken(f->setting, keys) ? APPLY_OTHER : APPLY_WRITTEN;
}

/* Appends the settings of a fix, one a line, below a comment with its gain. */
static void add_setting(const struct fix *f, char *text)
{
	size_t n = strlen(text);

	n += (size_t)snprintf(text + n, TEXT_SIZE - n, "# x%.2f: %s\n", f->gain,
			      f->option);
	for (const char *s = f->setting; *s && n < TEXT_SIZE; s++)
		n += (size_t)snprintf(text + n, TEXT_SIZE - n, "%c",
				      *s == ',' ? '\n' : *s);
	if (n < TEXT_SIZE)
		snprintf(text + n, TEXT_SIZE - n, "\n");
}

int apply_fixes(const struct fix *fixes, size_t n, const char *path,
		unsigned allowed, struct log *log, struct applied *out)
{
	char text[TEXT_SIZE] = SETTINGS_HEAD ", by beton doctor\n";
	char keys[KEYS_SIZE] = "";
	int r = apply_check(path, log);

	if (r)
		return r;
	*out = (struct applied){ .path = path, .allowed = allowed };
	for (size_t i = 0; i < n; i++) {
		out->fates[i] = fate_of(&fixes[i], allowed, keys);
		if (out->fates[i] == APPLY_WRITTEN)
			add_setting(&fixes[i], text);
	}
	return outfile_save(path, text, strlen(text), log);
}
