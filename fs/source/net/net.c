/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/net/net.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"
#include "fs/source/net/job.h"
#include "fs/source/net/sockets.h"

#ifdef HAVE_CURL

enum {
	IDLE_CONNECTIONS = 128,
	IDLE_JOBS = 64,
	/* A turn costs some us per socket with news. While there are many
	   transfers, one turn takes all packets of PACE_NS. At 50 ms, 3 ms
	   took a tenth less CPU time than 1 ms. */
	PACED_JOBS = 4,
	PACE_NS = 3000000,
};

struct net {
	struct curl_api curl;
	struct log *log;
	atomic_uint refs;
	pthread_mutex_t lock; /* innermost; guards the members up to `thread` */
	struct net_task *tasks;
	bool is_running;
	bool is_pausing;
	pthread_t thread;
	/* The thread's own, or the owner's while there is no thread. */
	CURLM *multi;
	struct sockets sockets;	  /* its wake-up: any thread */
	struct net_timer *timers; /* by their times */
	struct net_job *active;
	unsigned num_active;

	struct net_job *idle;
	unsigned num_idle;
	int64_t check_ns; /* when a job may exceed a limit */
};

/* --- jobs --- */

static struct net_job *get_job(struct net *net)
{
	struct net_job *job = net->idle;

	if (!job)
		return job_new(&net->curl);
	DL_DELETE(net->idle, job);
	net->num_idle--;
	return job;
}

static void put_job(struct net *net, struct net_job *job)
{
	if (net->num_idle == IDLE_JOBS) {
		job_free(job);
		return;
	}
	DL_APPEND(net->idle, job);
	net->num_idle++;
}

static void finish_job(struct net *net, struct net_job *job, int r)
{
	struct net_transfer *t = job->transfer;

	net->curl.multi_remove_handle(net->multi, job->easy);
	DL_DELETE(net->active, job);
	net->num_active--;
	put_job(net, job);
	t->job = NULL;
	t->done(t, r);
}

static void end_job(struct net *net, CURL *easy, CURLcode code)
{
	struct net_job *job = NULL;
	char *private = NULL;

	net->curl.easy_getinfo(easy, CURLINFO_PRIVATE, &private);
	job = (struct net_job *)(void *)private;
	if (!code && job_redirects(job)) {
		net->curl.multi_remove_handle(net->multi, easy);
		if (!net->curl.multi_add_handle(net->multi, easy))
			return;
		code = CURLE_OUT_OF_MEMORY;
	}
	finish_job(net, job, job_result(job, code));
}

static void take_messages(struct net *net)
{
	CURLMsg *message;
	int left;

	while ((message = net->curl.multi_info_read(net->multi, &left))) {
		if (message->msg == CURLMSG_DONE)
			end_job(net, message->easy_handle,
				message->data.result);
	}
}

void net_start(struct net *net, struct net_transfer *t)
{
	struct net_job *job = get_job(net);
	int r = job ? job_begin(job, t) : -ENOMEM;

	if (!r && net->curl.multi_add_handle(net->multi, job->easy))
		r = -ENOMEM;
	if (!r) {
		DL_APPEND(net->active, job);
		net->num_active++;
		net->check_ns = 0;
		return;
	}
	if (job)
		put_job(net, job);
	t->job = NULL;
	t->done(t, r);
}

void net_cancel(struct net *net, struct net_transfer *t)
{
	t->job->canceled = true;
	/* The loop looks for it before it waits. */
	net->check_ns = 0;
}

/* Ends jobs that were canceled or exceed a limit. Callbacks may start and
   cancel others, so it begins again after each. */
static bool end_one_job(struct net *net, int64_t now)
{
	struct net_job *job;
	int64_t next;

	net->check_ns = INT64_MAX;
	DL_FOREACH(net->active, job)
	{
		if (!job->canceled && !job->stopped)
			job->stopped = job_check(job, now, &next);
		if (job->canceled || job->stopped) {
			finish_job(net, job, job_result(job, CURLE_OK));
			return true;
		}
		if (next < net->check_ns)
			net->check_ns = next;
	}
	return false;
}

static void check_jobs(struct net *net, int64_t now)
{
	while (net->check_ns <= now && end_one_job(net, now))
		net->check_ns = 0;
}

/* --- timers --- */

static int compare_times(const struct net_timer *a, const struct net_timer *b)
{
	return (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns);
}

void net_timer_stop(struct net *net, struct net_timer *timer)
{
	if (!timer->set)
		return;
	DL_DELETE(net->timers, timer);
	timer->set = false;
}

void net_timer_set(struct net *net, struct net_timer *timer, int64_t at_ns)
{
	net_timer_stop(net, timer);
	timer->at_ns = at_ns;
	timer->set = true;
	DL_INSERT_INORDER(net->timers, timer, compare_times);
}

static void run_timers(struct net *net, int64_t now)
{
	struct net_timer *timer;

	while ((timer = net->timers) && timer->at_ns <= now) {
		net_timer_stop(net, timer);
		timer->run(timer);
	}
}

/* --- the thread --- */

static struct net_task *next_task(struct net *net)
{
	struct net_task *task;

	scoped_lock(&net->lock);
	task = net->tasks;
	if (task) {
		DL_DELETE(net->tasks, task);
		task->queued = false;
	}
	return task;
}

