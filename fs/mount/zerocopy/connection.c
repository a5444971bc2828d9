/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/zerocopy/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <utlist.h>

#include "fs/base/memory/budget.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/data/engine/pool.h"
#include "fs/data/wire/zerocopy_message.h"
#include "fs/mount/zerocopy/holdings.h"
#include "fs/mount/zerocopy/request.h"

enum {
	/* Messages of one loader that are read before the turn of another. */
	MESSAGES_PER_TURN = 16,
	/*
	 * A job may hold this many times the bytes that no loader holds: a
	 * single job 3/4 of all, each of two jobs 3/7. A user may hold more, so
	 * that one job does not exclude another: a single user 7/8, each of two
	 * users 7/15.
	 */
	JOB_ALPHA = 3,
	USER_ALPHA = 7,
	/* Loaders may keep batches while all of them together hold at most
	   1/KEEP_PART of the bytes. The rest is for those that put theirs
	   soon. */
	KEEP_PART = 2,
	/* Bytes of the kernel's memory for answers that a loader has not read;
	   the kernel takes this twice. An answer needs 768, or more on other
	   machines, and each of ZEROCOPY_REQUESTS_MAX requests has one. */
	UNREAD_BYTES = 48 << 10,
	/* All connections take 1/BUDGET_PART of the budget. */
	BUDGET_PART = 8,
};

struct connection {
	struct zerocopy_shared *shared;
	struct connection *prev, *next;
	int fd;
	struct peer peer;
	int64_t since_ms; /* when it connected */
	bool greeted;
	char job_name[ZEROCOPY_JOB_SIZE]; /* set by HELLO, like the next four */
	uint32_t dataset; /* that it read last; 0: none, or the only one */
	struct job *job;
	uint32_t rank;
	uint32_t world_size;
	struct job_rank *reports_as;  /* set by the first REPORT */
	struct rank_figures reported; /* of the last REPORT */
	struct requests requests;
	struct holdings held;
};

/* The bytes of a connection, its requests, and their answers in the kernel. */
static const uint64_t connection_bytes =
	sizeof(struct connection) + 2 * UNREAD_BYTES +
	ZEROCOPY_REQUESTS_MAX * sizeof(struct zerocopy_request);

/* Bytes that connections of the same user or, if `job`, of the user's same job
   hold or have requested, apart from this request. Any user may choose any job
   name; this does not reduce the share of another user's job. */
static uint64_t held_by(const struct zerocopy_request *q, bool job)
{
	const struct connection *c = q->connection, *other;
	const struct zerocopy_request *pending;
	uint64_t bytes = 0;

	DL_FOREACH(c->shared->connections, other)
	{
		if (other->peer.uid != c->peer.uid ||
		    (job && other->job != c->job))
			continue;
		bytes += holdings_bytes(&other->held);
		DL_FOREACH(other->requests.list, pending)
		{
			bytes += pending->bytes;
		}
	}
	return bytes - q->bytes;
}

/* Returns whether the bytes of a request are within the shares of its job and
   of its user. */
static bool may_hold(const struct zerocopy_request *q, uint64_t bytes)
{
	const struct zerocopy_shared *h = q->shared;
	uint64_t all = h->bytes - q->bytes + bytes;
	uint64_t left = h->max_bytes - min_u64(h->max_bytes, all);

	return held_by(q, true) + bytes <= JOB_ALPHA * left &&
	       held_by(q, false) + bytes <= USER_ALPHA * left;
}

/* --- connections --- */

/* Makes the loader count as a reader of this dataset. */
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
	job_rank_close(c->job, &c->reports_as);
	job_disconnect(c->job);
	jobs_put(&c->job);
}

