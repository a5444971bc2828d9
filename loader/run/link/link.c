/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/link/link.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/run/link/sent_batch.h"
#include "loader/run/ring/makers.h"

enum {
	/* A maker that refused so many batches in a row, although it is there,
	   is of no use. */
	REFUSALS_MAX = 2,
};

/* Most bytes that an answer's table of a sample and an output can have: a
   value and an error, aligned. */
enum { TABLE_MAX = 64, HEAD_MAX = 1 << 20 };

static struct turn *oldest(const struct link *link)
{
	return link->turns[0];
}

/* Takes turns until the maker has a full window. Waits for the first one.
   Returns the number of new turns, or 0 if the ring stops. */
static unsigned take_turns(struct ring *ring, struct link *link)
{
	const unsigned before = link->num_turns;

	turns_lock(ring);
	while (!ring->stopping) {
		while (link->num_turns < MAKERS_WINDOW &&
		       makers_take(ring, link))
			;
		if (link->num_turns)
			break;
		turns_wait(ring, &ring->makers.queued, NULL);
	}
	turns_unlock(ring);
	return link->num_turns - before;
}

static uint64_t batches_of(const struct ring *ring)
{
	return spec_batches(&ring->options.feed->spec);
}

static struct wire_name name_of(const struct ring *ring, const struct turn *t)
{
	return (struct wire_name){ t->name.epoch,
				   t->name.number % batches_of(ring) };
}

/* Sends the names of the last `count` turns. */
static int send_names(struct ring *ring, struct link *link, unsigned count)
{
	struct wire_name names[MAKERS_WINDOW];

	for (unsigned i = 0; i < count; i++)
		names[i] =
			name_of(ring, link->turns[link->num_turns - count + i]);
	return wire_send(link->fd, names, count * sizeof(*names));
}

/* Returns the most bytes of a correct batch. */
static uint64_t most_bytes(const struct ring *ring, const struct turn *t)
{
	const struct phases *phases = ring->options.plan.phases;
	const struct pipeline *p = phases_at(phases, t->name.epoch);
	uint64_t rows = spec_batch_samples(&ring->options.feed->spec,
					   name_of(ring, t).number);
	uint64_t size = HEAD_MAX, one = 0;

	for (size_t i = 0; i < pipeline_num_outputs(p); i++) {
		const struct pipeline_output *o = pipeline_output_at(p, i);

		one += TABLE_MAX + (pipeline_output_varies(o) ? STEP_SENT_MAX
							      : o->sent_size);
	}
	return mul_ok(rows, one, &one) && add_ok(size, one, &size) ? size
								   : UINT64_MAX;
}

/* Receives the reason why the maker could not make the batch, and logs it. */
static int receive_refusal(struct ring *ring, struct link *link,
			   const struct wire_answer *a, char *why)
{
	char text[WIRE_MESSAGE_SIZE];
	int r;

	if (a->size >= sizeof(text)) {
		snprintf(why, WIRE_MESSAGE_SIZE, "its message is too long");
		return -EPROTO;
	}
	r = wire_receive(link->fd, text, a->size);
	if (r)
		return r;
	text[a->size] = '\0';
	for (char *c = text; *c; c++)
		*c = *c < ' ' || *c > '~' ? '?' : *c;
	log_warning(ring->options.log,
		    "a maker could not make a batch, and this machine tries: "
		    "%s",
		    text);
	turns_lock(ring);
	makers_refused(ring, link);
	turns_unlock(ring);
	if (++link->refusals < REFUSALS_MAX)
		return 0;
	snprintf(why, WIRE_MESSAGE_SIZE,
		 "it refused %d batches in a row: %.900s", REFUSALS_MAX, text);
	return -EREMOTEIO;
}

/* Receives a batch file. The kernel gives its memory as the bytes come, not as
   their number does. */
static int receive_file(struct ring *ring, struct link *link, uint64_t size,
			char *why)
{
	const struct turn *t = oldest(link);
	struct feed_batch *file = &t->step->input;
	int r;

	if (size > most_bytes(ring, t)) {
		snprintf(why, WIRE_MESSAGE_SIZE,
			 "its batch of %llu bytes is too large",
			 (unsigned long long)size);
		return -EPROTO;
	}
	r = buffer_reserve(&file->own, size);
	if (!r)
		r = wire_receive(link->fd, file->own.bytes, size);
	file->bytes = file->own.bytes;
	file->size = size;
	file->shared = NULL;
	return r;
}

/* Checks the batch file of the oldest turn, and prepares its step. */
static int take_file(struct ring *ring, struct link *link, char *why)
{
	const struct turn *t = oldest(link);
	struct step *s = t->step;
	const struct wire_name name = name_of(ring, t);
	const struct feed_expected as = { name.epoch, name.number,
					  s->batch.num_outputs };
	int r;

	s->is_sent = true;
	if (feed_check(ring->options.feed, &s->input, &as, &s->view, why))
		return -EPROTO;
	r = step_prepare(s, &ring->options.plan, t->name.number, t->is_padding);
	if (r == -EPROTO)
		snprintf(why, WIRE_MESSAGE_SIZE,
			 "its rows are not those of the pipeline");
	return r;
}

/* Receives the batch of the oldest turn into its step. */
static int receive_batch(struct ring *ring, struct link *link, uint64_t size,
			 char *why)
{
	int r = receive_file(ring, link, size, why);

	if (!r)
		r = take_file(ring, link, why);
	if (r)
		return r;
	link->refusals = 0;
	turns_lock(ring);
	makers_received(ring, link, size);
	turns_unlock(ring);
	return 0;
}