static void run_tasks(struct net *net)
{
	struct net_task *task;

	while ((task = next_task(net)))
		task->run(task);
}

static bool is_pausing(struct net *net)
{
	scoped_lock(&net->lock);
	return net->is_pausing;
}

static void run_once(struct net *net)
{
	int64_t now;

	run_tasks(net);
	sockets_act(&net->sockets);
	take_messages(net);
	now = clock_ns();
	run_timers(net, now);
	check_jobs(net, now);
}

/* Callbacks may have added work that no socket reports. */
static bool has_work(const struct net *net)
{
	return net->check_ns == 0 || sockets_are_due(&net->sockets);
}

/* Waits until the time of a turn is over if there is much to do. */
static void pace(const struct net *net, int64_t begin)
{
	int64_t left = begin + PACE_NS - clock_ns();

	if (net->num_active >= PACED_JOBS && left > 0)
		nanosleep(&(struct timespec){ .tv_nsec = left }, NULL);
}

static void wait_for_work(struct net *net)
{
	int64_t until = net->check_ns;

	if (net->timers && net->timers->at_ns < until)
		until = net->timers->at_ns;
	sockets_wait(&net->sockets, until);
}

static void *run_thread(void *arg)
{
	struct net *net = arg;
	int64_t begin;

	while (!is_pausing(net)) {
		begin = clock_ns();
		run_once(net);
		if (!has_work(net))
			pace(net, begin);
		wait_for_work(net);
	}
	return NULL;
}

/* The caller holds the lock. */
static int start_thread(struct net *net)
{
	int r;

	if (net->is_running)
		return 0;
	r = thread_start(&net->thread, run_thread, net);
	net->is_running = !r;
	return r;
}

int net_post(struct net *net, struct net_task *task)
{
	int r;

	pthread_mutex_lock(&net->lock);
	r = start_thread(net);
	if (!r && !task->queued) {
		DL_APPEND(net->tasks, task);
		task->queued = true;
	}
	pthread_mutex_unlock(&net->lock);
	if (!r)
		sockets_wake(&net->sockets);
	return r;
}

/* Returns whether the thread runs, and asks it to stop. */
static bool ask_to_pause(struct net *net)
{
	scoped_lock(&net->lock);
	net->is_pausing = net->is_running;
	return net->is_running;
}

void net_pause(struct net *net)
{
	if (!ask_to_pause(net))
		return;
	sockets_wake(&net->sockets);
	pthread_join(net->thread, NULL);
	scoped_lock(&net->lock);
	net->is_running = net->is_pausing = false;
	/* Tasks that were posted meanwhile. */
	if (net->tasks)
		start_thread(net);
}

/* --- opening and closing --- */

static int open_multi(struct net *net)
{
	int r;

	net->multi = net->curl.multi_init();
	if (!net->multi)
		return -ENOMEM;
	net->curl.multi_setopt(net->multi, CURLMOPT_MAXCONNECTS,
			       (long)IDLE_CONNECTIONS);
	r = sockets_open(&net->sockets, &net->curl, net->multi);
	if (!r)
		return 0;
	log_error(net->log, "cannot wait for connections to servers: %s",
		  strerror(-r));
	net->curl.multi_cleanup(net->multi);
	return r;
}

int net_open(struct log *log, struct net **out)
{
	struct net *net = calloc(1, sizeof(*net));
	int r = net ? curl_load(log, &net->curl) : -ENOMEM;

	if (!r) {
		net->log = log;
		r = open_multi(net);
	}
	if (r) {
		free(net);
		return r;
	}
	net->check_ns = INT64_MAX;
	atomic_init(&net->refs, 1);
	pthread_mutex_init(&net->lock, NULL);
	*out = net;
	return 0;
}

struct net *net_ref(struct net *net)
{
	atomic_fetch_add(&net->refs, 1);
	return net;
}

void net_unref(struct net *net)
{
	struct net_job *job, *next;

	if (!net || atomic_fetch_sub(&net->refs, 1) > 1)
		return;
	net_pause(net);
	DL_FOREACH_SAFE(net->idle, job, next)
	job_free(job);
	net->curl.multi_cleanup(net->multi);
	sockets_close(&net->sockets);
	pthread_mutex_destroy(&net->lock);
	free(net);
}

#else

int net_open(struct log *log, struct net **out)
{
	(void)out;
	log_error(
		log,
		"URLs need libcurl, and this program was built without it: install libcurl4-openssl-dev and build it again");
	return -ENOTSUP;
}

/* Never called, because there is no net. */
struct net *net_ref(struct net *net)
{
	return net;
}

void net_unref(struct net *net)
{
	(void)net;
}

void net_pause(struct net *net)
{
	(void)net;
}

int net_post(struct net *net, struct net_task *task)
{
	(void)net, (void)task;
	return -ENOTSUP;
}

void net_timer_set(struct net *net, struct net_timer *timer, int64_t at_ns)
{
	(void)net, (void)timer, (void)at_ns;
}

void net_timer_stop(struct net *net, struct net_timer *timer)
{
	(void)net, (void)timer;
}

void net_start(struct net *net, struct net_transfer *transfer)
{
	(void)net;
	transfer->done(transfer, -ENOTSUP);
}

void net_cancel(struct net *net, struct net_transfer *transfer)
{
	(void)net, (void)transfer;
}

#endif
