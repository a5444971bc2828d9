/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/formats/example.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "fs/util/bytes.h"

/* Wire types. */
enum { VARINT = 0, FIXED64 = 1, SIZED = 2, FIXED32 = 5 };

enum { VARINT_MAX = 10 };

/* The rest of a message. */
struct message {
	struct window *w;
	uint64_t at;
	uint64_t end;
};

/* A field of a message. */
struct entry {
	uint32_t number;
	uint32_t type;
	uint64_t off; /* of the value, or of the bytes of a SIZED one */
	uint64_t size;
	uint64_t varint;
};

static int take_varint(struct message *m, uint64_t *out)
{
	size_t have = (size_t)min_u64(m->end - m->at, VARINT_MAX);
	const uint8_t *p = window_at(m->w, m->at, have);
	uint64_t v = 0;

	if (!p)
		return m->w->error;
	for (size_t i = 0; i < have; i++) {
		v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
		if (p[i] & 0x80)
			continue;
		m->at += i + 1;
		*out = v;
		return 0;
	}
	return -EBADMSG;
}

/* Reads the next field and moves behind it. Returns 1, 0 at the end, or
   -errno. */
static int take_entry(struct message *m, struct entry *e)
{
	uint64_t tag;
	int r;

	if (m->at == m->end)
		return 0;
	r = take_varint(m, &tag);
	if (r)
		return r;
	*e = (struct entry){ .type = tag & 7, .off = m->at };
	e->number = (uint32_t)min_u64(tag >> 3, UINT32_MAX);
	if (e->type == VARINT)
		r = take_varint(m, &e->varint);
	else if (e->type == SIZED)
		r = take_varint(m, &e->size);
	else if (e->type == FIXED32 || e->type == FIXED64)
		e->size = e->type == FIXED32 ? 4 : 8;
	else
		return -EBADMSG;
	if (r || !range_ok(m->at, e->size, m->end))
		return r ? r : -EBADMSG;
	if (e->type != VARINT)
		e->off = m->at;
	m->at += e->size;
	return 1;
}

static struct message inside(const struct message *m, const struct entry *e)
{
	return (struct message){ m->w, e->off, e->off + e->size };
}

/* --- lists --------------------------------------------------------------- */

static int send_real(struct window *w, uint64_t off,
		     const struct example_sink *sink)
{
	const uint8_t *p = window_at(w, off, 4);
	float f;

	if (!p)
		return w->error;
	memcpy(&f, p, sizeof(f));
	return sink->real(sink->arg, f);
}

/* Numbers are packed, or each is a field. */
static int take_reals(struct message *m, const struct entry *e,
		      const struct example_sink *sink)
{
	int r = 0;

	if ((e->type != SIZED && e->type != FIXED32) || e->size % 4)
		return -EBADMSG;
	for (uint64_t i = 0; i < e->size && !r; i += 4)
		r = send_real(m->w, e->off + i, sink);
	return r;
}

static int take_integers(const struct message *m, const struct entry *e,
			 const struct example_sink *sink)
{
	struct message list = inside(m, e);
	uint64_t v;
	int r = 0;

	if (e->type == VARINT)
		return sink->integer(sink->arg, (int64_t)e->varint);
	if (e->type != SIZED)
		return -EBADMSG;
	while (list.at < list.end && !r) {
		r = take_varint(&list, &v);
		r = r ? r : sink->integer(sink->arg, (int64_t)v);
	}
	return r;
}

/* A BytesList, FloatList or Int64List. */
static int take_list(struct message m, uint32_t list,
		     const struct example_sink *sink)
{
	struct entry e;
	int r;

	while ((r = take_entry(&m, &e)) > 0) {
		if (e.number != 1)
			continue;
		if (list == EXAMPLE_BYTES)
			r = e.type == SIZED
				    ? sink->bytes(sink->arg, e.off, e.size)
				    : -EBADMSG;
		else if (list == EXAMPLE_FLOATS)
			r = take_reals(&m, &e, sink);
		else
			r = take_integers(&m, &e, sink);
		if (r)
			return r;
	}
	return r;
}

/* --- features ------------------------------------------------------------ */

static int take_feature(struct message m, const struct example_sink *sink)
{
	struct entry e;
	int r;

	while ((r = take_entry(&m, &e)) > 0) {
		if (e.number < EXAMPLE_BYTES || e.number > EXAMPLE_INTS)
			continue;
		r = e.type == SIZED ? take_list(inside(&m, &e), e.number, sink)
				    : -EBADMSG;
		if (r)
			return r;
	}
	return r;
}

/* A key and its feature, in either order. */
static int take_pair(struct message m, const struct example_sink *sink)
{
	struct entry e, key = { 0 }, feature = { 0 };
	char name[EXAMPLE_KEY_SIZE];
	const uint8_t *p;
	int r;

	while ((r = take_entry(&m, &e)) > 0) {
		if (e.number <= 2 && e.number && e.type != SIZED)
			return -EBADMSG;
		if (e.number == 1)
			key = e;
		else if (e.number == 2)
			feature = e;
	}
	if (r)
		return r;
	if (!key.size || key.size >= EXAMPLE_KEY_SIZE)
		return -EBADMSG;
	p = window_at(m.w, key.off, key.size);
	if (!p)
		return m.w->error;
	memcpy(name, p, key.size);
	name[key.size] = '\0';
	r = sink->feature(sink->arg, name);
	/* An absent feature is one without values. */
	return r || !feature.number ? r
				    : take_feature(inside(&m, &feature), sink);
}

static int take_features(struct message m, const struct example_sink *sink)
{
	struct entry e;
	int r;

	while ((r = take_entry(&m, &e)) > 0) {
		if (e.number != 1)
			continue;
		r = e.type == SIZED ? take_pair(inside(&m, &e), sink)
				    : -EBADMSG;
		if (r)
			return r;
	}
	return r;
}

int example_parse(struct window *w, uint64_t off, uint64_t size,
		  const struct example_sink *sink)
{
	struct message m = { w, off, off + size };
	struct entry e;
	int r;

	if (!range_ok(off, size, window_end(w)))
		return -EBADMSG;
	while ((r = take_entry(&m, &e)) > 0) {
		if (e.number == 2)
			return -ENOTSUP;
		if (e.number != 1)
			continue;
		r = e.type == SIZED ? take_features(inside(&m, &e), sink)
				    : -EBADMSG;
		if (r)
			return r;
	}
	return r;
}
