/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/keys/ini.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/source/net/secret.h"

/* Bytes of the text that is parsed. */
struct ini_span {
	const char *at;
	size_t size;
};

/* The place in the file where the next line belongs. */
struct ini_place {
	struct ini_span section;
	bool has_section;
	struct ini_span
		block; /* the key that indented lines belong to; size 0 */
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct ini_span trim(const char *at, size_t size)
{
	while (size && is_space(*at)) {
		at++;
		size--;
	}
	while (size && is_space(at[size - 1]))
		size--;
	return (struct ini_span){ at, size };
}

/* Cuts off a comment that follows a space, or that begins the line. */
static size_t without_comment(const char *at, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if ((at[i] == '#' || at[i] == ';') &&
		    (!i || is_space(at[i - 1])))
			return i;
	}
	return size;
}

static void lower(char *text)
{
	for (; *text; text++) {
		if (*text >= 'A' && *text <= 'Z')
			*text = (char)(*text + 'a' - 'A');
	}
}

static void free_key(struct ini_key *key)
{
	free(key->section);
	free(key->name);
	secret_free(&key->value);
}

/* Makes room for a key. Values are not copied by realloc(), only pointers. */
static struct ini_key *new_key(struct ini *ini)
{
	struct ini_key *more;

	if (!(ini->num & (ini->num - 1))) {
		more = realloc(ini->at,
			       (ini->num ? 2 * ini->num : 1) * sizeof(*more));
		if (!more)
			return NULL;
		ini->at = more;
	}
	ini->at[ini->num] = (struct ini_key){ 0 };
	return &ini->at[ini->num++];
}

static int add_key(struct ini *ini, const struct ini_place *place,
		   struct ini_span name, struct ini_span value)
{
	const struct ini_span *block = &place->block;
	struct ini_key *key;

	if (ini->num == INI_KEYS_MAX)
		return -EFBIG;
	key = new_key(ini);
	if (!key)
		return -ENOMEM;
	key->section = strndup(place->section.at, place->section.size);
	key->value = strndup(value.at, value.size);
	text_print(&key->name, "%.*s%s%.*s", (int)block->size,
		   block->size ? block->at : "", block->size ? "." : "",
		   (int)name.size, name.at);
	if (!key->section || !key->value || !key->name)
		return -ENOMEM;
	lower(key->name);
	return 0;
}

static void take_section(struct ini_place *place, struct ini_span line)
{
	const char *end = memchr(line.at, ']', line.size);

	place->has_section = end;
	place->block = (struct ini_span){ 0 };
	if (end)
		place->section = trim(line.at + 1, (size_t)(end - line.at - 1));
}

static int take_key(struct ini *ini, struct ini_place *place,
		    struct ini_span line, bool is_indented)
{
	const char *equals = memchr(line.at, '=', line.size);
	struct ini_span name, value;

	if (!equals || !place->has_section)
		return 0;
	name = trim(line.at, (size_t)(equals - line.at));
	value = trim(equals + 1, line.size - (size_t)(equals + 1 - line.at));
	if (!name.size || (is_indented && !place->block.size))
		return 0;
	if (!is_indented)
		place->block = (struct ini_span){ 0 };
	if (!is_indented && !value.size)
		place->block = name;
	else
		return add_key(ini, place, name, value);
	return 0;
}

static int take_line(struct ini *ini, struct ini_place *place, const char *at,
		     size_t size)
{
	bool is_indented = size && is_space(*at);
	struct ini_span line = trim(at, without_comment(at, size));

	if (!line.size)
		return 0;
	if (*line.at == '[' && !is_indented) {
		take_section(place, line);
		return 0;
	}
	return take_key(ini, place, line, is_indented);
}

int ini_parse(const char *text, size_t size, struct ini *out)
{
	const char *end = text + size, *stop;
	struct ini_place place = { 0 };
	int r = 0;

	*out = (struct ini){ 0 };
	if (size > INI_SIZE_MAX)
		return -EFBIG;
	if (size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		text += 3;
	for (; text < end && !r; text = stop + 1) {
		stop = memchr(text, '\n', (size_t)(end - text));
		if (!stop)
			stop = end;
		r = take_line(out, &place, text, (size_t)(stop - text));
	}
	return r;
}

void ini_fini(struct ini *ini)
{
	for (size_t i = 0; i < ini->num; i++)
		free_key(&ini->at[i]);
	free(ini->at);
	*ini = (struct ini){ 0 };
}

const char *ini_get(const struct ini *ini, const char *section,
		    const char *name)
{
	for (size_t i = ini->num; i--;) {
		if (!strcmp(ini->at[i].name, name) &&
		    !strcmp(ini->at[i].section, section))
			return ini->at[i].value;
	}
	return NULL;
}
