/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/local/options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/base/util/suggest.h"
#include "fs/base/util/typed.h"

struct options_row {
	const char *key;
	enum source_option_kind kind;
	size_t offset;
	const char *value;
};

#define ROW(key, member, kind, value, help)                                    \
	{ #key, kind, offsetof(struct source_options, member), value },
static const struct options_row rows[] = { SOURCE_OPTIONS(ROW) };
#undef ROW

static const struct typed types[] = {
	[SOURCE_COUNT] = TYPED_NUMBER_IN(1, 256),
	[SOURCE_TIME] = { TYPED_TIME, .max = 7 * 24 * 3600 },
	[SOURCE_SIZE] = TYPED_SIZE_FROM(64 << 20),
};

/* Options of other libraries and programs. */
static const struct other_word other_keys[] = {
	{ "anon", "no_sign" },
	{ "anonymous", "no_sign" },
	{ "no_sign_request", "no_sign" },
	{ "endpoint_url", "endpoint" },
	{ "region_name", "region" },
	{ "cache", "disk" },
	{ "cache_dir", "disk" },
	{ "cache_storage", "disk" },
	{ "cache_size", "disk_size" },
	{ "headers", "header" },
	{ "max_concurrency", "connections" },
	{ "max_attempts", "retry" },
	{ "retries", "retry" },
	{ "timeout", "retry" },
	{ NULL, NULL },
};

/* Keys under which other libraries take secrets. */
static const char *const secrets[] = {
	"key",
	"secret",
	"token",
	"access_key",
	"secret_key",
	"aws_access_key_id",
	"session_token",
	"aws_session_token",
	"aws_secret_access_key",
	"password",
	"username",
};

static void *member_of(const struct source_options *options,
		       const struct options_row *row)
{
	return (char *)options + row->offset;
}

static bool is_text(const struct options_row *row)
{
	return row->kind == SOURCE_PATH || row->kind == SOURCE_SECRET ||
	       row->kind == SOURCE_TEXT || row->kind == SOURCE_URL;
}

static bool is_word(const char *word, const char *text, size_t size)
{
	return strlen(word) == size && !memcmp(word, text, size);
}

static const struct options_row *row_of(const char *key, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (is_word(rows[i].key, key, size))
			return &rows[i];
	}
	return NULL;
}

static int unknown_key(const char *key, size_t size, char *why)
{
	struct suggestion s = { key, size, NULL, 0 };
	char meant[SUGGEST_TEXT_SIZE] = "";

	for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
		if (!is_word(secrets[i], key, size))
			continue;
		snprintf(
			why, SOURCE_OPTION_WHY_SIZE,
			"no option contains a secret: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write a profile of ~/.aws/credentials");
		return -EINVAL;
	}
	for (size_t i = 0; size && i < ARRAY_LEN(rows); i++)
		suggest_try(&s, rows[i].key);
	if (size)
		suggest_other(&s, other_keys);
	snprintf(why, SOURCE_OPTION_WHY_SIZE, "unknown option%s",
		 suggest_text(&s, meant, sizeof(meant)));
	return -EINVAL;
}

/* "expected key=VALUE", or what the value may be. */
static int refuse(const struct options_row *row, bool has_value, char *why)
{
	char expected[TYPED_EXPECTED_SIZE];

	if (has_value && row->kind == SOURCE_URL)
		snprintf(
			why, SOURCE_OPTION_WHY_SIZE,
			"expected http://HOST or https://HOST, without user and query");
	else if (has_value && row->kind == SOURCE_SECRET)
		snprintf(
			why, SOURCE_OPTION_WHY_SIZE,
			"expected the path of a file: there is no file of this name, and no option contains a secret, so write the header or the token into a file");
	else if (has_value && row->value && !is_text(row))
		snprintf(why, SOURCE_OPTION_WHY_SIZE, "expected %s",
			 typed_expected(&types[row->kind], expected));
	else
		snprintf(why, SOURCE_OPTION_WHY_SIZE, "expected %s%s%s",
			 row->key, row->value ? "=" : " without a value",
			 row->value ? row->value : "");
	return -EINVAL;
}

/* Takes the text. Programs change their directory, so a path is absolute. */
static char *absolute(char *path)
{
	char dir[PATH_MAX], *out = NULL;

	if (!path || *path == '/' || !strncmp(path, "~/", 2))
		return path;
	if (!getcwd(dir, sizeof(dir)) || text_print(&out, "%s/%s", dir, path))
		out = NULL;
	free(path);
	return out;
}

/* A user or a query can be a secret, and options are printed. */
static bool is_server(const char *url)
{
	return (!strncmp(url, "https://", 8) || !strncmp(url, "http://", 7)) &&
	       !strpbrk(url, "@?#");
}

/* Returns whether a value is a path: users may give a token instead. */
static bool is_path(const char *value)
{
	static const char *const starts[] = { "/", "./", "../", "~/" };

	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		if (!strncmp(value, starts[i], strlen(starts[i])))
			return true;
	}
	return !access(value, F_OK);
}

static bool is_allowed(const struct options_row *row, const char *value)
{
	if (row->kind == SOURCE_URL)
		return is_server(value);
	return row->kind != SOURCE_SECRET || is_path(value);
}

static int set_text(struct source_options *options,
		    const struct options_row *row, const char *value,
		    size_t size)
{
	char **member = member_of(options, row);
	char *text = strndup(value, size);

	if (text && !is_allowed(row, text)) {
		free(text);
		return -EINVAL;
	}
	if (row->kind == SOURCE_PATH || row->kind == SOURCE_SECRET)
		text = absolute(text);
	if (!text)
		return -ENOMEM;
	free(*member);
	*member = text;
	return 0;
}

