/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/team.h"

#include <stdlib.h>

#include "fs/base/util/thread.h"

struct team {
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t begun; /* there are parts, or the team stops */
	pthread_cond_t done;  /* all parts are done */
	team_fn *fn;
	void *arg;
	unsigned parts; /* 0: there is no work */
	unsigned next;	/* the first part that no thread has taken */
	unsigned left;	/* parts that are not done */
	bool stopping;
	unsigned num_helpers;
	pthread_t helpers[];
};

/* Does one part. The caller holds the lock, which is released meanwhile. */
static void do_part(struct team *t)
{
	unsigned part = t->next++;

	pthread_mutex_unlock(&t->lock);
	t->fn(t->arg, part);
	pthread_mutex_lock(&t->lock);
	if (!--t->left)
		pthread_cond_signal(&t->done);
}

static void *help(void *arg)
{
	struct team *t = arg;

	pthread_mutex_lock(&t->lock);
	while (!t->stopping) {
		if (t->next < t->parts)
			do_part(t);
		else
			pthread_cond_wait(&t->begun, &t->lock);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

int team_open(unsigned helpers, struct team **out)
{
	struct team *t = calloc(1, sizeof(*t) + helpers * sizeof(*t->helpers));
	int r = 0;

	if (!t)
		return -ENOMEM;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->begun, NULL);
	pthread_cond_init(&t->done, NULL);
	for (; t->num_helpers < helpers && !r; t->num_helpers += !r)
		r = thread_start(&t->helpers[t->num_helpers], help, t);
	if (r)
		team_close(t);
	else
		*out = t;
	return r;
}

void team_close(struct team *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stopping = true;
	pthread_cond_broadcast(&t->begun);
	pthread_mutex_unlock(&t->lock);
	for (unsigned i = 0; i < t->num_helpers; i++)
		pthread_join(t->helpers[i], NULL);
	pthread_cond_destroy(&t->done);
	pthread_cond_destroy(&t->begun);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* Gives the work to the team. Returns false if it has work. */
static bool begin(struct team *t, team_fn *fn, void *arg, unsigned parts)
{
	if (t->parts)
		return false;
	t->fn = fn;
	t->arg = arg;
	t->parts = t->left = parts;
	t->next = 0;
	pthread_cond_broadcast(&t->begun);
	return true;
}

void team_run(struct team *t, team_fn *fn, void *arg, unsigned parts)
{
	bool helps = false;

	if (t && parts > 1) {
		pthread_mutex_lock(&t->lock);
		helps = begin(t, fn, arg, parts);
		while (helps && t->next < parts)
			do_part(t);
		while (helps && t->left)
			pthread_cond_wait(&t->done, &t->lock);
		if (helps)
			t->parts = 0;
		pthread_mutex_unlock(&t->lock);
	}
	for (unsigned i = 0; !helps && i < parts; i++)
		fn(arg, i);
}
