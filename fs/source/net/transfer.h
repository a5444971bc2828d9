/* SPDX-License-Identifier: Apache-2.0 */
/* A request and its answer, while a net transfers them. Header only. */
#ifndef FS_SOURCE_NET_TRANSFER_H
#define FS_SOURCE_NET_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/source/net/http.h"

enum net_method { NET_GET, NET_HEAD, NET_PUT, NET_POST, NET_DELETE };

enum {
	NET_WHY_MAX = 256,
	NET_LINES_MAX = 40,
};

/* Header lines, "Name: value". */
struct net_lines {
	const char *const *at;
	size_t num;
};

/* A request and its answer. The caller owns it, and all that it points to,
   until `done` is called. */
struct net_transfer {
	enum net_method method;
	const char *url;
	struct net_lines headers; /* NET_LINES_MAX in all */
	/* Header lines that only the host of `url` may see. */
	struct net_lines secrets;
	const void *body; /* of NET_PUT and NET_POST */
	size_t body_size;
	bool fresh;	   /* a new connection, and a new look-up of the name */
	bool netrc;	   /* for the host of `url`, ask the user's .netrc */
	bool direct;	   /* through no proxy */
	bool no_redirects; /* they are answers as others */
	const char
		*userinfo; /* "USER:PASSWORD" for the host of `url`, or NULL */
	/* Limits in ms; 0: none. `stall_ms` is a time without any byte. */
	unsigned connect_ms;
	unsigned first_byte_ms;
	unsigned stall_ms;
	/* The head is complete. A negative result ends the transfer with it.
	   May be NULL. */
	int (*head)(struct net_transfer *transfer);
	/* The transfer continues at another URL, as a redirect demands; whether
	   it has the origin of `url`, whose secrets it gets then. May be NULL.
	 */
	void (*moved)(struct net_transfer *transfer, const char *url,
		      bool is_same_origin);
	/* A line of the head, for fields that `answer` lacks. May be NULL. */
	void (*line)(struct net_transfer *transfer, const char *line,
		     size_t size);
	/* Bytes of the body. A negative result ends the transfer with it. */
	int (*sink)(struct net_transfer *transfer, const void *data,
		    size_t size);
	/* The last callback; 0: the answer is complete, whatever its status.
	   -ECANCELED, or another -errno, and `why`. */
	void (*done)(struct net_transfer *transfer, int result);
	void *arg;

	/* The outcome. */
	struct http_answer answer;
	char why[NET_WHY_MAX];
	bool is_final; /* another attempt would fail as well */
	int64_t begin_ns;
	int64_t sent_ns;     /* the connection was ready; 0: not yet */
	int64_t first_ns;    /* the first byte of the answer; 0: none yet */
	int64_t last_ns;     /* the last progress */
	uint64_t wire_bytes; /* received, heads and body */
	uint64_t new_connections;

	struct net_job *job; /* belongs to the net */
};

#endif
