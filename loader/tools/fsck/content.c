/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's thread reads segments and gives them to a queue, whose threads
 * check them. A segment ends where a value ends, so that every value lies in
 * one.
 */
#include "loader/tools/fsck/content.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/files/read_buffer.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/workqueue.h"
#include "loader/tools/fsck/sums.h"
#include "loader/tools/fsck/value.h"

enum {
	SEGMENT_MIN = 64 << 10,
	SEGMENT_MAX = 4 << 20,
	SEGMENTS = 16, /* at most */
};

/* A part of the file, and what lies in it. */
struct content_segment {
	uint64_t off;
	uint64_t end;
	uint8_t *bytes; /* owned */
	size_t room;
	const struct value_span *values;
	size_t num_values;
	const struct format_entry *entries;
	size_t num_entries;
	uint64_t used; /* the end of the entries before it */
	uint64_t next; /* the first entry after it */
	/* [zeros, end) has to be zero; NULL values. */
	uint64_t zeros;
	struct finding *findings; /* owned */
	size_t num_findings;
	bool lacks_memory;	      /* for a finding */
	struct content_segment *idle; /* the next idle one */
};

struct content {
	struct target *t;
	uint64_t size; /* of a usual segment */
	uint64_t most; /* bytes of the segments that are in the queue */
	uint64_t queued;
	uint64_t pos;  /* end of the last segment */
	uint64_t used; /* end of the entries before it */
	struct workqueue *queue;
	struct value_checker *checkers;
	unsigned num_checkers;
	unsigned num_queued;
	unsigned num_segments;
	struct content_segment segments[SEGMENTS];
	struct content_segment *idle;
};

/* --- on the threads --- */

/* Appends a finding. Doubles the array. */
static void add_finding(struct content_segment *s, const struct finding *f)
{
	size_t n = s->num_findings;

	if (!(n & (n - 1))) {
		void *more = realloc(s->findings,
				     (n ? 2 * n : 1) * sizeof(*s->findings));

		if (!more) {
			s->lacks_memory = true;
			return;
		}
		s->findings = more;
	}
	s->findings[s->num_findings++] = *f;
}

static void check_value(struct value_checker *c, struct content_segment *s,
			const struct value_span *v)
{
	struct finding f;

	/* A value that overlaps others may begin in an earlier segment. */
	if (v->off < s->off)
		return;
	if (!range_ok(v->off - s->off, v->size, s->end - s->off)) {
		if (!value_has_rules(&c->format->fields[v->field]))
			return;
		f = (struct finding){
			.check = CHECK_TOO_LARGE,
			.sample = v->sample,
			.field = v->field,
			.off = v->off,
			.size = v->size,
			.why = "not checked: it needs a larger --memory",
		};
		add_finding(s, &f);
	} else if (!value_check(c, v, s->bytes + (v->off - s->off), &f)) {
		add_finding(s, &f);
	}
}

/* Returns the offset of the first byte that is not zero, or `end`. */
static uint64_t first_used(const struct content_segment *s, uint64_t at,
			   uint64_t end)
{
	const uint8_t *bytes = s->bytes + (at - s->off);
	uint64_t n = end - at, i = 0;

	if (!n || (!bytes[0] && !memcmp(bytes, bytes + 1, n - 1)))
		return end;
	while (!bytes[i])
		i++;
	return at + i;
}

static void note_bytes(struct content_segment *s, enum check_id check,
		       uint64_t at, uint64_t end, const char *why)
{
	struct finding f = {
		.check = check,
		.sample = NO_SAMPLE,
		.field = NO_FIELD,
		.off = first_used(s, at, end),
	};

	if (f.off == end)
		return;
	snprintf(f.why, sizeof(f.why), "%s", why);
	add_finding(s, &f);
}

/* Bytes that no entry has, up to `end`; the next entry is at `next`. */
static void check_gap(const struct format *f, struct content_segment *s,
		      uint64_t at, uint64_t end, uint64_t next)
{
	while (at < end) {
		uint64_t page_end = align_up(at + 1, f->page_size);
		uint64_t stop = min_u64(end, page_end);

		if (next >= page_end)
			note_bytes(s, CHECK_PAGE_REST, at, stop,
				   "bytes behind the last value of a page");
		else
			note_bytes(s, CHECK_UNUSED_BYTES, at, stop,
				   "bytes that no value uses are not zero");
		at = stop;
	}
}