static int receive_answer(struct ring *ring, struct link *link, char *why)
{
	struct wire_name name = name_of(ring, oldest(link));
	struct wire_answer a;
	int r;

	link->waits_ns = stage_now_ns();
	r = wire_receive(link->fd, &a, sizeof(a));
	link->answered_ns = stage_now_ns();
	if (r)
		return r == -ENODATA ? -ECONNRESET : r;
	if (memcmp(&a.name, &name, sizeof(name))) {
		snprintf(why, WIRE_MESSAGE_SIZE,
			 "it answered with another batch");
		return -EPROTO;
	}
	return a.error ? receive_refusal(ring, link, &a, why)
		       : receive_batch(ring, link, a.size, why);
}

static int run(struct ring *ring, struct link *link, char *why)
{
	unsigned taken;
	int r = 0;

	turns_lock(ring);
	makers_ready(ring, link);
	turns_unlock(ring);
	while (!r) {
		taken = take_turns(ring, link);
		if (!link->num_turns)
			return -ECANCELED;
		r = taken ? send_names(ring, link, taken) : 0;
		if (!r)
			r = receive_answer(ring, link, why);
	}
	return r;
}

/* Lets the end of the ring end the link, until leave(). Returns -ECANCELED if the
   ring has ended. */
static int enter(struct ring *ring, struct link *link)
{
	turns_scope(ring);
	if (ring->stopping)
		return -ECANCELED;
	makers_add(ring, link);
	return 0;
}

/* Returns `r`, or -ECANCELED if the end of the ring has ended the link. */
static int leave(struct ring *ring, struct link *link, int r)
{
	turns_scope(ring);
	makers_remove(ring, link);
	return ring->stopping ? -ECANCELED : r;
}

int link_run(struct ring *ring, int fd, const struct wire_hello *hello,
	     char why[WIRE_MESSAGE_SIZE])
{
	struct link link = { .fd = fd };
	int r = enter(ring, &link);

	*why = '\0';
	if (!r) {
		r = wire_greet(fd, hello, why);
		if (!r)
			r = run(ring, &link, why);
		r = leave(ring, &link, r);
	}
	if (!*why)
		snprintf(why, WIRE_MESSAGE_SIZE, "%s", strerror(-r));
	return r;
}

/* --- the maker --- */

struct link_server {
	struct ring *ring;
	int fd;
	struct wire_name names[NAMED_MAX]; /* without an answer, in order */
	unsigned num_names;
	struct sent_batch batch;
};

/* Whether the trainer has sent something, or closed the link. */
static bool has_more(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static bool is_name(const struct link_server *s, const struct wire_name *name)
{
	return name->epoch <= SPEC_EPOCH_MAX &&
	       name->number < batches_of(s->ring);
}

/* Receives all names that have come, but at least one if there is none, and
   begins their batches. Returns -ENODATA after the trainer has closed the
   link. */
static int take_names(struct link_server *s)
{
	struct wire_name *name;
	int r;

	while (s->num_names < NAMED_MAX && (!s->num_names || has_more(s->fd))) {
		name = &s->names[s->num_names];
		r = wire_receive(s->fd, name, sizeof(*name));
		if (!r && !is_name(s, name))
			r = -EPROTO;
		if (r)
			return r;
		ring_ask(s->ring, name->epoch, name->number, 0);
		s->num_names++;
	}
	return 0;
}

static int answer_refusal(struct link_server *s, int error, const char *why)
{
	const struct wire_answer a = { s->names[0], error, strlen(why) };
	int r = wire_send(s->fd, &a, sizeof(a));

	return r ? r : wire_send(s->fd, why, a.size);
}

static int answer_batch(struct link_server *s, const struct beton_batch *batch)
{
	const struct step *step = (const struct step *)batch;
	struct wire_answer a = { .name = s->names[0] };
	int r = sent_batch_build(&s->batch, step, s->ring->options.feed);

	if (r)
		return answer_refusal(s, r, strerror(-r));
	a.size = s->batch.size;
	r = wire_send(s->fd, &a, sizeof(a));
	return r ? r
		 : wire_send_parts(s->fd, s->batch.parts.p, s->batch.num_parts);
}

static int answer_first(struct link_server *s)
{
	const struct beton_batch *batch;
	char why[STEP_MESSAGE_SIZE];
	int r = ring_make(s->ring, s->names[0].epoch, s->names[0].number,
			  &batch, why, sizeof(why));

	if (r == -ECANCELED)
		return r;
	if (r) {
		r = answer_refusal(s, r, why);
	} else {
		r = answer_batch(s, batch);
		ring_release(s->ring, batch);
	}
	s->num_names--;
	memmove(s->names, s->names + 1, s->num_names * sizeof(*s->names));
	return r;
}

/* Whether an error means that the trainer has closed the link, perhaps in the
   middle of an answer. */
static bool is_closed(int error)
{
	return error == -ENODATA || error == -EPIPE || error == -ECONNRESET;
}

static int serve(struct ring *ring, int fd, const struct wire_hello *hello,
		 char *why)
{
	struct link_server s = { .ring = ring, .fd = fd };
	int r = wire_greet(fd, hello, why);

	while (!r) {
		r = take_names(&s);
		if (!r)
			r = answer_first(&s);
	}
	sent_batch_fini(&s.batch);
	return r;
}

int link_serve(struct ring *ring, int fd, const struct wire_hello *hello,
	       char why[WIRE_MESSAGE_SIZE])
{
	struct link link = { .fd = fd };
	int r = enter(ring, &link);

	*why = '\0';
	if (!r)
		r = leave(ring, &link, serve(ring, fd, hello, why));
	if (is_closed(r) && !*why)
		return 0;
	if (!*why)
		snprintf(why, WIRE_MESSAGE_SIZE, "%s",
			 r == -EPROTO ? "the trainer asked for a batch that "
					"does not exist"
				      : strerror(-r));
	return r;
}
