/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/gpu/upload.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/log.h"
#include "loader/util/scratch.h"

/* Size of a copy: some 50 us on a bus of 25 GB/s, long compared with the 3 us of
   queuing it. */
enum { PIECE_SIZE = 1 << 20 };

/* A stream that acquired the slot, and the event that is recorded on it when
   the slot is released. */
struct upload_user {
	struct cuda_stream *stream;
	pthread_t thread;
	struct cuda_event *released;
};

/* The state of a round. */
enum round { ROUND_NONE, ROUND_WRITING, ROUND_STARTED };

struct upload_slot {
	struct upload *upload;
	struct upload_part *parts;
	uint32_t num_parts;
	enum round round; /* changed by who has the round, as the next */
	bool has_waited;  /* begin had to wait */
	struct cuda_event *copied; /* the host's memory was read */
	struct cuda_event *ready;
	pthread_mutex_t lock; /* guards all that follows */
	struct upload_user *users;
	uint32_t num_users; /* in the round, and, after it, that the next one
			       has to wait for */
	uint32_t users_capacity;
	uint32_t num_events; /* of users, from the first; the others have none
			      */
};

/* --- the upload --- */

static int open_pieces(struct upload *u)
{
	int r = 0;

	for (size_t i = 0; i < UPLOAD_PIECES && !r; i++) {
		r = cuda_host_alloc(u->cuda, PIECE_SIZE, &u->pieces[i].bytes);
		if (!r)
			r = cuda_event_create(u->cuda, &u->pieces[i].read);
	}
	return r;
}

/*
 * Waits until nothing of the upload runs. If the driver cannot wait for the
 * stream, waits for the whole device.
 */
static void finish_stream(struct upload *u)
{
	if (cuda_stream_synchronize(u->cuda, u->stream))
		cuda_synchronize(u->cuda);
}

int upload_open(const struct upload_options *options, struct upload **out)
{
	struct upload *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return -ENOMEM;
	u->cuda = options->cuda;
	u->log = options->log;
	u->budget = options->pinned;
	pthread_mutex_init(&u->lock, NULL);
	r = cuda_stream_create(u->cuda, &u->stream);
	if (!r)
		r = open_pieces(u);
	if (r)
		upload_close(u);
	else
		*out = u;
	return r;
}

void upload_close(struct upload *u)
{
	if (!u)
		return;
	if (u->stream)
		finish_stream(u);
	for (size_t i = 0; i < UPLOAD_PIECES; i++) {
		cuda_event_destroy(u->cuda, u->pieces[i].read);
		cuda_host_free(u->cuda, u->pieces[i].bytes);
	}
	cuda_stream_destroy(u->cuda, u->stream);
	pthread_mutex_destroy(&u->lock);
	free(u);
}

void upload_get_stats(struct upload *u, struct upload_stats *out)
{
	scoped_lock(&u->lock);
	*out = u->stats;
}

/* --- slots --- */

int upload_slot_open(struct upload *upload, uint32_t num_parts,
		     struct upload_slot **out)
{
	struct upload_slot *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return -ENOMEM;
	s->upload = upload;
	s->num_parts = num_parts;
	pthread_mutex_init(&s->lock, NULL);
	s->parts = calloc(num_parts, sizeof(*s->parts));
	if (!s->parts && num_parts)
		r = -ENOMEM;
	if (!r)
		r = cuda_event_create(upload->cuda, &s->copied);
	if (!r)
		r = cuda_event_create(upload->cuda, &s->ready);
	if (r)
		upload_slot_close(s);
	else
		*out = s;
	return r;
}

/* Waits until the slot's memory is unused. */
static int wait_for_all(struct upload_slot *s)
{
	struct cuda *cuda = s->upload->cuda;
	int r = s->ready ? cuda_event_synchronize(cuda, s->ready) : 0;

	for (uint32_t i = 0; i < s->num_users && !r; i++)
		r = cuda_event_synchronize(cuda, s->users[i].released);
	return r;
}

void upload_slot_close(struct upload_slot *s)
{
	if (!s)
		return;
	if (s->round != ROUND_NONE && upload_finish(s))
		upload_release_done(s);
	/* Memory in use must not be freed. If the driver cannot wait for the
	   events, waits for the whole device. */
	if (wait_for_all(s))
		cuda_synchronize(s->upload->cuda);
	for (uint32_t i = 0; s->parts && i < s->num_parts; i++) {
		upload_free_host(s->upload, &s->parts[i]);
		upload_free_device(s->upload, &s->parts[i]);
	}
	for (uint32_t i = 0; i < s->num_events; i++)
		cuda_event_destroy(s->upload->cuda, s->users[i].released);
	cuda_event_destroy(s->upload->cuda, s->copied);
	cuda_event_destroy(s->upload->cuda, s->ready);
	pthread_mutex_destroy(&s->lock);
	free(s->users);
	free(s->parts);
	free(s);
}