static void check_gaps(const struct format *f, struct content_segment *s)
{
	uint64_t at = max_u64(s->off, s->used);

	for (size_t i = 0; i < s->num_entries; i++) {
		const struct format_entry *e = &s->entries[i];

		if (e->off > at)
			check_gap(f, s, at, min_u64(e->off, s->end), e->off);
		at = max_u64(at, e->off + e->size);
	}
	check_gap(f, s, at, s->end, s->next);
}

static int check_segment(void *worker, void *job)
{
	struct value_checker *c = worker;
	struct content_segment *s = job;

	if (s->zeros < s->end)
		note_bytes(
			s, CHECK_HEAD_PADDING, s->zeros, s->end,
			"bytes between the metadata and the first page are not zero");
	if (!s->values)
		return 0;
	for (size_t i = 0; i < s->num_values; i++)
		check_value(c, s, &s->values[i]);
	check_gaps(c->format, s);
	return 0;
}

/* --- the queue --- */

static int open_checkers(struct content *c)
{
	struct target *t = c->t;
	int r = 0;

	c->checkers = calloc(t->threads, sizeof(*c->checkers));
	if (!c->checkers)
		return -ENOMEM;
	c->num_checkers = t->threads;
	for (unsigned i = 0; i < t->threads && !r; i++) {
		c->checkers[i].format = &t->format;
		c->checkers[i].is_deep = t->extent == CHECK_DEEP;
		r = decoder_open(&c->checkers[i].decoder);
	}
	return r;
}

static int open_queue(struct content *c)
{
	const struct workqueue_setup setup = {
		.run = check_segment,
		.workers = c->checkers,
		.worker_size = sizeof(*c->checkers),
		.threads = c->num_checkers,
		.room = c->num_segments,
	};

	return workqueue_open(&setup, &c->queue);
}

int content_open(struct target *t, struct content **out)
{
	struct content *c = calloc(1, sizeof(*c));
	int r = c ? 0 : -ENOMEM;

	if (c) {
		c->t = t;
		/* Independent of the number of threads, as the findings are. */
		c->size = max_u64(SEGMENT_MIN,
				  min_u64(t->memory / 128, SEGMENT_MAX));
		c->most = t->memory / 4;
		c->num_segments =
			(unsigned)min_u64(2 * t->threads + 2, SEGMENTS);
		for (unsigned i = 0; i < c->num_segments; i++) {
			c->segments[i].idle = c->idle;
			c->idle = &c->segments[i];
		}
		r = open_checkers(c);
	}
	r = r ? r : open_queue(c);
	if (r) {
		log_error(t->log, "%s: cannot start %u threads: %s",
			  t->source->path, t->threads, strerror(-r));
		content_close(c);
		return r;
	}
	*out = c;
	return 0;
}

void content_close(struct content *c)
{
	if (!c)
		return;
	workqueue_close(c->queue);
	for (unsigned i = 0; i < c->num_checkers; i++)
		decoder_close(c->checkers[i].decoder);
	for (unsigned i = 0; i < c->num_segments; i++) {
		free(c->segments[i].bytes);
		free(c->segments[i].findings);
	}
	free(c->checkers);
	free(c);
}

/* Takes the oldest segment, and reports its findings. */
static int take_segment(struct content *c)
{
	struct content_segment *s;
	void *job;
	int r = workqueue_take(c->queue, -1, &job);

	if (r)
		return r;
	s = job;
	c->num_queued--;
	c->queued -= s->room;
	for (size_t i = 0; i < s->num_findings; i++)
		report_add(c->t->report, &s->findings[i]);
	r = s->lacks_memory ? -ENOMEM : 0;
	free(s->findings);
	s->findings = NULL;
	s->num_findings = 0;
	/* Large values are rare. */
	if (s->room > 2 * c->size) {
		free(s->bytes);
		s->bytes = NULL;
		s->room = 0;
	}
	s->idle = c->idle;
	c->idle = s;
	return r;
}

