/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/handover/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <utlist.h>

#include "fs/engine/handover_message.h"
#include "fs/engine/pool.h"
#include "fs/memory/budget.h"
#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"
#include "fs/util/clock.h"

enum {
	/* Messages read from one loader before another's turn. */
	MESSAGES_PER_TURN = 16,
	/* Slots whose descriptors a loader keeps; older ones are sent
	   again. */
	KNOWN_MAX = 64,
	/*
	 * A job may hold this many times the bytes that are left to hold: alone
	 * 3/4, one of two 3/7. A user may hold more, so that its jobs do not
	 * shut each other out: 7/8, and 7/15 beside another user.
	 */
	JOB_ALPHA = 3,
	USER_ALPHA = 7,
	/* Bytes of the kernel's memory for answers that a loader has not read;
	   the kernel takes this twice. An answer needs 768, or more on other
	   machines, and each of HANDOVER_REQUESTS_MAX requests has one. */
	UNREAD_BYTES = 48 << 10,
};

/* A GET without an answer yet. */
struct request {
	/* In connection.requests or, if connection is NULL, in
	   shared->given_up. */
	struct request *prev, *next;
	struct connection *connection;
	struct handover_shared *shared;
	uint64_t number;
	struct stream *stream; /* owned */
	uint64_t at;	       /* number of the batch in the stream */
	struct batch *batch;   /* NULL until it is laid out */
	struct ticket *ticket; /* of the layout, then of the batch */
	struct job *job;
	uint64_t bytes; /* counted in shared->bytes */
	int64_t asked_ns;
	bool is_late; /* the batch was not ready at the GET */
	/* Guarded by handover.lock until the thread has taken them. */
	struct request *prev_done, *next_done; /* in handover.done */
	bool is_done;
	int result;
	struct slot *slot; /* NULL and no error: the layout is made */
};

struct connection {
	struct handover_shared *shared;
	struct connection *prev, *next;
	int fd;
	struct peer peer;
	int64_t since_ms; /* when it connected */
	bool greeted;
	char job_name[HANDOVER_JOB_SIZE]; /* set by HELLO, like the next four */
	uint32_t dataset; /* that it read last; 0: none, or the only one */
	struct job *job;
	uint32_t rank;
	uint32_t world;
	struct job_rank *told_as; /* set by the first TELL */
	struct rank_figures told; /* the last TELL */
	struct request *requests; /* in the order of the GETs */
	unsigned num_requests;
	struct slot *held[HANDOVER_SLOTS_MAX];
	unsigned num_held;
	uint64_t known[KNOWN_MAX]; /* ids, 0: none */
	unsigned oldest_known;
};

/* With its requests, and their answers in the kernel. */
static const uint64_t connection_bytes =
	sizeof(struct connection) + 2 * UNREAD_BYTES +
	HANDOVER_REQUESTS_MAX * sizeof(struct request);

void handover_wake(const struct handover_shared *h)
{
	/* The counter cannot overflow. */
	if (eventfd_write(h->events, 1))
		return;
}

/* --- slots that a loader holds --- */

static void uncount_held(const struct connection *c, const struct slot *slot)
{
	c->shared->bytes -= slot_capacity(slot);
	budget_unpin(c->shared->budget, BUDGET_PIN_BATCHES, c->peer.uid,
		     slot_capacity(slot));
}

/* Bytes that connections of the same job or, if `user`, of the same user hold
   or have requested, apart from this request. */
static uint64_t held_by(const struct request *q, bool user)
{
	const struct connection *c = q->connection, *other;
	const struct request *pending;
	uint64_t bytes = 0;

	DL_FOREACH(c->shared->connections, other)
	{
		if (user ? other->peer.uid != c->peer.uid
			 : other->job != c->job)
			continue;
		for (unsigned i = 0; i < other->num_held; i++)
			bytes += slot_capacity(other->held[i]);
		DL_FOREACH(other->requests, pending)
		{
			bytes += pending->bytes;
		}
	}
	return bytes - q->bytes;
}

/* Whether so many bytes for a request are within the shares of its job and of
   its user. */
static bool may_hold(const struct request *q, uint64_t bytes)
{
	const struct handover_shared *h = q->shared;
	uint64_t all = h->bytes - q->bytes + bytes;
	uint64_t left = h->max_bytes - min_u64(h->max_bytes, all);

	return held_by(q, false) + bytes <= JOB_ALPHA * left &&
	       held_by(q, true) + bytes <= USER_ALPHA * left;
}

