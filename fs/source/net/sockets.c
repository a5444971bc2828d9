/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/net/sockets.h"

#ifdef HAVE_CURL

#	include <errno.h>
#	include <sys/eventfd.h>
#	include <unistd.h>

#	include "fs/base/util/clock.h"

enum { WAIT_MS_MAX = 60 * 1000 };

/* --- callbacks of libcurl --- */

/* A failure of this function would end all transfers of the multi handle. If a
   socket cannot be watched, its transfer ends by its limits. */
static int watch(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
	struct sockets *s = arg;
	struct epoll_event event = { .data.fd = fd };

	(void)easy, (void)known;
	if (what & CURL_POLL_IN)
		event.events |= EPOLLIN;
	if (what & CURL_POLL_OUT)
		event.events |= EPOLLOUT;
	if (what == CURL_POLL_REMOVE)
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, fd, NULL);
	else if (epoll_ctl(s->epoll, EPOLL_CTL_MOD, fd, &event))
		epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event);
	return 0;
}

static int set_timer(CURLM *multi, long ms, void *arg)
{
	struct sockets *s = arg;

	(void)multi;
	s->timer_ns = ms < 0 ? INT64_MAX : clock_ns() + ms * 1000000;
	return 0;
}

/* --- waiting --- */

/* A wake-up ends here: what it announces is done after this wait, and another
   one ends the next wait. */
static void drain(struct sockets *s)
{
	eventfd_t ignored;

	for (int i = 0; i < s->num_events; i++) {
		if (s->events[i].data.fd != s->wake)
			continue;
		eventfd_read(s->wake, &ignored);
		s->events[i] = s->events[--s->num_events];
		return;
	}
}

void sockets_wait(struct sockets *s, int64_t until)
{
	int64_t left = (s->timer_ns < until ? s->timer_ns : until) - clock_ns();
	/* Rounded up: a wait that ends too early is repeated. */
	int64_t ms = left > 0 ? (left + 999999) / 1000000 : 0;

	s->num_events = epoll_wait(s->epoll, s->events, SOCKET_EVENTS_MAX,
				   ms < WAIT_MS_MAX ? (int)ms : WAIT_MS_MAX);
	drain(s);
}

void sockets_wake(struct sockets *s)
{
	eventfd_write(s->wake, 1);
}

static int events_of(uint32_t events)
{
	return (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
	       (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
	       (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
}

bool sockets_are_due(const struct sockets *s)
{
	return s->timer_ns <= clock_ns();
}

void sockets_act(struct sockets *s)
{
	int running;

	for (int i = 0; i < s->num_events; i++)
		s->curl->multi_socket_action(s->multi, s->events[i].data.fd,
					     events_of(s->events[i].events),
					     &running);
	s->num_events = 0;
	if (!sockets_are_due(s))
		return;
	s->timer_ns = INT64_MAX;
	s->curl->multi_socket_action(s->multi, CURL_SOCKET_TIMEOUT, 0,
				     &running);
}

/* --- opening and closing --- */

void sockets_close(struct sockets *s)
{
	if (s->wake >= 0)
		close(s->wake);
	if (s->epoll >= 0)
		close(s->epoll);
}

int sockets_open(struct sockets *s, const struct curl_api *curl, CURLM *multi)
{
	struct epoll_event event = { .events = EPOLLIN };
	int r = 0;

	*s = (struct sockets){ .curl = curl,
			       .multi = multi,
			       .timer_ns = INT64_MAX };
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	event.data.fd = s->wake;
	if (s->epoll < 0 || s->wake < 0 ||
	    epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->wake, &event))
		r = -errno;
	if (r) {
		sockets_close(s);
		return r;
	}
	curl->multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch);
	curl->multi_setopt(multi, CURLMOPT_SOCKETDATA, s);
	curl->multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl->multi_setopt(multi, CURLMOPT_TIMERDATA, s);
	return 0;
}

#endif
