/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/jit/code.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_AT_FIRST = 4096 };

/* Ensures room for `size` more bytes and a NUL. */
static bool reserve(struct code *c, size_t size)
{
	size_t room = c->room ? c->room : ROOM_AT_FIRST;
	char *text;

	while (room - c->size <= size)
		room *= 2;
	if (c->failed || room == c->room)
		return !c->failed;
	text = realloc(c->text, room);
	if (!text) {
		c->failed = true;
		return false;
	}
	c->text = text;
	c->room = room;
	return true;
}

void code_put(struct code *c, const char *text)
{
	size_t size = strlen(text);

	if (!reserve(c, size))
		return;
	memcpy(c->text + c->size, text, size + 1);
	c->size += size;
}

void code_add(struct code *c, const char *format, ...)
{
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (size < 0 || !reserve(c, (size_t)size))
		return;
	va_start(args, format);
	vsnprintf(c->text + c->size, (size_t)size + 1, format, args);
	va_end(args);
	c->size += (size_t)size;
}

char *code_take(struct code *c)
{
	char *text = c->text;

	if (c->failed) {
		free(text);
		text = NULL;
	}
	*c = (struct code){ 0 };
	return text;
}
