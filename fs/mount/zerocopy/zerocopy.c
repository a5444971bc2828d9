/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/zerocopy/zerocopy.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/thread.h"
#include "fs/mount/zerocopy/connection.h"
#include "fs/mount/zerocopy/request.h"

enum {
	BACKLOG = 64,
	HELLO_MS = 2000,
	/* Connections that every user may have while any is free. */
	USER_MIN = 4,
	/* Milliseconds until the next try to accept if descriptors are used
	   up. */
	RETRY_MS = 100,
};

struct zerocopy {
	struct zerocopy_shared shared;
	enum zerocopy_allow allow;
	char name[ZEROCOPY_NAME_SIZE];
	int listener;
	pthread_t thread;
	bool has_thread;
	bool refused;  /* a refusal was logged; for the thread alone */
	bool retries;  /* loaders wait to be accepted; for the thread alone */
	bool stopping; /* guarded by shared.lock */
};

/* --- loaders that connect --- */

static bool is_welcome(struct zerocopy *h, const struct peer *peer)
{
	const struct ns_object root = ns_object(NS_ROOT);
	struct stat st;

	ns_stat_object(h->shared.ns, &root, &st);
	return peer_is_trusted(peer) ||
	       (h->allow == ZEROCOPY_ALLOW_OTHER && peer_may(peer, &st, 1));
}

/* Returns whether a connection is free that is not reserved for other users. */
static bool is_there_place(const struct zerocopy *h, uid_t uid)
{
	const struct zerocopy_shared *s = &h->shared;
	uint64_t most = min_u64(ZEROCOPY_CONNECTIONS_MAX, connections_most(s));
	uint64_t left = most - min_u64(most, s->num_connections);

	return left && connections_of(s, uid) < max_u64(left, USER_MIN);
}

/* Owns the socket if it succeeds. */
static int let_in(struct zerocopy *h, int fd)
{
	struct peer peer = { .uid = (uid_t)-1 };
	int r = peer_of(fd, &peer);

	if (!r && !is_welcome(h, &peer))
		r = -EACCES;
	if (!r && !is_there_place(h, peer.uid))
		r = -EUSERS;
	if (!r)
		r = connection_open(&h->shared, fd, &peer);
	if (!r)
		return 0;
	if (!h->refused)
		log_warning(h->shared.log,
			    "zero-copy delivery: refused user %d: %s",
			    (int)peer.uid, strerror(-r));
	h->refused = true;
	return r;
}

static void on_connect(struct zerocopy *h)
{
	int fd;

	h->retries = false;
	for (;;) {
		fd = accept4(h->listener, NULL, NULL,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		/* Descriptors or memory are used up. Try again later, because
		   the edge-triggered listener reports only a further loader. */
		h->retries = fd < 0 && errno != EAGAIN;
		if (fd < 0)
			return;
		if (let_in(h, fd))
			close(fd);
	}
}

/* --- the thread --- */

static bool is_stopping(struct zerocopy *h)
{
	scoped_lock(&h->shared.lock);
	return h->stopping;
}

/* Waits for an event or for the next timeout, and handles timeouts. Returns
   whether there is an event. Takes one event at a time, because handling it may
   close the connection of the following one. */
static bool next_event(struct zerocopy *h, struct epoll_event *event)
{
	int ms = connections_expire(&h->shared), n;

	if (h->retries && (ms < 0 || ms > RETRY_MS))
		ms = RETRY_MS;
	n = epoll_wait(h->shared.epoll, event, 1, ms);
	if (!n && h->retries)
		on_connect(h);
	return n == 1;
}

static void *serve_events(void *arg)
{
	struct zerocopy *h = arg;
	struct epoll_event event;

	while (!is_stopping(h)) {
		if (!next_event(h, &event))
			continue;
		if (event.data.ptr == &h->listener)
			on_connect(h);
		else if (event.data.ptr == &h->shared.events)
			connections_answer(&h->shared);
		else
			connection_read(event.data.ptr);
	}
	return NULL;
}

/* --- interface --- */

/* Binds an abstract address with a random part, so that no other process can
   bind it first. */
static int bind_name(struct zerocopy *h)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	uint64_t number;
	int n;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	n = snprintf(h->name, sizeof(h->name), "betonfs-%d-%016llx",
		     (int)getpid(), (unsigned long long)number);
	memcpy(address.sun_path + 1, h->name, (size_t)n);
	if (bind(h->listener, (const struct sockaddr *)&address,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			     (size_t)n)) ||
	    listen(h->listener, BACKLOG))
		return -errno;
	return 0;
}

static int watch(struct zerocopy *h, int *fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = fd };

	return epoll_ctl(h->shared.epoll, EPOLL_CTL_ADD, *fd, &event) ? -errno
								      : 0;
}

static int open_descriptors(struct zerocopy *h)
{
	int r;

	h->listener = socket(AF_UNIX,
			     SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	h->shared.events = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h->shared.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (h->listener < 0 || h->shared.events < 0 || h->shared.epoll < 0)
		return -errno;
	r = bind_name(h);
	if (!r)
		r = watch(h, &h->shared.events, EPOLLIN);
	return r ? r : watch(h, &h->listener, EPOLLIN | EPOLLET);
}

int zerocopy_open(const struct zerocopy_options *options, struct zerocopy **out)
{
	struct zerocopy *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	h->shared.log = options->log;
	h->shared.max_bytes = options->max_bytes;
	h->shared.budget = options->budget;
	h->shared.jobs = options->jobs;
	h->shared.hello_ms = options->hello_ms ? options->hello_ms : HELLO_MS;
	h->allow = options->allow;
	h->listener = h->shared.events = h->shared.epoll = -1;
	pthread_mutex_init(&h->shared.lock, NULL);
	r = open_descriptors(h);
	if (r)
		zerocopy_close(h);
	else
		*out = h;
	return r;
}

const char *zerocopy_name(const struct zerocopy *h)
{
	return h->name;
}

int zerocopy_serve(struct zerocopy *h, struct ns *ns)
{
	int r;

	h->shared.ns = ns;
	r = thread_start(&h->thread, serve_events, h);
	h->has_thread = !r;
	return r;
}

static void stop_thread(struct zerocopy *h)
{
	if (!h->has_thread)
		return;
	pthread_mutex_lock(&h->shared.lock);
	h->stopping = true;
	pthread_mutex_unlock(&h->shared.lock);
	zerocopy_wake(&h->shared);
	pthread_join(h->thread, NULL);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void zerocopy_close(struct zerocopy *h)
{
	if (!h)
		return;
	stop_thread(h);
	while (h->shared.connections)
		connection_close(h->shared.connections);
	requests_wait(&h->shared);
	close_fd(h->listener);
	close_fd(h->shared.events);
	close_fd(h->shared.epoll);
	pthread_mutex_destroy(&h->shared.lock);
	free(h);
}