/* Counts a slot that the loader is about to hold. It may be larger than its
   request was counted for. -ENOSPC: more than the loader may hold. */
static int count_held(const struct connection *c, const struct request *q)
{
	struct handover_shared *h = c->shared;
	uint64_t bytes = slot_capacity(q->slot);

	if (c->num_held == HANDOVER_SLOTS_MAX || !may_hold(q, bytes) ||
	    budget_pin(h->budget, BUDGET_PIN_BATCHES, c->peer.uid, bytes,
		       false))
		return -ENOSPC;
	h->bytes += bytes;
	return 0;
}

/* Releases a slot that the loader no longer uses. */
static void put_held(struct connection *c, unsigned i)
{
	uncount_held(c, c->held[i]);
	slot_put(&c->held[i]);
	c->held[i] = c->held[--c->num_held];
}

/* Abandons the slots of a closed connection: the process may still read them.
 */
static void abandon_held(struct connection *c)
{
	while (c->num_held) {
		uncount_held(c, c->held[--c->num_held]);
		slot_abandon(&c->held[c->num_held]);
	}
}

static bool knows_slot(const struct connection *c, uint64_t id)
{
	for (size_t i = 0; i < KNOWN_MAX; i++) {
		if (c->known[i] == id)
			return true;
	}
	return false;
}

static void remember_slot(struct connection *c, uint64_t id)
{
	c->known[c->oldest_known] = id;
	c->oldest_known = (c->oldest_known + 1) % KNOWN_MAX;
}

static void forget_slot(struct connection *c, uint64_t id)
{
	for (size_t i = 0; i < KNOWN_MAX; i++) {
		if (c->known[i] == id)
			c->known[i] = 0;
	}
}

/* --- requests --- */

/* Threads of the engine call it. */
static void request_done(struct request *q, int result)
{
	struct handover_shared *h = q->shared;

	pthread_mutex_lock(&h->lock);
	q->is_done = true;
	q->result = result;
	DL_APPEND2(h->done, q, prev_done, next_done);
	/* With the lock held: without it the request, and what it points to,
	   may be freed. */
	handover_wake(h);
	pthread_mutex_unlock(&h->lock);
}

static void request_laid_out(void *arg, int result, struct batch *batch)
{
	struct request *q = arg;

	q->batch = batch;
	request_done(q, result);
}

static void request_collated(void *arg, int result, struct slot *slot)
{
	struct request *q = arg;

	q->slot = slot;
	request_done(q, result);
}

/* Removes a request from its list. */
static void request_unlink(struct request *q)
{
	struct connection *c = q->connection;

	if (c) {
		DL_DELETE(c->requests, q);
		c->num_requests--;
		q->connection = NULL;
	} else {
		DL_DELETE(q->shared->given_up, q);
	}
}

/* Releases a request whose ticket is closed, and its result. */
static void request_release(struct request *q)
{
	struct handover_shared *h = q->shared;

	pthread_mutex_lock(&h->lock);
	if (q->is_done)
		DL_DELETE2(h->done, q, prev_done, next_done);
	pthread_mutex_unlock(&h->lock);
	slot_put(&q->slot);
	jobs_put(&q->job);
	batch_put(&q->batch);
	stream_close(q->stream);
	h->bytes -= q->bytes;
	request_unlink(q);
	free(q);
}

/* Cancels a request. */
static void request_free(struct request *q)
{
	ticket_close(&q->ticket);
	request_release(q);
}

/* Cancels a request without a wait for the thread that works on it: that thread
   may wait for a disk, and other loaders would wait too. */
static void request_give_up(struct request *q)
{
	if (ticket_try_close(&q->ticket)) {
		request_release(q);
		return;
	}
	request_unlink(q);
	DL_APPEND(q->shared->given_up, q);
}

void connections_wait(struct handover_shared *h)
{
	while (h->given_up)
		request_free(h->given_up);
}

/* --- connections --- */

/* From now on the loader counts as a reader of this dataset. */
static void join_job(struct connection *c, uint32_t dataset)
{
	struct jobs *jobs = c->shared->jobs;

	c->dataset = dataset;
	c->job = *c->job_name ? jobs_get(jobs, dataset, c->job_name)
			      : jobs_get_session(jobs, dataset, c->peer.pid);
	job_connect(c->job);
}