static int set_number(struct source_options *options,
		      const struct options_row *row, const char *value,
		      size_t size)
{
	uint64_t v;

	if (!typed_parse(&types[row->kind], value, size, &v))
		return -EINVAL;
	/* 0 is the default, so that no time is the least that there is. */
	if (row->kind == SOURCE_TIME)
		v = v ? v * 1000 : 1;
	*(uint64_t *)member_of(options, row) = v;
	return 0;
}

int source_option_set(struct source_options *options, const char *key,
		      size_t key_size, const char *value, size_t value_size,
		      char why[SOURCE_OPTION_WHY_SIZE])
{
	const struct options_row *row = row_of(key, key_size);
	int r = 0;

	if (!row)
		return unknown_key(key, key_size, why);
	if (!row->value && !value) {
		*(bool *)member_of(options, row) = true;
		return 0;
	}
	if (!row->value || !value || !value_size)
		return refuse(row, false, why);
	r = is_text(row) ? set_text(options, row, value, value_size)
			 : set_number(options, row, value, value_size);
	return r == -EINVAL ? refuse(row, true, why) : r;
}

/* Copies an option up to a comma without a backslash, and returns what follows
   it in the list. */
static const char *next_word(const char *list, char *out)
{
	while (*list && *list != ',') {
		if (list[0] == '\\' && list[1] == ',')
			list++;
		*out++ = *list++;
	}
	*out = '\0';
	return *list ? list + 1 : list;
}

/* Python writes a flag as no_sign=true. */
static int set_word(struct source_options *options, const char *word, char *why)
{
	size_t size = strcspn(word, "=");
	const char *value = word[size] ? word + size + 1 : NULL;
	const struct options_row *row = row_of(word, size);

	if (row && !row->value && value && !strcmp(value, "false")) {
		*(bool *)member_of(options, row) = false;
		return 0;
	}
	if (row && !row->value && value && !strcmp(value, "true"))
		value = NULL;
	return source_option_set(options, word, size, value,
				 value ? strlen(value) : 0, why);
}

size_t source_option_shown(const char *key, size_t key_size, size_t size)
{
	const struct options_row *row = row_of(key, key_size);

	if (!row || row->kind == SOURCE_URL || row->kind == SOURCE_SECRET)
		return key_size;
	return size;
}

void source_option_warn(const struct source_options *options, const char *key,
			size_t key_size, struct log *log)
{
	const struct options_row *row = row_of(key, key_size);
	const char *path;
	struct stat st;

	if (!row || row->kind != SOURCE_SECRET)
		return;
	path = *(char **)member_of(options, row);
	if (!path || stat(path, &st) || !S_ISREG(st.st_mode) ||
	    !(st.st_mode & S_IROTH))
		return;
	log_warning(
		log,
		"%s=%s: all users can read this file, and it may contain a secret: run chmod 600 on it",
		row->key, path);
}

static int set_words(struct source_options *options, const char *list,
		     const char *where, struct log *log)
{
	cleanup_free char *word = malloc(strlen(list) + 1);
	char why[SOURCE_OPTION_WHY_SIZE];
	int r = word ? 0 : -ENOMEM;
	size_t size;

	while (*list && !r) {
		list = next_word(list, word);
		if (!*word)
			continue;
		size = strcspn(word, "=");
		r = set_word(options, word, why);
		if (!r)
			source_option_warn(options, word, size, log);
		else
			word[source_option_shown(word, size, strlen(word))] =
				'\0';
	}
	if (r)
		log_error(log, "%s: %s: %s", where, word ? word : list,
			  r == -EINVAL ? why : strerror(-r));
	return r;
}

/* Options of the command line. */
static char *given;

int source_options_add(const char *list)
{
	char *longer;

	if (text_print(&longer, "%s%s%s", given ? given : "", given ? "," : "",
		       list))
		return -ENOMEM;
	free(given);
	given = longer;
	return 0;
}

const char *source_options_added(void)
{
	return given;
}

int source_options_read(const char *text, struct log *log,
			struct source_options *out)
{
	const char *common = secure_getenv("BETON_STORAGE_OPTIONS");
	int r;

	*out = (struct source_options){ 0 };
	r = common ? set_words(out, common, "BETON_STORAGE_OPTIONS", log) : 0;
	if (!r && given)
		r = set_words(out, given, "-o", log);
	if (!r && text)
		r = set_words(out, text, "storage options", log);
	return r;
}

void source_options_fini(struct source_options *options)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (is_text(&rows[i]))
			free(*(char **)member_of(options, &rows[i]));
	}
	*options = (struct source_options){ 0 };
}

const char *source_option_text(const struct source_options *options,
			       const char *key, char out[32])
{
	const struct options_row *row = row_of(key, strlen(key));
	void *member = row ? member_of(options, row) : NULL;
	uint64_t v;

	if (!row)
		return NULL;
	if (row->kind == SOURCE_FLAG)
		return *(bool *)member ? "" : NULL;
	if (is_text(row))
		return *(char **)member;
	v = *(uint64_t *)member;
	if (!v)
		return NULL;
	snprintf(out, 32, "%llu%s",
		 (unsigned long long)(row->kind == SOURCE_TIME ? v / 1000 : v),
		 row->kind == SOURCE_TIME ? "s" : "");
	return out;
}