void connection_close(struct connection *c)
{
	struct zerocopy_shared *h = c->shared;

	/* Cancel the last request first, because most of the later ones have
	   not begun. */
	while (c->requests.list)
		request_give_up(c->requests.list->prev);
	holdings_abandon(&c->held);
	leave_job(c);
	/* Remove it from the event queue first: if a forked child has the
	   socket too, closing it would not end its events. */
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
	log_warning(
		c->shared->log,
		"zero-copy delivery: disconnected process %d of user %u: %s",
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
	const struct zerocopy_batch reply = {
		.kind = ZEROCOPY_BATCH,
		.result = r == -BETON_ECORRUPT ? -EIO : r,
		.request = request,
	};

	return send_message(c, &reply, sizeof(reply), -1);
}

static int reply_no_memory(const struct connection *c,
			   const struct zerocopy_request *q)
{
	int r = reply_error(c, q->number, -ENOSPC);

	return r ? r : -ENOSPC;
}

/* The slot of the request counts as held already. */
static bool may_keep(const struct zerocopy_request *q)
{
	const struct zerocopy_shared *h = q->shared;

	return h->bytes - q->bytes <= h->max_bytes / KEEP_PART;
}

/* Sends a slot to the loader, with its memory if the loader does not know it.
   If other loaders have used up the descriptors that may be in flight, the
   loader gets an error and reads the file; then returns -ENOSPC. */
static int send_slot(struct connection *c, const struct zerocopy_request *q)
{
	const struct zerocopy_batch reply = {
		.kind = ZEROCOPY_BATCH,
		.request = q->number,
		.slot = slot_id(q->slot),
		.size = q->batch->vfile.size,
		.capacity = slot_capacity(q->slot),
		.may_keep = may_keep(q),
	};
	bool is_new = !holdings_knows(&c->held, reply.slot);
	cleanup_fd int fd = -1;
	int r;

	if (is_new && slot_share(q->slot, c->peer.uid, &fd))
		return reply_no_memory(c, q);
	/* Count the batch before the loader can read the statistics. */
	job_add(q->job, JOBS_ZEROCOPY, 1, reply.size);
	job_waited(q->job, (uint64_t)(clock_ns() - q->asked_ns));
	if (q->is_stalled)
		job_stalled(q->job, JOBS_ZEROCOPY);
	r = send_message(c, &reply, sizeof(reply), fd);
	if (r) {
		job_add(q->job, JOBS_ZEROCOPY, (uint64_t)-1, -reply.size);
		return r == -EAGAIN || is_gone(r) ? r : reply_no_memory(c, q);
	}
	if (is_new)
		holdings_remember(&c->held, reply.slot);
	return 0;
}

static int reply_request(struct connection *c, struct zerocopy_request *q)
{
	int r = q->result;

	/* The slot may be larger than its request was counted for. */
	if (!r && !may_hold(q, slot_capacity(q->slot)))
		r = -ENOSPC;
	if (!r)
		r = holdings_count(&c->held, q->slot);
	if (r)
		return reply_error(c, q->number, r);
	r = send_slot(c, q);
	if (r) {
		holdings_uncount(&c->held, q->slot);
		return r == -ENOSPC ? 0 : r;
	}
	holdings_add(&c->held, steal(q->slot));
	return 0;
}

/* --- messages of a loader --- */

/* Looks up each name of a path with the permissions of the peer, like the
   kernel. Reads no dataset, because all loaders wait for this thread. */
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

static int request_open(struct connection *c, struct zerocopy_message *m,
			struct zerocopy_request **out)
{
	const struct batch_share share = { c->rank, c->world_size };
	struct ns_object object;
	struct stream *stream;
	struct zerocopy_request *q;
	uint64_t number;
	int r = resolve(c, m->path, &object);

	if (!r)
		r = ns_batch_stream(c->shared->ns, &object, &stream, &number);
	if (r)
		return r;
	q = request_new(c->shared, stream, number);
	if (!q)
		return -ENOMEM;
	if (object.dataset != c->dataset) {
		leave_job(c);
		join_job(c, object.dataset);
	}
	stream_set_user(stream, c->peer.uid);
	stream_set_share(stream, &share);
	q->connection = c;
	q->number = m->number;
	q->job = job_share(c->job);
	requests_add(&c->requests, q);
	*out = q;
	return 0;
}

/* Starts to collate a batch that is laid out. */
static int collate(struct zerocopy_request *q)
{
	uint64_t bytes = align_up(q->batch->vfile.size, POOL_ALIGN);

	return may_hold(q, bytes) ? request_collate(q, bytes) : -ENOSPC;
}

/* Threads of the engine compute layouts, which may read from a disk. */
static int begin(struct zerocopy_request *q)
{
	return request_is_laid_out(q) ? collate(q) : request_lay_out(q);
}

static const char *on_get(struct connection *c, struct zerocopy_message *m)
{
	struct zerocopy_request *q = NULL;
	int r;

	if (c->requests.n == ZEROCOPY_REQUESTS_MAX)
		return "too many requests";
	r = request_open(c, m, &q);
	if (!r)
		r = begin(q);
	if (!r)
		return NULL;
	if (q)
		request_free(q);
	return why_unsent(reply_error(c, m->number, r));
}

static const char *on_put(struct connection *c, uint64_t id)
{
	return holdings_put(&c->held, id)
		       ? "it releases a buffer that it does not hold"
		       : NULL;
}

static const char *on_cancel(struct connection *c, uint64_t number)
{
	struct zerocopy_request *q;

	DL_FOREACH(c->requests.list, q)
	{
		if (q->number != number)
			continue;
		request_give_up(q);
		break;
	}
	return NULL;
}

static const char *on_report(struct connection *c,
			     const struct rank_figures *figures)
{
	struct rank_figures since;

	if (!rank_figures_since(&c->reported, figures, &since))
		return "figures that decrease";
	c->reported = *figures;
	if (!c->reports_as)
		c->reports_as = job_rank_open(c->job, c->rank, c->world_size);
	job_report(c->job, c->reports_as, &since);
	return NULL;
}

static const char *on_hello(struct connection *c,
			    const struct zerocopy_message *m)
{
	const struct zerocopy_welcome welcome = { ZEROCOPY_WELCOME,
						  ZEROCOPY_VERSION };

	if (c->greeted)
		return "a second HELLO";
	c->greeted = true;
	c->shared->num_strangers--;
	strcpy(c->job_name, m->job);
	join_job(c, 0);
	c->rank = m->rank;
	c->world_size = m->world_size;
	return why_unsent(send_message(c, &welcome, sizeof(welcome), -1));
}

/* Returns the reason to close the connection, or NULL. */
static const char *on_message(struct connection *c, const void *bytes,
			      size_t size)
{
	struct zerocopy_message m;
	const char *why;

	if (zerocopy_parse(bytes, size, &m, &why))
		return why;
	if (m.kind == ZEROCOPY_HELLO)
		return on_hello(c, &m);
	if (!c->greeted)
		return "no HELLO";
	switch (m.kind) {
	case ZEROCOPY_GET:
		return on_get(c, &m);
	case ZEROCOPY_PUT:
		return on_put(c, m.number);
	case ZEROCOPY_CANCEL:
		return on_cancel(c, m.number);
	case ZEROCOPY_REPORT:
		return on_report(c, &m.figures);
	default:
		holdings_forget(&c->held, m.number);
		return NULL;
	}
}

/* Errors that another call follows. If a loader closes with unread messages, it
   resets the connection. The kernel reports this once, before the messages that
   the loader sent. */
static bool is_passing(int error)
{
	return error == EINTR || error == ECONNRESET;
}

/* recv() without room for descriptors makes the kernel close any that a loader
   sends. */
void connection_read(struct connection *c)
{
	uint8_t bytes[sizeof(struct zerocopy_get) + 1];
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
static int connection_new(struct zerocopy_shared *shared, int fd,
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

int connection_open(struct zerocopy_shared *shared, int fd,
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
	c->held = (struct holdings){ .bytes = &shared->bytes,
				     .budget = shared->budget,
				     .uid = peer->uid };
	c->since_ms = clock_coarse_ms();
	DL_APPEND(shared->connections, c);
	shared->num_connections++;
	shared->num_strangers++;
	return 0;
}

/* Returns whether a message of the peer waits for the daemon. */
static bool has_message(const struct connection *c)
{
	char byte;

	return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
	       errno != EAGAIN;
}

int connections_expire(struct zerocopy_shared *h)
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

unsigned connections_of(const struct zerocopy_shared *h, uid_t uid)
{
	const struct connection *c;
	unsigned n = 0;

	DL_FOREACH(h->connections, c)
	{
		n += c->peer.uid == uid;
	}
	return n;
}

uint64_t connections_most(const struct zerocopy_shared *h)
{
	struct budget_stats stats;

	budget_stats(h->budget, &stats);
	return stats.limit ? stats.limit / BUDGET_PART / connection_bytes
			   : UINT64_MAX;
}

/* A request whose layout or whose batch is done. */
static void request_continue(struct zerocopy_request *q)
{
	struct connection *c = q->connection;
	const char *why;
	int r;

	if (c && !q->result && !q->slot) {
		r = collate(q);
		/* Threads of the engine work on the request again. */
		if (!r)
			return;
		q->result = r;
	}
	why = c ? why_unsent(reply_request(c, q)) : NULL;
	request_free(q);
	if (why)
		cut_off(c, why);
}

void connections_answer(struct zerocopy_shared *h)
{
	struct zerocopy_request *q;
	eventfd_t ignored;

	if (eventfd_read(h->events, &ignored))
		return;
	while ((q = requests_next_done(h)))
		request_continue(q);
}
