/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server of one object that misbehaves by a script, in threads of the
 * test. The script chooses a fault by the number of the request.
 */
#ifndef TESTS_UNIT_SERVER_H
#define TESTS_UNIT_SERVER_H

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/t.h"

enum fault {
	FAULT_NONE,
	FAULT_RESET,	   /* instead of an answer */
	FAULT_RESET_MID,   /* after half of the body */
	FAULT_TRUNCATE,	   /* a short body, then the end */
	FAULT_WRONG_RANGE, /* other bytes than requested */
	FAULT_SHORT,	   /* a correct answer with fewer bytes */
	FAULT_STALL,	   /* no answer */
	FAULT_STALL_MID,   /* half of the body, then nothing */
	FAULT_SLOW,	   /* a correct answer after 300 ms */
	FAULT_STATUS,	   /* server.status, without bytes */
	FAULT_REPLACED,	   /* another ETag and other bytes */
	FAULT_RESIZED,	   /* the same ETag, another size */
	FAULT_NO_ETAG,
	FAULT_NO_RANGE, /* status 206 without Content-Range */
	FAULT_SLOWER,	/* a correct answer after 1.5 s */
	FAULT_OK_RANGE, /* status 200 with Content-Range */
	FAULT_WHOLE,	/* status 200 and the whole object */
	FAULT_MULTIPART,
	FAULT_GZIP,
	FAULT_REDIRECT, /* to server.location */
	FAULT_GARBAGE,	/* no HTTP */
	FAULT_ONE_BYTE, /* a correct answer with one byte */
	FAULT_EXCESS,	/* twice the bytes of Content-Range, without a length */
	FAULT_TWO_LENGTHS,
	FAULT_HUGE, /* 2^63 bytes in all */
};

struct server {
	/* Set by the test. */
	uint64_t size;
	const char *etag; /* with quotes; NULL: none */
	bool is_honest;	  /* answers 412 if If-Match differs */
	atomic_int status;
	const char *location;
	const char *extra; /* a header line with \r\n */
	enum fault (*script)(struct server *server, unsigned index,
			     uint64_t first);
	/* Results. */
	atomic_uint requests;
	atomic_uint connections;
	atomic_uint_fast64_t bytes;
	atomic_uint with_secret; /* requests with "X-Secret:" */
	atomic_uint faults;
	char last[4096]; /* the last request; guarded by lock */
	/* Its own. */
	int fd;
	int port;
	atomic_bool stopping;
	pthread_mutex_t lock;
	pthread_t accepting;
	pthread_t threads[1024];
	int fds[1024];
	unsigned num_threads;
	char url[64];
};

static inline uint8_t server_byte(uint64_t at)
{
	return (uint8_t)((at * 0x9e3779b97f4a7c15u) >> 56);
}

static inline void server_pause(struct server *s, int ms)
{
	for (int i = 0; i < ms && !atomic_load(&s->stopping); i += 5)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
}