static int drain(struct content *c)
{
	int r = 0;

	while (c->num_queued && !r)
		r = take_segment(c);
	return r;
}

static int make_room(struct content *c, uint64_t size)
{
	int r = 0;

	while (!r && c->num_queued && (!c->idle || c->queued + size > c->most))
		r = take_segment(c);
	return r;
}

static int read_segment(struct content *c, struct content_segment *s)
{
	size_t size = (size_t)(s->end - s->off);
	int r;

	if (s->room < size) {
		free(s->bytes);
		s->room = max_u64(size, c->size);
		s->bytes = read_buffer_alloc(s->room);
		if (!s->bytes) {
			s->room = 0;
			return -ENOMEM;
		}
	}
	r = target_read(c->t, s->bytes, size, s->off);
	if (!r && c->t->sums)
		r = sums_check_bytes(c->t->sums, s->bytes, size);
	return r ? r : target_poll(c->t, size);
}

/* Reads a segment and gives it to the queue. `of` has all members but those
   that own memory. */
static int submit(struct content *c, const struct content_segment *of)
{
	int r = make_room(c, of->end - of->off);
	struct content_segment *s = c->idle;
	struct content_segment own;

	if (r)
		return r;
	own = *s;
	*s = *of;
	s->bytes = own.bytes;
	s->room = own.room;
	r = read_segment(c, s);
	if (r) {
		s->idle = own.idle;
		return r;
	}
	c->idle = own.idle;
	r = workqueue_submit(c->queue, s, -1);
	if (r)
		return r;
	c->num_queued++;
	c->queued += s->room;
	return 0;
}

/* --- parts of the file --- */

int content_plain(struct content *c, uint64_t low, uint64_t high)
{
	const struct format *f = &c->t->format;
	uint64_t zeros = UINT64_MAX;
	int r = 0;

	if (high == f->first_page && low == 0 && f->itemsize)
		zeros = f->meta_off + f->samples * f->itemsize;
	if (!c->t->sums)
		low = min_u64(zeros, high);
	while (low < high && !r) {
		struct content_segment s = {
			.off = low,
			.end = min_u64(low + c->size, high),
			.zeros = max_u64(low, zeros),
		};

		r = submit(c, &s);
		low = s.end;
	}
	c->pos = high;
	return r ? r : drain(c);
}

/* Where the entries [i, ...) that begin before `end` end. */
static uint64_t reach(const struct window *w, size_t i, uint64_t end,
		      size_t *next)
{
	uint64_t most = 0;

	for (; i < w->num_entries && w->entries[i].off < end; i++)
		most = max_u64(most, w->entries[i].off + w->entries[i].size);
	*next = i;
	return most;
}

/* Sets the end of a segment that begins with entry i: if a value crosses it and
   fits into memory, it moves to the end of the value. */
static void end_segment(const struct content *c, const struct window *w,
			size_t i, struct content_segment *s)
{
	uint64_t limit = s->off + c->t->memory / 2, far;
	size_t next;

	s->end = max_u64(s->off, min_u64(s->off + c->size, w->high));
	far = max_u64(reach(w, i, s->end, &next), s->used);
	/* Values that overlap may move it several times. */
	while (far > s->end && far <= limit) {
		s->end = far;
		far = reach(w, next, s->end, &next);
	}
	s->num_entries = next - i;
	s->next = next < w->num_entries ? w->entries[next].off : w->high;
}

int content_window(struct content *c, const struct window *w)
{
	size_t entry = 0, value = 0;
	int r = 0;

	while (c->pos < w->high && !r) {
		struct content_segment s = {
			.off = c->pos,
			.used = c->used,
			.zeros = UINT64_MAX,
			.entries = w->entries + entry,
			.values = w->values + value,
		};

		end_segment(c, w, entry, &s);
		while (value < w->num_values && w->values[value].off < s.end)
			value++;
		s.num_values = (size_t)(w->values + value - s.values);
		for (size_t i = 0; i < s.num_entries; i++)
			c->used = max_u64(c->used,
					  s.entries[i].off + s.entries[i].size);
		entry += s.num_entries;
		r = submit(c, &s);
		c->pos = s.end;
	}
	return r ? r : drain(c);
}
