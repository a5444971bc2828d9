/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/signals.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

#include "fs/base/util/bytes.h"

void signals_block(sigset_t *set)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action;

	sigemptyset(set);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		if (sigaction(signals[i], NULL, &action) == 0 &&
		    action.sa_handler != SIG_IGN)
			sigaddset(set, signals[i]);
	}
	pthread_sigmask(SIG_BLOCK, set, NULL);
}

int signals_poll(const sigset_t *set)
{
	struct timespec now = { 0 };
	int s = sigtimedwait(set, NULL, &now);

	return s > 0 ? s : 0;
}

void signals_end(const sigset_t *set, int s)
{
	signal(s, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, set, NULL);
	raise(s);
}

void signals_watch(struct signals_watch *w, bool is_on)
{
	*w = (struct signals_watch){ .is_on = is_on };
	if (is_on)
		signals_block(&w->set);
}

int signals_check(void *watch)
{
	struct signals_watch *w = watch;

	if (w->is_on && !w->signal)
		w->signal = signals_poll(&w->set);
	return w->signal ? -EINTR : 0;
}

void signals_pass(const struct signals_watch *w)
{
	if (w->signal)
		signals_end(&w->set, w->signal);
}