static inline bool server_send(struct server *s, int fd, const void *data,
			       size_t size)
{
	const char *at = data;
	ssize_t n;

	for (; size; at += n, size -= (size_t)n) {
		n = send(fd, at, size, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		atomic_fetch_add(&s->bytes, (uint64_t)n);
	}
	return true;
}

static inline bool server_send_bytes(struct server *s, int fd, uint64_t first,
				     uint64_t size, uint8_t flip)
{
	uint8_t buf[16384];
	size_t n;

	for (; size; first += n, size -= n) {
		n = size < sizeof(buf) ? (size_t)size : sizeof(buf);
		for (size_t i = 0; i < n; i++)
			buf[i] = server_byte(first + i) ^ flip;
		if (!server_send(s, fd, buf, n))
			return false;
	}
	return true;
}

/* Closing sends RST instead of FIN. */
static inline void server_reset(int fd)
{
	const struct linger linger = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static inline bool server_status(struct server *s, int fd, int status,
				 const char *lines)
{
	char head[1024];
	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 %d X\r\nContent-Length: 0\r\n%s\r\n", status,
			 lines);

	return server_send(s, fd, head, (size_t)n);
}

static inline bool server_answer(struct server *s, int fd, enum fault fault,
				 uint64_t first, uint64_t last)
{
	uint64_t total = fault == FAULT_HUGE
				 ? UINT64_C(1) << 63
				 : s->size + (fault == FAULT_RESIZED);
	bool is_whole = fault == FAULT_WHOLE;
	uint64_t size, said = first + (fault == FAULT_WRONG_RANGE);
	const char *etag = fault == FAULT_REPLACED ? "\"other\"" : s->etag;
	char head[1024], range[128] = "", length[128] = "";
	int n;

	if (is_whole)
		first = 0, last = s->size - 1;
	if (fault == FAULT_SHORT && last > first)
		last = first + (last - first) / 2;
	if (fault == FAULT_ONE_BYTE)
		last = first;
	size = last - first + 1;
	if (!is_whole && fault != FAULT_NO_RANGE)
		snprintf(range, sizeof(range),
			 "Content-Range: bytes %llu-%llu/%llu\r\n",
			 (unsigned long long)said, (unsigned long long)last,
			 (unsigned long long)total);
	if (fault != FAULT_EXCESS)
		snprintf(length, sizeof(length), "Content-Length: %llu\r\n%s",
			 (unsigned long long)size,
			 fault == FAULT_TWO_LENGTHS ? "Content-Length: 7\r\n"
						    : "");
	n = snprintf(
		head, sizeof(head),
		"HTTP/1.1 %s X\r\n%s%s%s%s%s%s%s%s"
		"Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
		is_whole || fault == FAULT_OK_RANGE ? "200" : "206", length,
		range, etag && fault != FAULT_NO_ETAG ? "ETag: " : "",
		etag && fault != FAULT_NO_ETAG ? etag : "",
		etag && fault != FAULT_NO_ETAG ? "\r\n" : "",
		fault == FAULT_MULTIPART
			? "Content-Type: multipart/byteranges; boundary=x\r\n"
			: "",
		fault == FAULT_GZIP ? "Content-Encoding: gzip\r\n" : "",
		s->extra ? s->extra : "");
	if (!server_send(s, fd, head, (size_t)n))
		return false;
	if (fault == FAULT_RESET_MID || fault == FAULT_TRUNCATE ||
	    fault == FAULT_STALL_MID) {
		server_send_bytes(s, fd, first, size / 2, 0);
		if (fault == FAULT_STALL_MID)
			server_pause(s, 20000);
		if (fault == FAULT_RESET_MID) {
			server_pause(s, 20);
			server_reset(fd);
		}
		return false;
	}
	if (fault == FAULT_EXCESS) {
		server_send_bytes(s, fd, first, 2 * size, 0);
		return false;
	}
	return server_send_bytes(
		s, fd, first, size,
		fault == FAULT_REPLACED || fault == FAULT_WRONG_RANGE ? 0xff
								      : 0);
}

static inline bool server_fault(struct server *s, int fd, enum fault fault,
				uint64_t first, uint64_t last)
{
	char line[512];

	switch (fault) {
	case FAULT_RESET:
		server_reset(fd);
		return false;
	case FAULT_STALL:
		server_pause(s, 20000);
		return false;
	case FAULT_SLOW:
		server_pause(s, 300);
		break;
	case FAULT_SLOWER:
		server_pause(s, 1500);
		break;
	case FAULT_STATUS:
		return server_status(s, fd, s->status,
				     s->extra ? s->extra : "");
	case FAULT_REDIRECT:
		snprintf(line, sizeof(line), "Location: %s\r\n", s->location);
		return server_status(s, fd, 302, line);
	case FAULT_GARBAGE:
		server_send(s, fd, "\0\1\2\3 garbage\r\n\r\n", 16);
		return false;
	default:
		break;
	}
	return server_answer(s, fd, fault, first, last);
}

static inline bool server_serve(struct server *s, int fd, const char *request)
{
	const char *range = strcasestr(request, "\r\nRange: bytes=");
	const char *match = strcasestr(request, "\r\nIf-Match: ");
	unsigned long long first = 0, last = s->size - 1;
	unsigned index = atomic_fetch_add(&s->requests, 1);
	enum fault fault;

	if (strcasestr(request, "\r\nX-Secret:"))
		atomic_fetch_add(&s->with_secret, 1);
	pthread_mutex_lock(&s->lock);
	snprintf(s->last, sizeof(s->last), "%s", request);
	pthread_mutex_unlock(&s->lock);
	if (range)
		sscanf(range + 15, "%llu-%llu", &first, &last);
	if (last > s->size - 1)
		last = s->size - 1;
	fault = s->script ? s->script(s, index, first) : FAULT_NONE;
	if (fault)
		atomic_fetch_add(&s->faults, 1);
	if (s->is_honest && match &&
	    (fault == FAULT_REPLACED ||
	     strncmp(match + 12, s->etag, strlen(s->etag))))
		return server_status(s, fd, 412, "ETag: \"other\"\r\n");
	if (!strncmp(request, "HEAD", 4))
		return server_status(
			s, fd, 200,
			fault == FAULT_REPLACED ? "ETag: \"other\"\r\n" : "");
	return server_fault(s, fd, fault, first, last);
}

struct server_connection {
	struct server *server;
	unsigned slot;
};

static inline void *server_connection(void *arg)
{
	struct server_connection c = *(struct server_connection *)arg;
	int fd = c.server->fds[c.slot];
	char request[4096];
	size_t got = 0;
	ssize_t n;

	free(arg);
	for (;;) {
		n = recv(fd, request + got, sizeof(request) - 1 - got, 0);
		if (n <= 0)
			break;
		got += (size_t)n;
		request[got] = '\0';
		if (!strstr(request, "\r\n\r\n"))
			continue;
		got = 0;
		if (!server_serve(c.server, fd, request))
			break;
	}
	pthread_mutex_lock(&c.server->lock);
	c.server->fds[c.slot] = -1;
	close(fd);
	pthread_mutex_unlock(&c.server->lock);
	return NULL;
}

static inline void *server_accept(void *arg)
{
	struct server *s = arg;
	struct server_connection *c;
	int fd;

	while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
		atomic_fetch_add(&s->connections, 1);
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 },
			   sizeof(int));
		CHECK(s->num_threads < 1024);
		c = malloc(sizeof(*c));
		CHECK(c);
		*c = (struct server_connection){ s, s->num_threads };
		pthread_mutex_lock(&s->lock);
		s->fds[s->num_threads] = fd;
		pthread_mutex_unlock(&s->lock);
		CHECK(!pthread_create(&s->threads[s->num_threads++], NULL,
				      server_connection, c));
	}
	return NULL;
}

/* Listens on a port of 127.0.0.1: server.url. */
static inline void server_start(struct server *s)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t n = sizeof(at);

	pthread_mutex_init(&s->lock, NULL);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_port = htons((uint16_t)s->port);
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 },
			  sizeof(int)));
	CHECK(s->fd >= 0 && !bind(s->fd, (void *)&at, sizeof(at)));
	CHECK(!listen(s->fd, 128));
	CHECK(!getsockname(s->fd, (void *)&at, &n));
	s->port = ntohs(at.sin_port);
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d/object.beton",
		 s->port);
	CHECK(!pthread_create(&s->accepting, NULL, server_accept, s));
}

static inline void server_stop(struct server *s)
{
	atomic_store(&s->stopping, true);
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->accepting, NULL);
	close(s->fd);
	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->num_threads; i++) {
		if (s->fds[i] >= 0)
			shutdown(s->fds[i], SHUT_RDWR);
	}
	pthread_mutex_unlock(&s->lock);
	for (unsigned i = 0; i < s->num_threads; i++)
		pthread_join(s->threads[i], NULL);
	pthread_mutex_destroy(&s->lock);
	s->num_threads = 0;
	atomic_store(&s->stopping, false);
}

#endif
