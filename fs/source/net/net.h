/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP transfers of a process: one thread owns all connections and runs all
 * callbacks. It starts with the first task and can be paused, so that a process
 * can fork or enter a sandbox in between. HTTP/1.1 only, because one connection
 * a request is not slowed down by a packet that another request lost.
 *
 * Proxies come from the environment, certificates from the system, as for
 * curl(1). Redirects are followed, without secrets to another host, and never
 * from https to http.
 *
 * A child of fork() must not use a net of its parent.
 */
#ifndef FS_SOURCE_NET_NET_H
#define FS_SOURCE_NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/base/util/log.h"
#include "fs/source/net/transfer.h"

struct net;

/* The log must outlive the net. -ENOTSUP: there is no libcurl, which is logged.
   The caller holds one reference. */
int net_open(struct log *log, struct net **out);
struct net *net_ref(struct net *net);
/* Not on the thread of the net. The owners of transfers have ended them before
   they drop their references. Takes NULL. */
void net_unref(struct net *net);

/* Stops the thread between two callbacks. Transfers stand still until the next
   net_post(). */
void net_pause(struct net *net);

/* --- tasks: any thread --- */

/* Work for the thread. It lies in the caller's memory. */
struct net_task {
	void (*run)(struct net_task *task);
	/* The members below belong to the net. */
	struct net_task *prev, *next;
	bool queued;
};

/* Runs a task soon; once, if it is posted again before it runs. Returns -errno
   if no thread can be started. */
int net_post(struct net *net, struct net_task *task);

/* --- timers: the thread of the net only --- */

struct net_timer {
	void (*run)(struct net_timer *timer);
	/* The members below belong to the net. */
	struct net_timer *prev, *next;
	int64_t at_ns;
	bool set;
};

/* Sets a timer, or sets it again, to a time of clock_ns(). */
void net_timer_set(struct net *net, struct net_timer *timer, int64_t at_ns);
void net_timer_stop(struct net *net, struct net_timer *timer);

/* --- transfers: the thread of the net only --- */

/* Starts a transfer. A failure is a result of `done`, which may be called
   before it returns. */
void net_start(struct net *net, struct net_transfer *transfer);
/* Ends a transfer that has not ended: no callback but `done` follows, later on
   the thread of the net. */
void net_cancel(struct net *net, struct net_transfer *transfer);

/* --- small answers: any other thread --- */

struct net_fetch {
	enum net_method method;
	const char *url;
	struct net_lines headers;
	struct net_lines secrets;
	const void *body;
	size_t body_size;
	bool netrc;
	bool direct;
	bool no_redirects;
	unsigned
		timeout_ms; /* for the connection, and without a byte; 0: 5 s */
	char *buf;	    /* the body of the answer */
	size_t size;	    /* of buf; a larger body is -EFBIG */
	void (*line)(void *arg, const char *line, size_t size); /* or NULL */
	void *arg;
	/* The outcome. */
	size_t got;
	struct http_answer answer;
	char why[NET_WHY_MAX];
};

/* Waits until the answer is complete. Returns 0, whatever the status is, or
   -errno. The caller logs failures. */
int net_fetch(struct net *net, struct net_fetch *fetch);

#endif