static void leave_job(struct connection *c)
{
	job_rank_close(c->job, &c->told_as);
	job_disconnect(c->job);
	jobs_put(&c->job);
}

void connection_close(struct connection *c)
{
	struct handover_shared *h = c->shared;

	/* The last first: most of them have not begun and are canceled at
	   once. */
	while (c->requests)
		request_give_up(c->requests->prev);
	abandon_held(c);
	leave_job(c);
	/* Closing alone would not end its events if a child that was forked has
	   the socket too. */
	epoll_ctl(h->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	close(c->fd);
	DL_DELETE(h->connections, c);
	h->num_connections--;
	h->num_strangers -= !c->greeted;
	free(c);
	budget_give(h->budget, BUDGET_CONNECTIONS, connection_bytes);
}

static void cut_off(struct connection *c, const char *why)
{
	log_warning(c->shared->log,
		    "hand-over: process %d of user %u is cut off: %s",
		    (int)c->peer.pid, (unsigned)c->peer.uid, why);
	connection_close(c);
}

/* Sends a descriptor too unless it is -1. Never blocks: -EAGAIN means that the
   loader does not read its messages. */
static int send_message(const struct connection *c, const void *bytes,
			size_t size, int fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec iov = { (void *)bytes, size };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(int));
	}
	return sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0
		       ? -errno
		       : 0;
}

static bool is_gone(int r)
{
	return r == -EPIPE || r == -ECONNRESET;
}

/* The reason to close a connection after a message to it failed, or NULL. The
   socket itself reports a loader that has gone. */
static const char *why_unsent(int r)
{
	if (!r || is_gone(r))
		return NULL;
	return r == -EAGAIN ? "it does not listen" : "it cannot be answered";
}

static int reply_error(const struct connection *c, uint64_t request, int r)
{
	const struct handover_batch reply = {
		.kind = HANDOVER_BATCH,
		.result = r == -BETON_ECORRUPT ? -EIO : r,
		.request = request,
	};

	return send_message(c, &reply, sizeof(reply), -1);
}

static int reply_no_memory(const struct connection *c, const struct request *q)
{
	int r = reply_error(c, q->number, -ENOSPC);

	return r ? r : -ENOSPC;
}

/* Sends a slot to the loader, with its memory if the loader does not know it.
   Other loaders can use up the descriptors that may be in flight; this loader
   then reads the file. -ENOSPC: the loader was told so. */
static int send_slot(struct connection *c, const struct request *q)
{
	const struct handover_batch reply = {
		.kind = HANDOVER_BATCH,
		.request = q->number,
		.slot = slot_id(q->slot),
		.size = q->batch->vfile.size,
		.capacity = slot_capacity(q->slot),
	};
	bool is_new = !knows_slot(c, reply.slot);
	cleanup_fd int fd = -1;
	int r;

	if (is_new && slot_lend(q->slot, c->peer.uid, &fd))
		return reply_no_memory(c, q);
	/* Counted before the loader can read the statistics. */
	job_add(q->job, JOBS_HANDOVER, 1, reply.size);
	job_waited(q->job, (uint64_t)(clock_ns() - q->asked_ns));
	if (q->is_late)
		job_late(q->job, JOBS_HANDOVER);
	r = send_message(c, &reply, sizeof(reply), fd);
	if (r) {
		job_add(q->job, JOBS_HANDOVER, (uint64_t)-1, -reply.size);
		return r == -EAGAIN || is_gone(r) ? r : reply_no_memory(c, q);
	}
	if (is_new)
		remember_slot(c, reply.slot);
	return 0;
}

static int reply_request(struct connection *c, struct request *q)
{
	int r = q->result;

	if (!r)
		r = count_held(c, q);
	if (r)
		return reply_error(c, q->number, r);
	r = send_slot(c, q);
	if (r) {
		uncount_held(c, q->slot);
		return r == -ENOSPC ? 0 : r;
	}
	c->held[c->num_held++] = steal(q->slot);
	return 0;
}

/* --- messages of a loader --- */

/* Looks up each name of a path with the permissions of the peer, as the kernel
   would. Reads no dataset: all loaders wait for this thread. */
static int resolve(const struct connection *c, char *path,
		   struct ns_object *out)
{
	struct ns *ns = c->shared->ns;
	struct ns_object dir;
	struct stat st;
	char *name;
	int r = 0;