int upload_begin(struct upload_slot *s)
{
	struct upload *u = s->upload;
	int64_t before;
	int r;

	if (s->round == ROUND_STARTED)
		return -EBUSY;
	r = cuda_event_query(u->cuda, s->copied);
	s->has_waited = r == -EAGAIN;
	if (s->has_waited) {
		before = clock_ns();
		r = cuda_event_synchronize(u->cuda, s->copied);
		upload_count(u, &u->stats.waits, 1);
		upload_count(u, &u->stats.wait_ns,
			     (uint64_t)(clock_ns() - before));
	}
	if (!r)
		s->round = ROUND_WRITING;
	return r;
}

bool upload_has_waited(const struct upload_slot *s)
{
	return s->has_waited;
}

int upload_reserve(struct upload_slot *s, uint32_t part, uint64_t host,
		   uint64_t device)
{
	struct upload_part *p;
	int r = 0;

	if (part >= s->num_parts || s->round != ROUND_WRITING)
		return -EINVAL;
	p = &s->parts[part];
	if (host > INT64_MAX / 2 || device > INT64_MAX / 2)
		return -ENOMEM;
	if (host > p->host_capacity)
		r = upload_grow_host(s->upload, p, host);
	if (!r && device > p->device_capacity) {
		r = wait_for_all(s);
		if (!r)
			r = upload_grow_device(s->upload, p, device);
	}
	return r;
}

void *upload_host(const struct upload_slot *s, uint32_t part)
{
	return s->parts[part].host;
}

uint64_t upload_device(const struct upload_slot *s, uint32_t part)
{
	return s->parts[part].device;
}

/* --- starting; with upload.lock held --- */

/* The slot whose host memory it reads. */
static const struct upload_slot *from_of(const struct upload_slot *s,
					 const struct upload_copy *c)
{
	return c->from ? c->from : s;
}

static bool copy_fits(const struct upload_slot *s, const struct upload_copy *c)
{
	const struct upload_slot *from = from_of(s, c);

	return c->part < s->num_parts && c->part < from->num_parts &&
	       range_ok(c->offset, c->size,
			min_u64(from->parts[c->part].host_capacity,
				s->parts[c->part].device_capacity));
}

static bool copies_fit(const struct upload_slot *s, const struct upload_copy *c,
		       size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!copy_fits(s, &c[i]))
			return false;
	}
	return true;
}

/* Makes the stream wait for the consumers of the last round. */
static int wait_for_users(struct upload_slot *s)
{
	int r = 0;

	for (uint32_t i = 0; i < s->num_users && !r; i++)
		r = cuda_stream_wait_event(s->upload->cuda, s->upload->stream,
					   s->users[i].released);
	return r;
}

/* Copies at most one piece of ordinary memory. */
static int copy_piece(struct upload *u, uint64_t to, const uint8_t *from,
		      uint64_t size)
{
	struct upload_piece *p = &u->pieces[u->next_piece];
	int r = cuda_event_synchronize(u->cuda, p->read);

	if (r)
		return r;
	memcpy(p->bytes, from, size);
	r = cuda_copy_to_device(u->cuda, to, p->bytes, size, u->stream);
	if (!r)
		r = cuda_event_record(u->cuda, p->read, u->stream);
	u->next_piece = (u->next_piece + 1) % UPLOAD_PIECES;
	return r;
}

static int copy_ordinary(struct upload *u, uint64_t to, const uint8_t *from,
			 uint64_t size)
{
	uint64_t n;
	int r = 0;

	u->stats.staged += size;
	for (uint64_t at = 0; at < size && !r; at += n) {
		n = min_u64(size - at, PIECE_SIZE);
		r = copy_piece(u, to + at, from + at, n);
	}
	return r;
}

static int queue_copy(struct upload_slot *s, const struct upload_copy *c)
{
	struct upload *u = s->upload;
	const struct upload_part *p = &from_of(s, c)->parts[c->part];
	const uint8_t *from = (const uint8_t *)p->host + c->offset;
	uint64_t to = s->parts[c->part].device + c->offset;

	if (!c->size)
		return 0;
	u->stats.bytes += c->size;
	if (p->pinned)
		return cuda_copy_to_device(u->cuda, to, from, c->size,
					   u->stream);
	return copy_ordinary(u, to, from, c->size);
}

static int queue(struct upload_slot *s, const struct upload_copy *copies,
		 size_t num_copies, upload_run_fn *run, void *arg)
{
	struct upload *u = s->upload;
	int r = wait_for_users(s);

	for (size_t i = 0; i < num_copies && !r; i++)
		r = queue_copy(s, &copies[i]);
	if (!r)
		r = cuda_event_record(u->cuda, s->copied, u->stream);
	if (!r && run)
		r = run(arg, u->cuda, u->stream);
	if (!r)
		r = cuda_event_record(u->cuda, s->ready, u->stream);
	return r;
}

