/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/keys/header_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fs/base/util/name.h"
#include "fs/source/net/secret.h"

/* Headers that requests have themselves. */
static bool is_reserved(const char *name, size_t size)
{
	static const char *const names[] = {
		"Host",
		"Range",
		"If-Match",
		"Content-Length",
		"Transfer-Encoding",
		"Connection",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strlen(names[i]) == size &&
		    !strncasecmp(name, names[i], size))
			return true;
	}
	return false;
}

static bool is_value(const char *text)
{
	for (; *text; text++) {
		if (((unsigned char)*text < ' ' && *text != '\t') ||
		    *text == 0x7f)
			return false;
	}
	return true;
}

static char *trim(char *text)
{
	size_t size;

	text += strspn(text, " \t\r");
	size = strlen(text);
	while (size && strchr(" \t\r", text[size - 1]))
		text[--size] = '\0';
	return text;
}

/* Returns what is wrong with a line, or NULL. */
static const char *check_line(const char *line)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789-_!#$%&'*+.^`|~";
	size_t name = strspn(line, letters);

	if (!name || line[name] != ':')
		return "expected NAME: VALUE";
	if (is_reserved(line, name))
		return "requests have this header themselves";
	return is_value(line) ? NULL : "the value has a control character";
}

static int add_line(struct search *search, const char *path, char *line,
		    unsigned number, struct header_file *out)
{
	const char *why = check_line(line);

	out->size += strlen(line);
	if (!why && out->num == HEADER_FILE_LINES)
		why = "more than 10 headers";
	if (!why && out->size > HEADER_FILE_BYTES)
		why = "the headers are longer than 32 KiB";
	if (why)
		return search_fails(search, -EACCES, "header=%.300s:%u: %s",
				    path, number, why);
	if (!strncasecmp(line, "Authorization:", 14))
		out->has_authorization = true;
	out->at[out->num] = strdup(line);
	return out->at[out->num++] ? 0 : -ENOMEM;
}

static int add_token(struct search *search, const char *path, const char *token,
		     struct header_file *out)
{
	if (strlen(token) > HEADER_FILE_BYTES)
		return search_fails(search, -EACCES,
				    "header=%.300s: the token is longer than "
				    "32 KiB",
				    path);
	if (text_print(&out->at[0], "Authorization: Bearer %s", token))
		return -ENOMEM;
	out->num = 1;
	out->has_authorization = true;
	return 0;
}

/* Whether the text is one word without a colon. */
static bool is_token(const char *text)
{
	for (; *text; text++) {
		if (*text <= ' ' || *text > '~' || *text == ':')
			return false;
	}
	return true;
}

/* A program may be about to write the file again. */
static int is_empty(struct search *search, const char *path)
{
	return search_fails(search, search->had_session ? -EAGAIN : -EACCES,
			    "header=%.300s: the file is empty: write lines "
			    "NAME: VALUE, or a bearer token, into it",
			    path);
}

int header_file_parse(struct search *search, const char *path, char *text,
		      struct header_file *out)
{
	char *line, *end = text + strlen(text);
	unsigned number = 0;
	int r = 0;

	*out = (struct header_file){ 0 };
	while (end > text && strchr(" \t\r\n", end[-1]))
		*--end = '\0';
	text += strspn(text, " \t\r\n");
	if (!*text)
		return is_empty(search, path);
	if (is_token(text))
		return add_token(search, path, text, out);
	while (text && !r) {
		line = trim(strsep(&text, "\n"));
		number++;
		if (*line && *line != '#')
			r = add_line(search, path, line, number, out);
	}
	return r || out->num ? r : is_empty(search, path);
}

int header_file_read(struct search *search, const char *path,
		     struct header_file *out)
{
	char *text = NULL;
	size_t size = 0;
	int r = outside_read(search->outside, path, &text, &size);

	*out = (struct header_file){ 0 };
	if (r == -ENOMEM)
		return r;
	if (r)
		return search_fails(search, -EACCES,
				    "header=%.300s: %s: expected a file with "
				    "lines NAME: VALUE, or a bearer token",
				    path, outside_why(r));
	r = header_file_parse(search, path, text, out);
	secret_free_bytes(text, size);
	return r;
}

void header_file_fini(struct header_file *file)
{
	for (size_t i = 0; i < file->num; i++)
		secret_free(&file->at[i]);
	*file = (struct header_file){ 0 };
}