	*out = ns_object(NS_ROOT);
	while (!r && (name = strsep(&path, "/"))) {
		dir = *out;
		ns_stat_object(ns, &dir, &st);
		if (!peer_may(&c->peer, &st, 1))
			return -EACCES;
		r = ns_batch_lookup(ns, &dir, name, c->peer.uid, out);
	}
	if (r)
		return r;
	ns_stat_object(ns, out, &st);
	return peer_may(&c->peer, &st, 4) ? 0 : -EACCES;
}

static int request_open(struct connection *c, struct handover_message *m,
			struct request **out)
{
	struct ns_object object;
	struct stream *stream;
	struct request *q;
	uint64_t number;
	int r = resolve(c, m->path, &object);

	if (!r)
		r = ns_batch_stream(c->shared->ns, &object, &stream, &number);
	if (r)
		return r;
	q = calloc(1, sizeof(*q));
	if (!q) {
		stream_close(stream);
		return -ENOMEM;
	}
	if (object.dataset != c->dataset) {
		leave_job(c);
		join_job(c, object.dataset);
	}
	q->connection = c;
	q->shared = c->shared;
	q->number = m->number;
	q->stream = stream;
	stream_set_user(stream, c->peer.uid);
	q->job = job_share(c->job);
	q->at = number;
	q->asked_ns = clock_ns();
	DL_APPEND(c->requests, q);
	c->num_requests++;
	*out = q;
	return 0;
}

/* Starts to collate a batch that is laid out. */
static int request_collate(struct request *q)
{
	struct handover_shared *h = q->shared;
	uint64_t bytes = align_up(q->batch->vfile.size, POOL_ALIGN);

	if (!may_hold(q, bytes))
		return -ENOSPC;
	q->bytes = bytes;
	h->bytes += bytes;
	q->is_late = !stream_ready(q->stream, q->batch);
	/* A loader that is refused opens the file instead. It counts as one
	   reader. */
	stream_note(q->stream, q->at);
	ticket_close(&q->ticket);
	return stream_submit(q->stream, q->batch, &(struct dest){ NULL, 0 },
			     request_collated, q, &q->ticket);
}

/* Threads of the engine make layouts, which may need a disk. */
static int request_begin(struct request *q)
{
	if (stream_kept(q->stream, q->at, &q->batch))
		return request_collate(q);
	return stream_lay_out(q->stream, q->at, request_laid_out, q,
			      &q->ticket);
}

static const char *on_get(struct connection *c, struct handover_message *m)
{
	struct request *q = NULL;
	int r;

	if (c->num_requests == HANDOVER_REQUESTS_MAX)
		return "too many requests";
	r = request_open(c, m, &q);
	if (!r)
		r = request_begin(q);
	if (!r)
		return NULL;
	if (q)
		request_free(q);
	return why_unsent(reply_error(c, m->number, r));
}

static const char *on_put(struct connection *c, uint64_t id)
{
	for (unsigned i = 0; i < c->num_held; i++) {
		if (slot_id(c->held[i]) != id)
			continue;
		put_held(c, i);
		return NULL;
	}
	return "it gives back what it does not have";
}

static const char *on_cancel(struct connection *c, uint64_t number)
{
	struct request *q;

	DL_FOREACH(c->requests, q)
	{
		if (q->number != number)
			continue;
		request_give_up(q);
		break;
	}
	return NULL;
}

static const char *on_tell(struct connection *c,
			   const struct rank_figures *figures)
{
	struct rank_figures since;

	if (!rank_figures_since(&c->told, figures, &since))
		return "figures that fall";
	c->told = *figures;
	if (!c->told_as)
		c->told_as = job_rank_open(c->job, c->rank, c->world);
	job_tell(c->job, c->told_as, &since);
	return NULL;
}

static const char *on_hello(struct connection *c,
			    const struct handover_message *m)
{
	const struct handover_welcome welcome = { HANDOVER_WELCOME,
						  HANDOVER_VERSION };

	if (c->greeted)
		return "a second HELLO";
	c->greeted = true;
	c->shared->num_strangers--;
	strcpy(c->job_name, m->job);
	join_job(c, 0);
	c->rank = m->rank;
	c->world = m->world;
	return why_unsent(send_message(c, &welcome, sizeof(welcome), -1));
}

