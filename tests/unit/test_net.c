/* SPDX-License-Identifier: Apache-2.0 */
/* A net: tasks, timers, small answers, and secrets that stay with their host.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>

#include "fs/base/util/clock.h"
#include "fs/source/net/net.h"

#include "tests/unit/server.h"

/* --- small answers --- */

static const char *const secret[] = { "X-Secret: 1" };

static int fetch(struct net *net, const char *url, size_t size,
		 struct net_fetch *f)
{
	*f = (struct net_fetch){ .method = NET_GET,
				 .url = url,
				 .secrets = { secret, 1 },
				 .timeout_ms = 300,
				 .buf = malloc(size),
				 .size = size };
	CHECK(f->buf);
	return net_fetch(net, f);
}

static void test_fetch(struct net *net)
{
	struct server s = { .size = 1000, .etag = "\"v1\"" };
	struct net_fetch f;

	server_start(&s);
	CHECK(!fetch(net, s.url, 1000, &f));
	CHECK(f.got == 1000 && f.answer.status == 206);
	CHECK((uint8_t)f.buf[999] == server_byte(999));
	CHECK(atomic_load(&s.with_secret) == 1);
	free(f.buf);
	CHECK(fetch(net, s.url, 999, &f) == -EFBIG);
	free(f.buf);
	server_stop(&s);
}

static enum fault stall(struct server *s, unsigned index, uint64_t first)
{
	(void)s, (void)index, (void)first;
	return FAULT_STALL;
}

static void test_failures(struct net *net)
{
	struct server s = { .size = 1000, .script = stall };
	struct net_fetch f;

	CHECK(fetch(net, "http://127.0.0.1:1/", 10, &f) == -ECONNREFUSED);
	CHECK(*f.why);
	free(f.buf);
	server_start(&s);
	CHECK(fetch(net, s.url, 10, &f) == -ETIMEDOUT);
	CHECK(strstr(f.why, "no answer within 300 ms"));
	free(f.buf);
	server_stop(&s);
}

static enum fault redirect(struct server *s, unsigned index, uint64_t first)
{
	(void)s, (void)index, (void)first;
	return FAULT_REDIRECT;
}

/* Another port is another host: it gets no secret. */
static void test_redirect(struct net *net)
{
	struct server to = { .size = 10, .etag = "\"v1\"" };
	struct server from = { .size = 1, .script = redirect };
	struct net_fetch f;

	server_start(&to);
	from.location = to.url;
	server_start(&from);
	CHECK(!fetch(net, from.url, 10, &f) && f.got == 10);
	CHECK(atomic_load(&from.with_secret) == 1);
	CHECK(atomic_load(&to.requests) == 1);
	CHECK(!atomic_load(&to.with_secret));
	free(f.buf);
	from.location = "ftp://127.0.0.1/x";
	CHECK(fetch(net, from.url, 10, &f) == -ELOOP);
	free(f.buf);
	server_stop(&from);
	server_stop(&to);
}

/* --- tasks and timers --- */

struct clockwork {
	struct net_task task;
	struct net_timer timers[3];
	struct net *net;
	atomic_uint runs;
	unsigned order[3], num;
	atomic_bool has_ended;
};

static struct clockwork *work_of(struct net_timer *timer, unsigned i)
{
	return (void *)((char *)(timer - i) -
			offsetof(struct clockwork, timers));
}

static void ring(struct clockwork *w, unsigned i)
{
	w->order[w->num++] = i;
	if (w->num == 2)
		atomic_store(&w->has_ended, true);
}

static void ring0(struct net_timer *timer)
{
	ring(work_of(timer, 0), 0);
}

static void ring1(struct net_timer *timer)
{
	ring(work_of(timer, 1), 1);
}

static void ring2(struct net_timer *timer)
{
	ring(work_of(timer, 2), 2);
}

static void set_timers(struct net_task *task)
{
	struct clockwork *w = (void *)task;
	int64_t now = clock_ns();

	atomic_fetch_add(&w->runs, 1);
	net_timer_set(w->net, &w->timers[0], now + 60000000);
	net_timer_set(w->net, &w->timers[1], now + 1000000);
	net_timer_set(w->net, &w->timers[2], now + 30000000);
	/* Sets it again, and stops another. */
	net_timer_set(w->net, &w->timers[1], now + 90000000);
	net_timer_stop(w->net, &w->timers[2]);
	net_timer_stop(w->net, &w->timers[2]);
}

static void test_timers(struct net *net)
{
	struct clockwork w = { .task.run = set_timers,
			       .net = net,
			       .timers = { { .run = ring0 },
					   { .run = ring1 },
					   { .run = ring2 } } };

	CHECK(!net_post(net, &w.task));
	while (!atomic_load(&w.has_ended))
		poll(NULL, 0, 5);
	CHECK(atomic_load(&w.runs) == 1);
	net_pause(net);
	CHECK(w.num == 2 && w.order[0] == 0 && w.order[1] == 1);
}

/* --- a task that is posted while another begins to run --- */

enum { POSTS = 20000 };

struct poster {
	struct net_task task;
	struct net *net;
	pthread_t thread;
	atomic_uint runs;
};

static void count_run(struct net_task *task)
{
	struct poster *p = (void *)task;

	atomic_fetch_add(&p->runs, 1);
}

/* A task that the net overlooks would wait for a minute. */
static void *post_all(void *arg)
{
	struct poster *p = arg;
	int64_t since;

	for (unsigned i = 0; i < POSTS; i++) {
		since = clock_ns();
		CHECK(!net_post(p->net, &p->task));
		while (atomic_load(&p->runs) == i) {
			CHECK(clock_ns() - since < 20000000000LL);
			sched_yield();
		}
	}
	return NULL;
}

static void test_posts(struct net *net)
{
	struct poster posters[2] = { 0 };

	for (unsigned i = 0; i < 2; i++) {
		posters[i].task.run = count_run;
		posters[i].net = net;
		CHECK(!pthread_create(&posters[i].thread, NULL, post_all,
				      &posters[i]));
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(posters[i].thread, NULL);
	net_pause(net);
}

/* --- without descriptors --- */

static void hear(void *arg, enum beton_log_level level, const char *message)
{
	(void)level;
	CHECK(strstr(message, "Too many open files"));
	++*(unsigned *)arg;
}

static void test_no_descriptors(void)
{
	struct rlimit limit, none;
	unsigned messages = 0;
	struct net *net;
	struct log log;
	int fd = dup(2);

	CHECK(fd >= 0 && !getrlimit(RLIMIT_NOFILE, &limit));
	close(fd);
	log_init(&log, hear, &messages);
	/* Room for none or one of the two that it needs. */
	for (unsigned room = 0; room < 2; room++) {
		none = limit;
		none.rlim_cur = (rlim_t)fd + room;
		CHECK(!setrlimit(RLIMIT_NOFILE, &none));
		CHECK(net_open(&log, &net) == -EMFILE);
		CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
		CHECK(messages == room + 1 && dup(2) == fd && !close(fd));
	}
	log_fini(&log);
}

int main(void)
{
	struct net *net;

	if (net_open(NULL, &net)) {
		printf("skip: test_net: libcurl is not installed\n");
		return 0;
	}
	test_fetch(net);
	test_failures(net);
	test_redirect(net);
	test_timers(net);
	test_posts(net);
	test_fetch(net);
	net_unref(net);
	test_no_descriptors();
	return 0;
}
