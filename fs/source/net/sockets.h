/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for the sockets of libcurl's transfers. A turn costs time for those
 * that have news, not for all of them, as curl_multi_perform() does.
 */
#ifndef FS_SOURCE_NET_SOCKETS_H
#define FS_SOURCE_NET_SOCKETS_H

#ifdef HAVE_CURL

#	include <stdbool.h>
#	include <stdint.h>
#	include <sys/epoll.h>

#	include "fs/source/net/curl.h"

/* Those of a wait; the others have news in the next one, too. */
enum { SOCKET_EVENTS_MAX = 64 };

struct sockets {
	const struct curl_api *curl;
	CURLM *multi;
	int epoll;
	int wake;	  /* an eventfd */
	int64_t timer_ns; /* when libcurl asks to be called; INT64_MAX: never */
	struct epoll_event events[SOCKET_EVENTS_MAX];
	int num_events;
};

/* Asks the multi handle to report its sockets. The struct must not move. */
int sockets_open(struct sockets *s, const struct curl_api *curl, CURLM *multi);
/* After the multi handle was freed. */
void sockets_close(struct sockets *s);

/* Waits until there is news, libcurl's timer is due, sockets_wake() is called,
   or a time of clock_ns(); a minute at most. */
void sockets_wait(struct sockets *s, int64_t until);
/* Ends a wait, or the next one. Any thread. */
void sockets_wake(struct sockets *s);
/* Lets libcurl act on the news of the last wait, and on its timer. */
void sockets_act(struct sockets *s);
/* Whether libcurl's timer is due: there is work without news. */
bool sockets_are_due(const struct sockets *s);

#endif

#endif
