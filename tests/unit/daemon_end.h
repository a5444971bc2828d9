/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's end of the zero-copy delivery without its thread: the test makes
 * each step, and its peers may be any user. The dataset is that of made.h.
 */
#ifndef TESTS_UNIT_DAEMON_END_H
#define TESTS_UNIT_DAEMON_END_H

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "fs/data/wire/zerocopy_message.h"
#include "fs/mount/zerocopy/connection.h"
#include "fs/mount/zerocopy/request.h"
#include "tests/unit/made.h"

enum { DAEMON_END_SAMPLES = 96 };

#define DAEMON_END_SPEC "order=random,batch=8,seed=0,drop_last=1"

struct daemon_end {
	struct zerocopy_shared shared;
	struct dataset *ds;
	struct engine *engine;
};

static inline void daemon_end_open(struct daemon_end *d,
				   const struct ns_owner *owner,
				   uint64_t max_bytes)
{
	struct epoll_event event = { .events = EPOLLIN };
	/* So that batches use the same memory again. */
	const struct engine_options engine = {
		.choice = { .mode = CACHE_PROCESS,
			    .cache_size = 2 * max_bytes },
	};
	struct ns_top top = { .name = "", .owner = *owner, .options = "" };

	d->ds = made_open(DAEMON_END_SAMPLES, NULL);
	top.dataset = d->ds;
	CHECK(!engine_open(&engine, &d->engine));
	CHECK(!engine_start(d->engine));
	d->shared = (struct zerocopy_shared){
		.events = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.epoll = epoll_create1(EPOLL_CLOEXEC),
		.max_bytes = max_bytes,
		.hello_ms = 2000,
	};
	CHECK(!epoll_ctl(d->shared.epoll, EPOLL_CTL_ADD, d->shared.events,
			 &event));
	pthread_mutex_init(&d->shared.lock, NULL);
	CHECK(!ns_open(&(struct ns_options){ .tops = &top,
					     .num_tops = 1,
					     .engine = d->engine,
					     .default_spec = DAEMON_END_SPEC },
		       &d->shared.ns));
}

static inline void daemon_end_close(struct daemon_end *d)
{
	while (d->shared.connections)
		connection_close(d->shared.connections);
	requests_wait(&d->shared);
	CHECK(!d->shared.bytes && !d->shared.num_connections);
	engine_stop(d->engine);
	ns_close(d->shared.ns);
	engine_close(d->engine);
	dataset_close(d->ds);
	close(d->shared.events);
	close(d->shared.epoll);
	pthread_mutex_destroy(&d->shared.lock);
}

/* Returns the peer's socket. */
static inline int daemon_end_connect(struct daemon_end *d, uid_t uid)
{
	const struct peer peer = { .pid = 1, .uid = uid, .gid = uid };
	int ends[2];

	CHECK(!socketpair(AF_UNIX,
			  SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
			  ends));
	CHECK(!connection_open(&d->shared, ends[0], &peer));
	return ends[1];
}

/* Handles what arrives within a time. False: nothing arrived. */
static inline bool daemon_end_step(struct daemon_end *d, int ms)
{
	struct epoll_event event;

	connections_expire(&d->shared);
	if (epoll_wait(d->shared.epoll, &event, 1, ms) != 1)
		return false;
	if (event.data.ptr)
		connection_read(event.data.ptr);
	else
		connections_answer(&d->shared);
	return true;
}

/* Receives a message that the daemon sends next; *fd, unless NULL, is the
   descriptor that came with it, or -1. */
static inline void daemon_end_receive(struct daemon_end *d, int from,
				      void *bytes, size_t size, int *fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { bytes, size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;
	ssize_t n;

	if (fd) {
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		*fd = -1;
	}
	while ((n = recvmsg(from, &m, MSG_CMSG_CLOEXEC)) < 0) {
		CHECK(errno == EAGAIN);
		CHECK(daemon_end_step(d, 10000));
	}
	CHECK((size_t)n == size);
	c = fd ? CMSG_FIRSTHDR(&m) : NULL;
	if (c)
		memcpy(fd, CMSG_DATA(c), sizeof(int));
}

static inline void daemon_end_hello(struct daemon_end *d, int fd)
{
	const struct zerocopy_hello message = { .kind = ZEROCOPY_HELLO,
						.version = ZEROCOPY_VERSION,
						.magic = ZEROCOPY_MAGIC };
	struct zerocopy_welcome welcome;

	CHECK(send(fd, &message, sizeof(message), 0) == sizeof(message));
	daemon_end_receive(d, fd, &welcome, sizeof(welcome), NULL);
}

static inline struct zerocopy_batch daemon_end_get(struct daemon_end *d, int fd,
						   uint64_t number, int *memory)
{
	struct zerocopy_batch answer;
	struct zerocopy_get g;
	char path[128];
	int n;

	snprintf(path, sizeof(path),
		 "batches/" DAEMON_END_SPEC "/0/%06llu.batch",
		 (unsigned long long)number);
	n = zerocopy_make_get(&g, number, path);
	CHECK(send(fd, &g, (size_t)n, 0) == n);
	daemon_end_receive(d, fd, &answer, sizeof(answer), memory);
	CHECK(answer.kind == ZEROCOPY_BATCH && answer.request == number);
	return answer;
}

#endif
