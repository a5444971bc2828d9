/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/ring/turns.h"

#ifdef TURNS_CHECKED

#	include <stdio.h>
#	include <stdlib.h>
#	include <utlist.h>

#	include "fs/base/util/bytes.h"

enum {
	/* Only one thread at a time calls the loader. */
	CALLS_MAX = 1,
	/* The most rows that a worker takes (workers.c). */
	TAKEN_MAX = 64,
};

/* The threads of links and of the fetcher change the content of their step without
   the lock, and workers its batch file. */
static bool is_settled(const struct turn *t)
{
	return t->state == TURN_FREE || t->state == TURN_QUEUED ||
	       t->state >= TURN_DONE;
}

static bool is_in_flight(const struct turn *t)
{
	return t->state >= TURN_QUEUED && t->state <= TURN_DONE;
}

/* --- what to print --- */

static void print_turn(const struct turn *t)
{
	static const char *const states[] = {
		"free",	   "queued",	"remote", "fetching",
		"running", "finishing", "done",	  "held",
	};
	static const char *const memory[] = { "none", "head", "full" };

	fprintf(stderr,
		"  %p sequence %lld epoch %llu batch %llu %s, memory %s, rows %u next %u left %u, error %d:%s%s%s%s%s%s%s%s%s\n",
		(const void *)t, (long long)t->sequence,
		(unsigned long long)t->name.epoch,
		(unsigned long long)t->name.number, states[t->state],
		memory[t->memory], t->step->batch.num_samples, t->next_row,
		t->rows_left, t->error, t->is_named ? " named" : "",
		t->is_padding ? " padding" : "", t->replays ? " replays" : "",
		t->is_cached ? " cached" : "", t->is_split ? " split" : "",
		t->is_growing ? " growing" : "",
		t->is_stalled ? " stalled" : "",
		t->is_repeated ? " repeated" : "",
		t->is_refused ? " refused" : "");
}

static void print_turns(const char *what, const struct turn *list)
{
	fprintf(stderr, "%s:\n", what);
	for (const struct turn *t = list; t; t = t->next)
		print_turn(t);
}

_Noreturn static void fail(const struct ring *ring, const struct turn *t,
			   int line, const char *what)
{
	fprintf(stderr, "loader/run/ring/turns_check.c:%d: HOLDS(%s)\n", line,
		what);
	if (t)
		print_turn(t);
	fprintf(stderr,
		"sequences: delivered %llu, begun %llu; in flight: %u, named %u; free %u, inputs %u, running %u, links %u\n",
		(unsigned long long)ring->delivered_sequence,
		(unsigned long long)ring->begun_sequence, ring->in_flight,
		ring->named.in_flight, ring->num_free, ring->num_inputs,
		ring->running, ring->makers.num_links);
	print_turns("turns", ring->turns);
	print_turns("free turns", ring->free_turns);
	print_turns("cached turns", ring->cached_turns);
	abort();
}

