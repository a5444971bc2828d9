/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/pipeline/list/vocabulary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/util/read_file.h"

/* Lengths in bytes of UTF-8. */
enum { CHARACTER_MAX = 4, WORD_BYTES = CHARACTER_MAX * VOCABULARY_WORD_MAX };

static const char CONTINUED[] = { '#', '#' };

struct vocabulary_slot {
	uint32_t at; /* in the text */
	uint32_t size;
	int32_t id; /* -1: the slot is free */
	bool is_continued;
};

struct vocabulary {
	char *text;
	size_t mask; /* slots, less one: a power of two, less one */
	size_t longest;
	struct vocabulary_slot slots[];
};

/* FNV-1a of 64 bits, byte by byte, so that one pass gives those of all
   beginnings of a word. */
static uint64_t hash_begin(bool is_continued)
{
	return is_continued ? 0x84222325cbf29ce4 : 0xcbf29ce484222325;
}

static uint64_t hash_next(uint64_t hash, char c)
{
	return (hash ^ (uint8_t)c) * 0x100000001b3;
}

static uint64_t hash_of(const char *token, size_t size, bool is_continued)
{
	uint64_t hash = hash_begin(is_continued);

	for (size_t i = 0; i < size; i++)
		hash = hash_next(hash, token[i]);
	return hash;
}

/* The slot of a token, or the free one where it would be. */
static struct vocabulary_slot *slot_of(const struct vocabulary *v,
				       uint64_t hash, const char *token,
				       size_t size, bool is_continued)
{
	for (size_t i = hash ^ hash >> 32;; i++) {
		const struct vocabulary_slot *s = &v->slots[i & v->mask];

		if (s->id < 0 ||
		    (s->size == size && s->is_continued == is_continued &&
		     !memcmp(v->text + s->at, token, size)))
			return (struct vocabulary_slot *)s;
	}
}

static void add(struct vocabulary *v, const char *token, size_t size,
		int32_t id)
{
	bool is_continued = size > sizeof(CONTINUED) &&
			    !memcmp(token, CONTINUED, sizeof(CONTINUED));
	struct vocabulary_slot *slot;

	if (is_continued) {
		token += sizeof(CONTINUED);
		size -= sizeof(CONTINUED);
	}
	slot = slot_of(v, hash_of(token, size, is_continued), token, size,
		       is_continued);
	*slot = (struct vocabulary_slot){ (uint32_t)(token - v->text),
					  (uint32_t)size, id, is_continued };
	v->longest = size > v->longest ? size : v->longest;
}

static size_t count_lines(const char *text, size_t size)
{
	size_t lines = size && text[size - 1] != '\n';

	for (size_t i = 0; i < size; i++)
		lines += text[i] == '\n';
	return lines;
}

static void add_lines(struct vocabulary *v, size_t size)
{
	const char *at = v->text, *end = at + size;

	for (int32_t id = 0; at < end; id++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((stop ? stop : end) - at);

		if (length && at[length - 1] == '\r')
			length--;
		add(v, at, length, id);
		at = stop ? stop + 1 : end;
	}
}

/* Takes the text over. */
static int make(char *text, size_t size, size_t lines, struct vocabulary **out)
{
	struct vocabulary *v;
	size_t slots = 2;

	while (slots < 2 * lines)
		slots *= 2;
	v = malloc(sizeof(*v) + slots * sizeof(*v->slots));
	if (!v)
		return -ENOMEM;
	*v = (struct vocabulary){ .text = text, .mask = slots - 1 };
	for (size_t i = 0; i < slots; i++)
		v->slots[i] = (struct vocabulary_slot){ .id = -1 };
	add_lines(v, size);
	*out = v;
	return 0;
}

int vocabulary_open(const char *path, struct vocabulary **out, char *why,
		    size_t size)
{
	cleanup_free char *text = NULL;
	size_t length, lines;
	int r = read_file(path, VOCABULARY_FILE_MAX, &text, &length);

	if (r) {
		snprintf(why, size, "%s: %s", path,
			 r == -EINVAL ? "not a regular file" : strerror(-r));
		return r == -ENOMEM ? r : -EINVAL;
	}
	if (memchr(text, '\0', length)) {
		snprintf(why, size, "%s: not a text", path);
		return -EINVAL;
	}
	lines = count_lines(text, length);
	if (lines > VOCABULARY_LINES_MAX) {
		snprintf(why, size, "%s: %zu lines, %d at most", path, lines,
			 VOCABULARY_LINES_MAX);
		return -EINVAL;
	}
	r = make(text, length, lines, out);
	if (!r)
		(void)steal(text);
	return r;
}

void vocabulary_close(struct vocabulary *v)
{
	if (v)
		free(v->text);
	free(v);
}

int32_t vocabulary_find(const struct vocabulary *v, const char *token,
			size_t size)
{
	return slot_of(v, hash_of(token, size, false), token, size, false)->id;
}

/* The longest token that a piece of a word begins with: its size, or 0. */
static size_t longest_of(const struct vocabulary *v, const char *piece,
			 size_t size, bool is_continued, int32_t *id)
{
	uint64_t hashes[WORD_BYTES + 1];

	size = min_u64(size, v->longest);
	hashes[0] = hash_begin(is_continued);
	for (size_t i = 0; i < size; i++)
		hashes[i + 1] = hash_next(hashes[i], piece[i]);
	for (; size; size--) {
		*id = slot_of(v, hashes[size], piece, size, is_continued)->id;
		if (*id >= 0)
			break;
	}
	return size;
}

size_t vocabulary_cut(const struct vocabulary *v, const char *word, size_t size,
		      int32_t *out)
{
	size_t count = 0, n;

	if (size > WORD_BYTES)
		return 0;
	for (size_t at = 0; at < size; at += n) {
		n = longest_of(v, word + at, size - at, at, &out[count++]);
		if (!n)
			return 0;
	}
	return count;
}