int upload_start(struct upload_slot *s, const struct upload_copy *copies,
		 size_t num_copies, upload_run_fn *run, void *arg)
{
	struct upload *u = s->upload;
	int r;

	if (s->round != ROUND_WRITING || !copies_fit(s, copies, num_copies))
		return -EINVAL;
	cuda_range_push(u->cuda, "beton upload");
	pthread_mutex_lock(&u->lock);
	r = queue(s, copies, num_copies, run, arg);
	u->stats.batches += !r;
	pthread_mutex_unlock(&u->lock);
	cuda_range_pop(u->cuda);
	if (r) {
		/* Queued copies would read memory that the host is about to
		   write. */
		finish_stream(u);
		return r;
	}
	s->num_users = 0;
	s->round = ROUND_STARTED;
	return 0;
}

/* --- consumers; with slot.lock held --- */

/*
 * A thread's own default stream has the same name in every thread, so the
 * thread is part of the key.
 */
static struct upload_user *find_user(struct upload_slot *s,
				     struct cuda_stream *stream)
{
	for (uint32_t i = 0; i < s->num_users; i++) {
		if (s->users[i].stream == stream &&
		    (stream != CUDA_STREAM_PER_THREAD ||
		     pthread_equal(s->users[i].thread, pthread_self())))
			return &s->users[i];
	}
	return NULL;
}

/* Ensures room for one more user, with its event. */
static int reserve_user(struct upload_slot *s)
{
	struct upload_user *users = s->users;
	uint32_t capacity = s->users_capacity;
	int r;

	if (s->num_users == capacity) {
		capacity = capacity ? 2 * capacity : 4;
		users = realloc(users, capacity * sizeof(*users));
		if (!users)
			return -ENOMEM;
		s->users = users;
		s->users_capacity = capacity;
	}
	if (s->num_users < s->num_events)
		return 0;
	r = cuda_event_create(s->upload->cuda, &users[s->num_events].released);
	s->num_events += !r;
	return r;
}

static void add_user(struct upload_slot *s, struct cuda_stream *stream)
{
	struct upload_user *u = &s->users[s->num_users++];

	u->stream = stream;
	u->thread = pthread_self();
}

/*
 * The default stream of another thread cannot be named. The legacy default
 * stream waits for all work on those streams.
 */
static struct cuda_stream *stream_of(const struct upload_user *u)
{
	if (u->stream == CUDA_STREAM_PER_THREAD &&
	    !pthread_equal(u->thread, pthread_self()))
		return CUDA_STREAM_LEGACY;
	return u->stream;
}

int upload_acquire(struct upload_slot *s, struct cuda_stream *stream)
{
	struct cuda *cuda = s->upload->cuda;
	int r = 0;

	stream = stream ? stream : CUDA_STREAM_LEGACY;
	scoped_lock(&s->lock);
	if (s->round != ROUND_STARTED || stream == UPLOAD_NO_STREAM)
		return -EINVAL;
	if (find_user(s, stream))
		return 0;
	r = reserve_user(s);
	if (!r)
		r = cuda_stream_wait_event(cuda, stream, s->ready);
	if (!r)
		add_user(s, stream);
	return r;
}

int upload_wait(struct upload_slot *s)
{
	if (s->round != ROUND_STARTED)
		return -EINVAL;
	return cuda_event_synchronize(s->upload->cuda, s->ready);
}

static int record_users(struct upload_slot *s)
{
	int r = 0;

	for (uint32_t i = 0; i < s->num_users && !r; i++)
		r = cuda_event_record(s->upload->cuda, s->users[i].released,
				      stream_of(&s->users[i]));
	return r;
}

int upload_release(struct upload_slot *s, struct cuda_stream *stream)
{
	uint32_t before;
	int r = 0;

	stream = stream ? stream : CUDA_STREAM_LEGACY;
	scoped_lock(&s->lock);
	if (s->round == ROUND_NONE)
		return -EINVAL;
	/* A slot that was not started has only the users of the last round,
	   whose events stay valid. */
	if (s->round == ROUND_WRITING) {
		s->round = ROUND_NONE;
		return 0;
	}
	before = s->num_users;
	if (stream != UPLOAD_NO_STREAM && !find_user(s, stream)) {
		r = reserve_user(s);
		if (!r)
			add_user(s, stream);
	}
	if (!r)
		r = record_users(s);
	if (!r || cuda_is_lost(s->upload->cuda))
		s->round = ROUND_NONE;
	else
		s->num_users = before;
	return r;
}

int upload_finish(struct upload_slot *s)
{
	int r;

	if (!upload_release(s, UPLOAD_NO_STREAM))
		return 0;
	r = cuda_synchronize(s->upload->cuda);
	if (!r || cuda_is_lost(s->upload->cuda))
		upload_release_done(s);
	return cuda_is_lost(s->upload->cuda) ? 0 : r;
}

void upload_release_done(struct upload_slot *s)
{
	scoped_lock(&s->lock);
	if (s->round == ROUND_STARTED)
		s->num_users = 0;
	s->round = ROUND_NONE;
}
