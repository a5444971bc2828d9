/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/engine/settings.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "fs/util/size.h"

enum { FILE_MAX = 65536, THREADS_MAX = 4096 };

enum kind { WORD, NUMBER, SIZE };

static const struct row {
	const char *key;
	enum kind kind;
	uint64_t min, max;
	const char *words; /* of which a WORD is one, with '|' between */
} rows[SETTINGS] = {
	[SETTING_WORKERS] = { "workers", NUMBER, 1, THREADS_MAX, NULL },
	[SETTING_PREFETCH] = { "prefetch", NUMBER, 1, THREADS_MAX, NULL },
	[SETTING_DELIVERY] = { "delivery", WORD, 0, 0, "auto|handover|direct" },
	[SETTING_CACHE] = { "cache", WORD, 0, 0, "auto|os|process" },
	[SETTING_CACHE_SIZE] = { "cache_size", SIZE, 16 << 20, UINT64_MAX - 1,
				 NULL },
	[SETTING_COLD_SIZE] = { "cold_size", SIZE, 1, UINT64_MAX - 1, NULL },
	[SETTING_ORDER] = { "order", WORD, 0, 0,
			    "sequential|random|quasi_random" },
	[SETTING_BLOCK] = { "block", NUMBER, 1, UINT32_MAX, NULL },
	[SETTING_WINDOW] = { "window", SIZE, 1, UINT64_MAX - 1, NULL },
	[SETTING_DECODE] = { "decode", WORD, 0, 0, "draft" },
	[SETTING_CACHE_DECODED] = { "cache_decoded", SIZE, 1, UINT64_MAX - 1,
				    NULL },
};

const char *settings_key(enum setting setting)
{
	return rows[setting].key;
}

void settings_say(const struct settings *s, enum setting setting, char *out,
		  size_t size)
{
	size_t n = strlen(out);

	snprintf(out + n, size - n, "%s%s=%s", n ? ", " : "", rows[setting].key,
		 s->of[setting].text);
}

static bool is_one_of(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (; *words; words += strspn(words, "|")) {
		if (n == strcspn(words, "|") && !memcmp(words, word, n))
			return true;
		words += strcspn(words, "|");
	}
	return false;
}

static bool is_digits(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

static bool is_value(const struct row *row, const char *text, uint64_t *number)
{
	*number = 0;
	if (row->kind == WORD)
		return is_one_of(row->words, text);
	if (row->kind == NUMBER && !is_digits(text))
		return false;
	return size_parse(text, number) && *number >= row->min &&
	       *number <= row->max;
}

static const char *expected(const struct row *row)
{
	return row->kind == WORD ? row->words
	       : row->kind == SIZE
		       ? "a size, as 512MiB"
		       : "a number that is not 0, and not too large";
}

/* Where a line is, for messages. */
struct place {
	const char *path;
	unsigned line;
	struct log *log;
};

/* A message shows what can be shown of a hostile text. */
static void shown(const char *text, char out[SETTING_SIZE])
{
	snprintf(out, SETTING_SIZE, "%.*s", SETTING_SIZE - 1, text);
	for (char *c = out; *c; c++) {
		if (!isprint((unsigned char)*c))
			*c = '?';
	}
}

static int refuse_key(const struct place *at, const char *key)
{
	char names[256] = "", text[SETTING_SIZE];

	for (size_t i = 0; i < SETTINGS; i++) {
		size_t n = strlen(names);

		snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "",
			 rows[i].key);
	}
	shown(key, text);
	log_error(at->log, "%s:%u: unknown key '%s'; there are %s", at->path,
		  at->line, text, names);
	return -EINVAL;
}

static int set(const struct place *at, const char *key, const char *value,
	       struct settings *s)
{
	char text[SETTING_SIZE];
	uint64_t number;
	size_t i = 0;

	while (i < SETTINGS && strcmp(rows[i].key, key) != 0)
		i++;
	if (i == SETTINGS)
		return refuse_key(at, key);
	if (s->of[i].is_set) {
		log_error(at->log, "%s:%u: %s is there already", at->path,
			  at->line, rows[i].key);
		return -EINVAL;
	}
	if (strlen(value) >= SETTING_SIZE ||
	    !is_value(&rows[i], value, &number)) {
		shown(value, text);
		log_error(at->log, "%s:%u: %s=%s: expected %s", at->path,
			  at->line, rows[i].key, text, expected(&rows[i]));
		return -EINVAL;
	}
	s->of[i].is_set = true;
	s->of[i].number = number;
	snprintf(s->of[i].text, SETTING_SIZE, "%s", value);
	return 0;
}

/* Without spaces at its ends; changes the text. */
static char *trim(char *text)
{
	char *end;

	text += strspn(text, " \t\r");
	end = text + strlen(text);
	while (end > text && strchr(" \t\r", end[-1]))
		*--end = '\0';
	return text;
}

static int parse_line(const struct place *at, char *line, struct settings *s)
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
	return set(at, trim(text), trim(equals + 1), s);
}

static int parse(const char *path, char *text, struct log *log,
		 struct settings *s)
{
	struct place at = { .path = path, .log = log };
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
		log_error(log, "%s: not a file of settings", path);
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
		log_error(log, "%s: block and window are of an order", path);
		r = -EINVAL;
	}
	if (!r)
		*out = s;
	return r;
}
