/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/class_names.h"

#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/utf8.h"

static const uint8_t mark[8] = "betoncls";

struct class_names_place class_names_parse(const uint8_t *args)
{
	if (memcmp(args, mark, sizeof(mark)))
		return (struct class_names_place){ .size = 0 };
	return (struct class_names_place){ load64(args + 8), load64(args + 16),
					   load64(args + 24) };
}

void class_names_put(const struct class_names_place *place, uint8_t *args)
{
	memcpy(args, mark, sizeof(mark));
	store64(args + 8, place->off);
	store64(args + 16, place->size);
	store64(args + 24, place->num);
}

/* Returns the bytes of the character at a string, 0 if it cannot be printed. */
static size_t shown_size(const char *text)
{
	const uint8_t *s = (const uint8_t *)text;
	size_t n = utf8_length(s, strnlen(text, 4));

	return utf8_is_control(s, n) ? 0 : n;
}

static bool is_shown(const char *name)
{
	size_t n;

	if (!*name)
		return false;
	for (; *name; name += n) {
		n = shown_size(name);
		if (!n)
			return false;
	}
	return true;
}

/* --- names and text --- */

static bool split_text(struct class_names *c, uint64_t size)
{
	const char *at = c->text, *end = c->text + size;

	for (uint64_t i = 0; i < c->num; i++) {
		if (at == end || !is_shown(at))
			return false;
		c->names[i] = at;
		at += strlen(at) + 1;
	}
	return at == end;
}

bool class_names_split(char *text, const struct class_names_place *place,
		       struct class_names **out)
{
	struct class_names *c = calloc(1, sizeof(*c));

	if (!c) {
		free(text);
		return false;
	}
	c->text = text;
	c->num = place->num;
	/* A name and its NUL take two bytes at least. */
	if (place->num && place->num <= place->size / 2 &&
	    !text[place->size - 1])
		c->names = calloc(place->num, sizeof(*c->names));
	if (!c->names || !split_text(c, place->size)) {
		class_names_free(c);
		return false;
	}
	*out = c;
	return true;
}

static char *put_name(char *to, const char *name)
{
	size_t n;

	if (!*name)
		*to++ = '?';
	for (; *name; name += n ? n : 1) {
		n = shown_size(name);
		if (n)
			to = (char *)mempcpy(to, name, n);
		else
			*to++ = '?';
	}
	*to++ = '\0';
	return to;
}

char *class_names_join(const char *const *names, size_t num, uint64_t *size)
{
	size_t most = 0;
	char *text, *end;

	for (size_t i = 0; i < num; i++)
		most += max_u64(strlen(names[i]), 1) + 1;
	text = malloc(most + 1);
	end = text;
	for (size_t i = 0; text && i < num; i++)
		end = put_name(end, names[i]);
	*size = text ? (uint64_t)(end - text) : 0;
	return text;
}

struct class_names *class_names_copy(const char *const *names, size_t num)
{
	struct class_names_place place = { .num = num };
	struct class_names *out = NULL;
	char *text = class_names_join(names, num, &place.size);

	return text && class_names_split(text, &place, &out) ? out : NULL;
}

const char *class_name(const struct class_names *c, int64_t value)
{
	return c && value >= 0 && (uint64_t)value < c->num ? c->names[value]
							   : NULL;
}

void class_names_free(struct class_names *c)
{
	if (!c)
		return;
	free(c->names);
	free(c->text);
	free(c);
}