/* `ring` and, if it is about a turn, `t` are those of the function. */
#	define HOLDS_OF(t, condition)                                         \
		((condition) ? (void)0 : fail(ring, t, __LINE__, #condition))
#	define HOLDS(condition) HOLDS_OF(NULL, condition)
#	define HOLDS_T(condition) HOLDS_OF(t, condition)

/* --- one turn --- */

static void check_state(const struct ring *ring, const struct turn *t)
{
	const struct ring_options *o = &ring->options;

	/* A stale turn has a thread that works on it, and recycles it. */
	if (turn_is_stale(ring, t))
		HOLDS_T(t->state != TURN_QUEUED && t->state != TURN_DONE);
	if (t->state == TURN_QUEUED || t->is_stalled || t->is_repeated ||
	    t->is_refused)
		HOLDS_T(o->has_makers);
	if (t->state == TURN_HELD)
		HOLDS_T(!t->error && (t->is_named ||
				      t->sequence < ring->delivered_sequence));
	HOLDS_T(t->error <= 0);
	HOLDS_T(!t->is_named || t->sequence == TURN_NAMED);
	HOLDS_T(t->is_named || t->sequence < ring->begun_sequence);
	HOLDS_T(t->is_padding ==
		(t->name.number >= spec_batches(&o->feed->spec)));
}

static void check_rows(const struct ring *ring, const struct turn *t)
{
	uint32_t n;

	/* Until then the step is being prepared, without the lock. */
	if (t->state < TURN_RUNNING)
		return;
	n = t->step->batch.num_samples;
	if (t->state == TURN_RUNNING) {
		HOLDS_T(t->next_row <= n && t->rows_left <= n);
		HOLDS_T(t->rows_left >= n - t->next_row);
		HOLDS_T(t->rows_left || !n);
		if (turn_is_stale(ring, t))
			HOLDS_T(t->next_row == n);
	}
	if (t->state >= TURN_FINISHING && !t->error && !t->replays &&
	    ring->options.plan.until != BETON_STAGE_READ)
		HOLDS_T(t->next_row == n && !t->rows_left);
}

/* Whether turns stay when the ring becomes idle, which lowers complete_max. */
static bool has_failures(const struct ring *ring)
{
	const struct turn *t;

	DL_FOREACH(ring->turns, t)
	{
		if (t->error || atomic_load(&t->step->failed))
			return true;
	}
	return ring->options.callback || atomic_load(&ring->failed_samples);
}

/* A turn has a body only if it is among the next ones. */
static void check_body(const struct ring *ring, const struct turn *t)
{
	if (!is_in_flight(t) || t->memory != MEMORY_FULL || t->is_named ||
	    has_failures(ring))
		return;
	HOLDS_T(t->sequence <
		ring->delivered_sequence + ring->residence.complete_max);
}

static void check_memory(const struct ring *ring, const struct turn *t)
{
	uint32_t head = ring->options.head_rows;

	HOLDS_T(head || t->memory == MEMORY_FULL);
	if (t->is_growing)
		HOLDS_T(t->state == TURN_RUNNING && t->memory != MEMORY_FULL &&
			t->is_split);
	HOLDS_T(!t->blocked_ns || t->blocked_since_ns);
	if (t->state < TURN_RUNNING || !t->is_split || t->error ||
	    turn_is_stale(ring, t))
		return;
	/* Workers that have rows have their memory, or are about to. */
	if (t->next_row)
		HOLDS_T(t->memory != MEMORY_NONE);
	if (t->next_row > head)
		HOLDS_T(t->memory == MEMORY_FULL || t->is_growing);
	check_body(ring, t);
}

/* A batch file whose rows are done is of no use, unless tensors are in it. */
static void check_input(const struct ring *ring, const struct turn *t)
{
	const struct step *s = t->step;

	if (t->state < TURN_DONE || t->error || t->replays)
		return;
	HOLDS_T(s->keeps_input || !s->input.shared);
	if (s->copies && ring->options.plan.until != BETON_STAGE_READ)
		HOLDS_T(!s->input.own.capacity);
}

static bool is_cached_step(const struct turn *list, const struct step *step)
{
	for (const struct turn *t = list; t; t = t->next) {
		if (t->is_cached && t->step == step)
			return true;
	}
	return false;
}

static void check_replay(const struct ring *ring, const struct turn *t)
{
	if (t->replays)
		HOLDS_T(!t->is_cached &&
			(is_cached_step(ring->turns, t->replays) ||
			 is_cached_step(ring->cached_turns, t->replays)));
	if (t->is_cached)
		HOLDS_T(ring->options.replay && !t->error && !t->is_named &&
			(t->state == TURN_FREE || t->state >= TURN_DONE));
}

static bool has_turn(const struct link *link, const struct turn *t)
{
	unsigned n = 0;

	for (unsigned i = 0; i < link->num_turns; i++)
		n += link->turns[i] == t;
	return n == 1;
}

static void check_link(const struct ring *ring, const struct turn *t)
{
	HOLDS_T((t->state == TURN_REMOTE) == (t->link != NULL));
	if (t->link)
		HOLDS_T(ring->options.has_makers && has_turn(t->link, t));
}

static void check_turn(const struct ring *ring, const struct turn *t)
{
	HOLDS_T(t->state != TURN_FREE);
	check_state(ring, t);
	check_rows(ring, t);
	check_memory(ring, t);
	check_input(ring, t);
	check_replay(ring, t);
	check_link(ring, t);
}

/* --- two turns --- */

static bool is_before(const struct name *a, const struct name *b)
{
	return a->epoch < b->epoch ||
	       (a->epoch == b->epoch && a->number < b->number);
}

static bool is_same(const struct name *a, const struct name *b)
{
	return a->epoch == b->epoch && a->number == b->number;
}

/* Turns of one sequence make one batch, and the first one counts. Others are in
   the order of their batches. */
static void check_order(const struct ring *ring, const struct turn *t,
			const struct turn *other)
{
	if (!is_in_flight(t) || !is_in_flight(other) || t->is_named ||
	    other->is_named || turn_is_stale(ring, t) ||
	    turn_is_stale(ring, other))
		return;
	if (t->sequence == other->sequence)
		HOLDS_T(t->is_repeated && other->is_repeated &&
			is_same(&t->name, &other->name));
	else
		HOLDS_T((t->sequence < other->sequence) ==
			is_before(&t->name, &other->name));
	HOLDS_T(t->sequence <= other->sequence || ring->options.has_makers);
}

/* The number of a name of the fetching thread's epoch. */
static void check_name(const struct ring *ring, const struct turn *t)
{
	struct cursor at = ring->begun;

	if (t->is_named || t->name.epoch != at.epoch ||
	    turn_is_stale(ring, t) || t->state == TURN_HELD)
		return;
	at.step -= ring->begun_sequence - t->sequence;
	HOLDS_T(t->name.number == cursor_number(&at));
}

static bool share(const struct buffer *a, const struct buffer *b)
{
	return a->bytes && a->bytes == b->bytes;
}

/* Memory has one owner. */
static void check_owners(const struct ring *ring, const struct turn *t,
			 const struct turn *other)
{
	HOLDS_T(t != other && t->step != other->step);
	if (!is_settled(t) || !is_settled(other))
		return;
	HOLDS_T(!share(&t->step->input.own, &other->step->input.own));
	HOLDS_T(!t->step->input.shared ||
		t->step->input.shared != other->step->input.shared);
	for (uint32_t i = 0; i < t->step->batch.num_outputs; i++) {
		const struct step_output *a = &t->step->outputs[i];
		const struct step_output *b = &other->step->outputs[i];

		HOLDS_T(!share(&a->data, &b->data) &&
			!share(&a->parts, &b->parts));
	}
}

static void check_pairs(const struct ring *ring, const struct turn *list,
			const struct turn *t)
{
	for (const struct turn *other = list; other; other = other->next)
		check_owners(ring, t, other);
}

/* --- lists --- */

static void check_turns(const struct ring *ring)
{
	const struct turn *t, *last = NULL;

	for (t = ring->turns; t; t = t->next) {
		HOLDS_T(!last || t->prev == last);
		check_turn(ring, t);
		check_name(ring, t);
		check_pairs(ring, t->next, t);
		check_pairs(ring, ring->free_turns, t);
		check_pairs(ring, ring->cached_turns, t);
		for (const struct turn *o = t->next; o; o = o->next)
			check_order(ring, t, o);
		last = t;
	}
	HOLDS(!ring->turns || ring->turns->prev == last);
}

static void check_free(const struct ring *ring, const struct turn *t)
{
	HOLDS_T(t->state == TURN_FREE && !t->is_growing && !t->link);
	HOLDS_T(!t->step->input.shared);
	HOLDS_T(ring->options.head_rows || t->memory == MEMORY_FULL);
}

static void check_free_turns(const struct ring *ring)
{
	const struct turn *t;
	uint32_t n = 0, parcels = 0;

	LL_FOREACH(ring->free_turns, t)
	{
		check_free(ring, t);
		HOLDS_T(!t->is_cached);
		check_pairs(ring, t->next, t);
		check_pairs(ring, ring->cached_turns, t);
		parcels += t->step->parcel != NULL;
		n++;
	}
	HOLDS(n == ring->num_free);
	/* Workers that have moved a body add the turn that had it. */
	HOLDS(n - parcels <=
	      (uint64_t)ring->options.prefetch + 1 + ring->options.workers);
	LL_FOREACH(ring->cached_turns, t)
	{
		check_free(ring, t);
		HOLDS_T(t->is_cached);
		check_replay(ring, t);
	}
}

static void check_inputs(const struct ring *ring)
{
	const struct turn *t;

	HOLDS(ring->num_inputs <= ring->options.prefetch);
	for (uint32_t i = 0; i < ring->num_inputs; i++) {
		const struct buffer *b = &ring->inputs[i];

		HOLDS(b->bytes && b->capacity);
		for (uint32_t k = 0; k < i; k++)
			HOLDS(!share(b, &ring->inputs[k]));
		for (t = ring->turns; t; t = t->next)
			HOLDS_T(!is_settled(t) ||
				!share(b, &t->step->input.own));
		for (t = ring->free_turns; t; t = t->next)
			HOLDS_T(!share(b, &t->step->input.own));
	}
}

/* --- counters --- */

struct counts {
	uint32_t in_flight, named, repeated, abandoned, fetching, reading;
	uint64_t taken;	    /* rows that workers run */
	uint64_t sequences; /* that wait for their delivery */
};

static bool is_first_of_sequence(const struct ring *ring, const struct turn *t)
{
	const struct turn *other;

	for (other = ring->turns; other != t; other = other->next) {
		if (is_in_flight(other) && other->sequence == t->sequence)
			return false;
	}
	return true;
}

static void count(const struct ring *ring, struct counts *c)
{
	const struct turn *t;

	DL_FOREACH(ring->turns, t)
	{
		if (t->state == TURN_RUNNING)
			c->taken += t->rows_left + t->next_row -
				    t->step->batch.num_samples;
		c->fetching += t->state == TURN_FETCHING;
		c->reading += t->state == TURN_FETCHING && !t->replays;
		if (!is_in_flight(t))
			continue;
		c->named += t->is_named;
		c->in_flight += !t->is_named;
		c->repeated += t->is_repeated;
		c->abandoned +=
			t->state == TURN_REMOTE && turn_is_stale(ring, t);
		c->sequences += !t->is_named && !turn_is_stale(ring, t) &&
				is_first_of_sequence(ring, t);
	}
}

static void check_counts(const struct ring *ring)
{
	uint64_t prefetch = ring->options.prefetch;
	struct counts c = { .taken = 0 };

	count(ring, &c);
	HOLDS(c.in_flight == ring->in_flight);
	HOLDS(c.named == ring->named.in_flight);
	HOLDS(c.in_flight <= prefetch + c.abandoned + c.repeated);
	HOLDS(c.named <= prefetch);
	/* A worker that runs rows has some, and others have none. */
	HOLDS(c.taken >= ring->running);
	HOLDS(c.taken <= (uint64_t)ring->running * TAKEN_MAX);
	HOLDS(ring->running <= ring->options.workers);
	HOLDS(c.fetching <= 1);
	HOLDS(c.reading == ring->makers.is_fetching);
	HOLDS(ring->delivered_sequence <= ring->begun_sequence);
	/* Without this one the user would wait for a batch that never comes. */
	HOLDS(ring->stopping ||
	      c.sequences == ring->begun_sequence - ring->delivered_sequence);
}

/* Positions and sequences count the same batches. */
static void check_positions(const struct ring *ring)
{
	const struct cursor *begun = &ring->begun,
			    *delivered = &ring->delivered;

	if (begun->epoch == delivered->epoch && !ring->epoch_over)
		HOLDS(begun->start == delivered->start &&
		      begun->step - delivered->step ==
			      ring->begun_sequence - ring->delivered_sequence);
}

static uint64_t sum_parts(const struct turn *list)
{
	uint64_t n = 0;

	/* If a turn is growing, the parts of another one are in no list. */
	for (const struct turn *t = list; t; t = t->next)
		n += (unsigned)t->memory + (t->is_growing ? MEMORY_FULL : 0);
	return n;
}

static void check_parts(const struct ring *ring)
{
	HOLDS(sum_parts(ring->turns) + sum_parts(ring->free_turns) +
		      sum_parts(ring->cached_turns) ==
	      ring->residence.parts);
}

/* --- names, makers, idleness --- */

static void check_named(const struct ring *ring)
{
	const struct named *n = &ring->named;
	const struct turn *t;

	HOLDS(n->num <= NAMED_MAX);
	for (unsigned i = 0; i < n->num; i++) {
		for (unsigned k = 0; k < i; k++)
			HOLDS(!is_same(&n->names[i], &n->names[k]));
		for (t = ring->turns; t; t = t->next)
			HOLDS_T(!t->is_named || !is_in_flight(t) ||
				!is_same(&t->name, &n->names[i]));
	}
}

static void check_makers(const struct ring *ring)
{
	const struct makers *m = &ring->makers;
	unsigned links = 0, ready = 0;
	const struct link *link;

	DL_FOREACH(m->links, link)
	{
		HOLDS(link->num_turns <= MAKERS_WINDOW);
		HOLDS(link->is_ready || !link->num_turns);
		HOLDS(!link->is_late || link->num_turns);
		for (unsigned i = 0; i < link->num_turns; i++)
			HOLDS_OF(link->turns[i], link->turns[i]->link == link);
		links++;
		ready += link->is_ready;
	}
	HOLDS(links == m->num_links);
	HOLDS(ready == m->num_ready);
}

static void check_idle(const struct ring *ring)
{
	HOLDS(ring->idle.calls <= CALLS_MAX);
	if (!ring->idle.is_idle)
		return;
	HOLDS(!ring->idle.calls);
	HOLDS(!ring->free_turns && !ring->num_inputs);
}

void turns_check(const struct ring *ring)
{
	const struct ring_options *o = &ring->options;

	check_turns(ring);
	check_free_turns(ring);
	check_inputs(ring);
	check_counts(ring);
	check_positions(ring);
	check_parts(ring);
	check_named(ring);
	check_makers(ring);
	check_idle(ring);
	HOLDS(ring->worker_error <= 0);
	HOLDS(!ring->stopping || ring->worker_error);
	HOLDS(ring->residence.complete_max == o->complete ||
	      ring->residence.complete_max == o->prefetch);
	HOLDS(!ring->losses.unlogged || ring->losses.is_logged);
}

#endif
