/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/settings/settings.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/order/order.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/typed.h"

enum { FILE_MAX = 65536, THREADS_MAX = 4096 };

/* The order at an index among those that need no weights. */
static const char *unweighted_order_at(size_t i)
{
	const struct order_row *row;

	for (size_t k = 0; (row = order_row_at(k)); k++) {
		if (!row->draws && i-- == 0)
			return row->name;
	}
	return NULL;
}

static const struct row {
	const char *key;
	struct typed type;
} rows[SETTINGS] = {
	[SETTING_WORKERS] = { "workers", TYPED_NUMBER_IN(1, THREADS_MAX) },
	[SETTING_PREFETCH] = { "prefetch", TYPED_NUMBER_IN(1, THREADS_MAX) },
	[SETTING_DELIVERY] = { "delivery",
			       TYPED_WORD_OF("auto|zero-copy|direct") },
	[SETTING_CACHE] = { "cache", TYPED_WORD_OF("auto|os|process") },
	[SETTING_CACHE_SIZE] = { "cache_size", TYPED_SIZE_FROM(16 << 20) },
	[SETTING_COLD_SIZE] = { "cold_size", TYPED_SIZE_FROM(1) },
	[SETTING_ORDER] = { "order",
			    { TYPED_WORD, .word_at = unweighted_order_at } },
	[SETTING_BLOCK] = { "block", TYPED_NUMBER_IN(1, UINT32_MAX) },
	[SETTING_WINDOW] = { "window", TYPED_SIZE_FROM(1) },
	[SETTING_DECODE] = { "decode", TYPED_WORD_OF("draft") },
	[SETTING_CACHE_DECODED] = { "cache_decoded", TYPED_SIZE_FROM(1) },
};

static const char *key_at(size_t i)
{
	return i < SETTINGS ? rows[i].key : NULL;
}

static const struct typed keys = { TYPED_WORD, .word_at = key_at };

const char *settings_key(enum setting setting)
{
	return rows[setting].key;
}

void settings_print(const struct settings *s, enum setting setting, char *out,
		    size_t size)
{
	size_t n = strlen(out);

	snprintf(out + n, size - n, "%s%s=%s", n ? ", " : "", rows[setting].key,
		 s->of[setting].text);
}

/* The file and the number of a line, for messages. */
struct settings_place {
	const char *path;
	unsigned line;
	struct log *log;
};

/* A message shows the printable part of a hostile text. */
static void shown(const char *text, char out[SETTING_SIZE])
{
	snprintf(out, SETTING_SIZE, "%.*s", SETTING_SIZE - 1, text);
	for (char *c = out; *c; c++) {
		if (!isprint((unsigned char)*c))
			*c = '?';
	}
}

static int refuse_key(const struct settings_place *at, const char *key)
{
	char expected[TYPED_EXPECTED_SIZE], text[SETTING_SIZE];

	shown(key, text);
	log_error(at->log, "%s:%u: unknown key '%s': expected %s", at->path,
		  at->line, text, typed_expected(&keys, expected));
	return -EINVAL;
}

static int refuse_value(const struct settings_place *at, const struct row *row,
			const char *value)
{
	char expected[TYPED_EXPECTED_SIZE], text[SETTING_SIZE];

	shown(value, text);
	log_error(at->log, "%s:%u: %s=%s: expected %s", at->path, at->line,
		  row->key, text, typed_expected(&row->type, expected));
	return -EINVAL;
}

static int set_key(const struct settings_place *at, const char *key,
		   const char *value, struct settings *s)
{
	uint64_t i, number;

	if (!typed_parse_string(&keys, key, &i))
		return refuse_key(at, key);
	if (s->of[i].is_set) {
		log_error(at->log, "%s:%u: %s is given twice", at->path,
			  at->line, rows[i].key);
		return -EINVAL;
	}
	if (strlen(value) >= SETTING_SIZE ||
	    !typed_parse_string(&rows[i].type, value, &number))
		return refuse_value(at, &rows[i], value);
	s->of[i].is_set = true;
	s->of[i].number = number;
	snprintf(s->of[i].text, SETTING_SIZE, "%s", value);
	return 0;
}

/* Returns the text without spaces at its ends; changes the text. */
static char *trim(char *text)
{
	char *end;

	text += strspn(text, " \t\r");
	end = text + strlen(text);
	while (end > text && strchr(" \t\r", end[-1]))
		*--end = '\0';
	return text;
}

static int parse_line(const struct settings_place *at, char *line,
		      struct settings *s)
{
	char *text = trim(line);
	char *equals = strchr(text, '=');
	char beginning[SETTING_SIZE];

	if (!*text || *text == '#')
		return 0;
	if (!equals) {
		shown(text, beginning);
		log_error(at->log, "%s:%u: expected key=value, not '%s'",
			  at->path, at->line, beginning);
		return -EINVAL;
	}
	*equals = '\0';
	return set_key(at, trim(text), trim(equals + 1), s);
}

static int parse(const char *path, char *text, struct log *log,
		 struct settings *s)
{
	struct settings_place at = { .path = path, .log = log };
	char *next = text;
	int r = 0;

	while (next && !r) {
		char *line = strsep(&next, "\n");

		at.line++;
		r = parse_line(&at, line, s);
	}
	return r;
}

/* The caller's `text` of FILE_MAX + 1, which is ended. */
static int read_text(const char *path, struct log *log, char *text)
{
	cleanup_fd int fd =
		open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t size = 0;
	struct stat st;
	ssize_t n = 0;

	if (fd >= 0 && !fstat(fd, &st) && !S_ISREG(st.st_mode)) {
		log_error(log, "%s: not a regular file", path);
		return -EINVAL;
	}
	while (fd >= 0 && size <= FILE_MAX &&
	       (n = read(fd, text + size, FILE_MAX + 1 - size)) > 0)
		size += (size_t)n;
	if (fd < 0 || n < 0) {
		int error = errno;

		log_error(log, "%s: %s", path, strerror(error));
		return -error;
	}
	if (size > FILE_MAX || memchr(text, '\0', size)) {
		log_error(log, "%s: not a settings file", path);
		return -EINVAL;
	}
	text[size] = '\0';
	return 0;
}

int settings_read(const char *path, struct log *log, struct settings *out)
{
	cleanup_free char *text = malloc(FILE_MAX + 1);
	struct settings s = { 0 };
	int r = text ? read_text(path, log, text) : -ENOMEM;

	r = r ? r : parse(path, text, log, &s);
	if (!r && !s.of[SETTING_ORDER].is_set &&
	    (s.of[SETTING_BLOCK].is_set || s.of[SETTING_WINDOW].is_set)) {
		log_error(
			log,
			"%s: block and window need the line order=quasi_random",
			path);
		r = -EINVAL;
	}
	if (!r)
		*out = s;
	return r;
}