/* Returns the reason to close the connection, or NULL. */
static const char *on_message(struct connection *c, const void *bytes,
			      size_t size)
{
	struct handover_message m;
	const char *why;

	if (handover_parse(bytes, size, &m, &why))
		return why;
	if (m.kind == HANDOVER_HELLO)
		return on_hello(c, &m);
	if (!c->greeted)
		return "no HELLO";
	switch (m.kind) {
	case HANDOVER_GET:
		return on_get(c, &m);
	case HANDOVER_PUT:
		return on_put(c, m.number);
	case HANDOVER_CANCEL:
		return on_cancel(c, m.number);
	case HANDOVER_TELL:
		return on_tell(c, &m.figures);
	default:
		forget_slot(c, m.number);
		return NULL;
	}
}

/* Errors that another call follows. A loader that closes with unread messages
   resets the connection, which the kernel reports once, before what it sent. */
static bool is_passing(int error)
{
	return error == EINTR || error == ECONNRESET;
}

/* recv() without room for descriptors makes the kernel close any that a loader
   sends. */
void connection_read(struct connection *c)
{
	uint8_t bytes[sizeof(struct handover_get) + 1];
	const char *why;
	ssize_t n;

	for (int i = 0; i < MESSAGES_PER_TURN; i++) {
		n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n < 0 && is_passing(errno))
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			connection_close(c);
			return;
		}
		why = on_message(c, bytes, (size_t)n);
		if (why) {
			cut_off(c, why);
			return;
		}
	}
}

/* --- interface --- */

/* Allocates a connection, within the budget, and lets its messages wake the
   thread. */
static int connection_new(struct handover_shared *shared, int fd,
			  struct connection **out)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct connection *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	event.data.ptr = c;
	if (epoll_ctl(shared->epoll, EPOLL_CTL_ADD, fd, &event)) {
		free(c);
		return -ENOMEM;
	}
	*out = c;
	return 0;
}

int connection_open(struct handover_shared *shared, int fd,
		    const struct peer *peer)
{
	const int unread = UNREAD_BYTES;
	struct connection *c;
	int r = budget_take(shared->budget, BUDGET_CONNECTIONS,
			    connection_bytes, 0);

	if (r)
		return r;
	r = connection_new(shared, fd, &c);
	if (r) {
		budget_give(shared->budget, BUDGET_CONNECTIONS,
			    connection_bytes);
		return r;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &unread, sizeof(unread));
	c->shared = shared;
	c->fd = fd;
	c->peer = *peer;
	c->since_ms = clock_coarse_ms();
	DL_APPEND(shared->connections, c);
	shared->num_connections++;
	shared->num_strangers++;
	return 0;
}

/* Whether the daemon, and not the peer, is late. */
static bool has_message(const struct connection *c)
{
	char byte;

	return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
	       errno != EAGAIN;
}

int connections_expire(struct handover_shared *h)
{
	struct connection *c, *next;
	int64_t now = clock_coarse_ms(), left;

	if (!h->num_strangers)
		return -1;
	/* The list is in the order in which they connected. */
	DL_FOREACH_SAFE(h->connections, c, next)
	{
		left = c->since_ms + h->hello_ms - now;
		if (!c->greeted && left > 0)
			return (int)left + 1;
		if (!c->greeted && !has_message(c))
			cut_off(c, "no HELLO");
	}
	return -1;
}

unsigned connections_of(const struct handover_shared *h, uid_t uid)
{
	const struct connection *c;
	unsigned n = 0;

	DL_FOREACH(h->connections, c)
	{
		n += c->peer.uid == uid;
	}
	return n;
}

static struct request *next_done(struct handover_shared *h)
{
	struct request *q;

	scoped_lock(&h->lock);
	q = h->done;
	if (q) {
		DL_DELETE2(h->done, q, prev_done, next_done);
		q->is_done = false;
	}
	return q;
}

/* A request whose layout or whose batch is done. */
static void request_continue(struct request *q)
{
	struct connection *c = q->connection;
	const char *why;
	int r;

	if (c && !q->result && !q->slot) {
		r = request_collate(q);
		/* Threads of the engine have it again. */
		if (!r)
			return;
		q->result = r;
	}
	why = c ? why_unsent(reply_request(c, q)) : NULL;
	request_free(q);
	if (why)
		cut_off(c, why);
}

void connections_answer(struct handover_shared *h)
{
	struct request *q;
	eventfd_t ignored;

	if (eventfd_read(h->events, &ignored))
		return;
	while ((q = next_done(h)))
		request_continue(q);
}
