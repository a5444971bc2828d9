/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/attempt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/source/net/secret.h"

/* A longer body of an error is not worth its connection. */
enum { NOTE_READ_MAX = 64 << 10 };
enum { CONNECT_MS = 5000 };
/* Fewer bytes end no outage, and no time of failures. */
enum { RECOVERED_MIN = 4 << 10 };

static void add(atomic_uint_fast64_t *count, uint64_t n)
{
	atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

/* --- callbacks of a transfer --- */

bool attempt_has_bytes(const struct attempt *a)
{
	int status = a->transfer.answer.status;

	return status == 200 || status == 206;
}

static void note_first_byte(struct attempt *a)
{
	struct object_peer *p = a->peer;
	const struct net_transfer *t = &a->transfer;
	int64_t ns = t->first_ns - (t->sent_ns ? t->sent_ns : t->begin_ns);

	depth_first_byte(&p->depth, ns);
	tail_first_byte(&p->tail, ns);
}

static void take_move(struct net_transfer *t, const char *url,
		      bool is_same_origin)
{
	struct attempt *a = t->arg;

	/* The first URL of a detour is another one. */
	if (a->detour || a->is_probe)
		return;
	secret_free(&a->moved_to);
	a->moved_to = strdup(url);
	a->moved_within = is_same_origin;
}

static int take_head(struct net_transfer *t)
{
	struct attempt *a = t->arg;
	struct fetch *f = a->fetch;
	struct object_peer *p = a->peer;

	if (!f)
		return -ECANCELED;
	if (!attempt_has_bytes(a))
		return 0;
	note_first_byte(a);
	a->is_first = !p->pin.is_set;
	a->verdict = pin_check(&p->pin, &t->answer, a->at,
			       f->off + f->size - a->at, &a->end, a->why);
	if (a->verdict != PIN_OK)
		return -EPROTO;
	if (a->moved_to)
		detour_found(&p->detour, a->moved_to, a->moved_within);
	/* Only the first request does not know the size. */
	f->size = min_u64(f->size, p->pin.size - f->off);
	return 0;
}

/* Fields of errors. */
static void take_line(struct net_transfer *t, const char *line, size_t size)
{
	struct attempt *a = t->arg;

	if (t->answer.status >= 300)
		refusal_line(&a->refusal, line, size);
}

static int take_note(struct attempt *a, const void *data, size_t size)
{
	size_t n = min_u64(size, ATTEMPT_NOTE_MAX - a->note_size);

	memcpy(a->note + a->note_size, data, n);
	a->note_size += n;
	a->note_read += size;
	return a->note_read > NOTE_READ_MAX ? -EMSGSIZE : 0;
}

static void note_recovery(struct attempt *a, int64_t now)
{
	struct fetch *f = a->fetch;

	if (f->got < f->size && f->got - f->failed_got < RECOVERED_MIN)
		return;
	f->failures = 0;
	outage_ends(&a->peer->outage, now);
}

/* Ends an answer with more bytes than its Content-Range, which a server sends
   that has no ranges. Later it is no failure if the bytes before are all that
   the fetch needs. */
static int refuse_excess(struct attempt *a)
{
	a->verdict = a->is_first ? PIN_REFUSED : PIN_WRONG;
	if (a->is_first)
		a->fetch->got = 0;
	snprintf(a->why, sizeof(a->why),
		 "the answer has more bytes than its Content-Range");
	return -EPROTO;
}

static int take_bytes(struct net_transfer *t, const void *data, size_t size)
{
	struct attempt *a = t->arg;
	struct fetch *f = a->fetch;
	uint64_t skip, excess;

	if (!f)
		return -ECANCELED;
	if (!attempt_has_bytes(a))
		return take_note(a, data, size);
	excess = size - min_u64(size, a->end - a->at);
	size -= excess;
	/* Another attempt may be further. */
	skip = min_u64(f->off + f->got - a->at, size);
	scatter_append(&f->memory, (const char *)data + skip, size - skip);
	f->got += size - skip;
	a->at += size;
	if (size > skip)
		note_recovery(a, t->last_ns);
	depth_bytes(&a->peer->depth, t->last_ns, size);
	return excess ? refuse_excess(a) : 0;
}

static void free_secrets(struct attempt_target *to)
{
	while (to->num_secrets)
		secret_free(&to->secrets[--to->num_secrets]);
}

void attempt_free(struct attempt *a)
{
	free_secrets(&a->target);
	secret_free(&a->target.url);
	secret_free(&a->moved_to);
	free(a);
}

static void count_attempt(const struct attempt *a)
{
	struct object_peer *p = a->peer;

	add(&p->counts.connections, a->transfer.new_connections);
	add(&p->counts.wire_bytes, a->transfer.wire_bytes);
	if (a->is_hedge)
		add(&p->counts.hedge_bytes, a->transfer.wire_bytes);
}

static void end(struct net_transfer *t, int result)
{
	struct attempt *a = t->arg;

	a->peer->num_attempts--;
	count_attempt(a);
	a->ended(a, result);
}

/* --- beginning --- */

/* Takes secrets from the target if another host would see them. */
static void take_detour(struct attempt *a)
{
	const struct detour *d = &a->peer->detour;
	struct attempt_target *to = &a->target;
	char *url;

	if (!d->url || a->is_probe || to->stays || a->fetch->avoids_detour)
		return;
	url = strdup(d->url);
	if (!url)
		return;
	secret_free(&to->url);
	to->url = url;
	a->detour = d->serial;
	if (d->is_same_origin)
		return;
	free_secrets(to);
	to->userinfo = NULL;
	to->netrc = false;
}

static void set_transfer(struct attempt *a)
{
	const struct object_peer *p = a->peer;
	struct net_transfer *t = &a->transfer;

	t->url = a->target.url;
	t->userinfo = a->target.userinfo;
	t->netrc = a->target.netrc;
	t->secrets.at = (const char *const *)a->target.secrets;
	t->secrets.num = a->target.num_secrets;
	t->fresh = a->is_hedge || (a->fetch && a->fetch->wants_fresh);
	t->connect_ms = CONNECT_MS;
	t->first_byte_ms = t->stall_ms =
		tail_patience_ms(&p->tail, a->fetch ? a->fetch->timeouts : 0);
	t->no_redirects = a->target.stays;
	t->line = take_line;
	t->head = take_head;
	t->moved = take_move;
	t->sink = take_bytes;
	t->done = end;
	t->arg = a;
}

static void set_headers(struct attempt *a)
{
	const struct fetch *f = a->fetch;
	struct net_lines *lines = &a->transfer.headers;

	a->at = f ? f->off + f->got : 0;
	snprintf(a->range, sizeof(a->range), "Range: bytes=%llu-%llu",
		 (unsigned long long)a->at,
		 (unsigned long long)(f ? f->off + f->size - 1 : 0));
	a->headers[lines->num++] = a->range;
	if (a->peer->pin.is_set && !a->is_probe &&
	    pin_condition(&a->peer->pin, a->condition))
		a->headers[lines->num++] = a->condition;
	lines->at = a->headers;
}

struct attempt *attempt_new(struct object_peer *peer, struct fetch *fetch)
{
	struct attempt *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->peer = peer;
	a->fetch = fetch;
	a->is_probe = !fetch;
	set_headers(a);
	return a;
}

void attempt_send(struct attempt *a)
{
	take_detour(a);
	set_transfer(a);
	a->peer->num_attempts++;
	add(&a->peer->counts.requests, 1);
	net_start(a->peer->net, &a->transfer);
}
