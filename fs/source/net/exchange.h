/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request and its small answer, for a thread that waits and may give up.
 * net_fetch() is one that does not give up.
 */
#ifndef FS_SOURCE_NET_EXCHANGE_H
#define FS_SOURCE_NET_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/source/net/net.h"

/* Called about every 100 ms while a thread waits. A result other than 0 ends
   the wait, and becomes its result. */
typedef int exchange_poll(void *arg);

enum {
	EXCHANGE_TEXT_MAX = 64 << 10, /* of a body; the rest is dropped */
	EXCHANGE_CONNECT_MS = 10000,
};

struct exchange {
	enum net_method method;
	const char *url;
	struct net_lines headers;
	struct net_lines secrets;
	const void *body;
	size_t body_size;
	const char *userinfo; /* "USER:PASSWORD", or NULL */
	bool netrc;
	bool fresh;
	bool direct;
	bool no_redirects;
	bool begins;	     /* end after EXCHANGE_TEXT_MAX bytes of the body */
	unsigned connect_ms; /* 0: EXCHANGE_CONNECT_MS */
	unsigned first_byte_ms; /* 0: no limit */
	unsigned stall_ms;	/* without any byte */
	/* Takes the body instead of `text`, on the thread of the net: 0 or
	   -errno, which ends the transfer. Or NULL. */
	int (*sink)(void *sink_arg, const void *bytes, size_t size);
	void *sink_arg;
	/* A line of the answer's head, on the thread of the net. Or NULL. */
	void (*line)(void *line_arg, const char *line, size_t size);
	void *line_arg;
	exchange_poll *poll; /* or NULL */
	void *arg;

	/* The outcome. */
	struct http_answer answer;
	char *text; /* the body, with a NUL; NULL: none; the caller frees it */
	size_t text_size;
	char why[NET_WHY_MAX];
	bool is_final; /* another attempt would fail as well */
	bool was_sent; /* the server may have the request */
};

/* Returns 0, whatever the status is, the result of `poll`, or -errno with
   `why`. Logs nothing. Not on the thread of the net. */
int exchange_run(struct net *net, struct exchange *e);

/* Waits `ms` milliseconds. Returns 0, or the result of `poll`. */
int exchange_sleep(uint64_t ms, exchange_poll *poll, void *arg);

#endif
