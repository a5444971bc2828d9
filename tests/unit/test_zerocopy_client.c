/* SPDX-License-Identifier: Apache-2.0 */
/* The loader's end of zero-copy delivery, with a daemon that does not answer,
   or is not what it seems. */
#include "loader/run/feed/zerocopy_client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/data/wire/zerocopy_message.h"
#include "loader/util/cancel.h"
#include "tests/unit/t.h"

/* No wait of this test is longer. */
enum {
	DEADLINE_S = 30,
	CAPACITY = 2 << 20,
	SIZE = 100,
	SLOT = 7,
	COPIES_MAX = 3
};

/* A daemon that the test plays. */
struct server {
	int listener;
	int fd; /* of the loader */
	int memory;
	bool may_keep; /* of the answers */
	char address[sizeof(struct sockaddr_un)];
};

static void server_open(struct server *s)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(name);

	*s = (struct server){ .fd = -1 };
	s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	/* The kernel chooses an abstract address. */
	CHECK(!bind(s->listener, (struct sockaddr *)&name,
		    sizeof(sa_family_t)));
	CHECK(!listen(s->listener, 4));
	CHECK(!getsockname(s->listener, (struct sockaddr *)&name, &size));
	size -= (socklen_t)offsetof(struct sockaddr_un, sun_path);
	memcpy(s->address, name.sun_path, size);
	s->address[0] = '@';
	s->memory = memfd_create("beton-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(!ftruncate(s->memory, CAPACITY));
	CHECK(!fcntl(s->memory, F_ADD_SEALS, F_SEAL_SHRINK));
}

static void server_close(struct server *s)
{
	close(s->fd);
	close(s->listener);
	close(s->memory);
}

static void *greet_loader(void *arg)
{
	const struct zerocopy_welcome welcome = { ZEROCOPY_WELCOME,
						  ZEROCOPY_VERSION };
	struct server *s = arg;
	struct zerocopy_hello hello;

	s->fd = accept(s->listener, NULL, NULL);
	CHECK(recv(s->fd, &hello, sizeof(hello), 0) == sizeof(hello));
	CHECK(send(s->fd, &welcome, sizeof(welcome), 0) == sizeof(welcome));
	return NULL;
}

static struct zerocopy_client *connect_to(struct server *s)
{
	const struct zerocopy_client_name name = { "test", 0, 1 };
	struct zerocopy_client *l;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, greet_loader, s));
	CHECK(!zerocopy_client_open(s->address, &name, &l));
	pthread_join(thread, NULL);
	return l;
}

/* A request on a thread of its own. */
struct request {
	struct zerocopy_client *l;
	struct acquired acquired;
	int result;
	pthread_t thread;
};

static void *run_request(void *arg)
{
	struct request *q = arg;

	q->result = zerocopy_client_get(q->l, "batch", NULL, &q->acquired);
	return NULL;
}

static void request_begin(struct request *q, struct zerocopy_client *l)
{
	*q = (struct request){ .l = l };
	CHECK(!pthread_create(&q->thread, NULL, run_request, q));
}

static int request_end(struct request *q)
{
	pthread_join(q->thread, NULL);
	return q->result;
}

/* Reads messages up to the next GET. Returns the number of PUTs among them. */
static unsigned read_to_get(struct server *s, uint64_t *request)
{
	union {
		uint32_t kind;
		struct zerocopy_get get;
		struct zerocopy_number number;
	} m;
	unsigned puts = 0;

	for (;;) {
		CHECK(recv(s->fd, &m, sizeof(m), 0) > 0);
		if (m.kind == ZEROCOPY_GET)
			break;
		CHECK(m.kind != ZEROCOPY_PUT || m.number.number == SLOT);
		puts += m.kind == ZEROCOPY_PUT;
	}
	*request = m.get.request;
	return puts;
}

/* Sends a batch with its memory, whose descriptor comes `copies` times. */
static void answer_with(struct server *s, uint64_t request, unsigned copies)
{
	const struct zerocopy_batch batch = {
		.kind = ZEROCOPY_BATCH,
		.request = request,
		.slot = SLOT,
		.size = SIZE,
		.capacity = CAPACITY,
		.may_keep = s->may_keep,
	};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(COPIES_MAX * sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec iov = { (void *)&batch, sizeof(batch) };
	const struct msghdr m = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen =
					  CMSG_SPACE(copies * sizeof(int)) };

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(copies * sizeof(int));
	for (unsigned i = 0; i < copies; i++)
		memcpy(CMSG_DATA(&control.head) + i * sizeof(int), &s->memory,
		       sizeof(int));
	CHECK(sendmsg(s->fd, &m, 0) == sizeof(batch));
}

static void answer(struct server *s, uint64_t request)
{
	answer_with(s, request, 1);
}

static struct acquired acquire(struct server *s, struct zerocopy_client *l)
{
	struct request q;
	uint64_t number;

	request_begin(&q, l);
	read_to_get(s, &number);
	answer(s, number);
	CHECK(!request_end(&q));
	CHECK(q.acquired.size == SIZE);
	return q.acquired;
}

/* Sends messages until the daemon takes no more of them. */
static void fill_queue(struct zerocopy_client *l)
{
	for (unsigned i = 0; i < 5000; i++)
		zerocopy_client_report(l, &(struct rank_figures){ .epoch = 0 });
}

static void an_answer_that_does_not_come_can_be_canceled(void)
{
	struct zerocopy_client *l;
	struct zerocopy_report tell;
	struct request q;
	struct server s;
	uint64_t number;

	server_open(&s);
	l = connect_to(&s);
	request_begin(&q, l);
	read_to_get(&s, &number);
	zerocopy_client_cancel(l);
	CHECK(request_end(&q) < 0);
	request_begin(&q, l);
	CHECK(request_end(&q) < 0);
	zerocopy_client_close(l);
	server_close(&s);

	/* The last report passes nevertheless. */
	server_open(&s);
	l = connect_to(&s);
	request_begin(&q, l);
	read_to_get(&s, &number);
	zerocopy_client_cancel(l);
	CHECK(request_end(&q) < 0);
	zerocopy_client_report(l, &(struct rank_figures){ .epoch = 5 });
	zerocopy_client_close(l);
	CHECK(recv(s.fd, &tell, sizeof(tell), 0) == sizeof(tell));
	CHECK(tell.kind == ZEROCOPY_REPORT && tell.figures.epoch == 5);
	CHECK(!recv(s.fd, &tell, sizeof(tell), 0));
	server_close(&s);
}

static void a_request_that_is_not_taken_can_be_canceled(void)
{
	struct zerocopy_client *l;
	struct request q;
	struct server s;

	server_open(&s);
	l = connect_to(&s);
	fill_queue(l);
	request_begin(&q, l);
	zerocopy_client_cancel(l);
	CHECK(request_end(&q) < 0);
	zerocopy_client_close(l);
	server_close(&s);
}

static void a_daemon_that_ends_ends_the_wait(void)
{
	struct zerocopy_client *l;
	struct request q;
	struct server s;

	server_open(&s);
	l = connect_to(&s);
	fill_queue(l);
	request_begin(&q, l);
	close(s.fd);
	CHECK(request_end(&q) < 0 && zerocopy_client_is_broken(l));
	zerocopy_client_close(l);
	server_close(&s);
}

/* The next request sends what the daemon did not take, once. */
static void a_release_does_not_wait_and_is_not_lost(void)
{
	struct zerocopy_client *l;
	struct acquired a, b;
	struct request q;
	struct server s;
	uint64_t number;

	server_open(&s);
	l = connect_to(&s);
	a = acquire(&s, l);
	b = acquire(&s, l);
	fill_queue(l);
	zerocopy_client_release(l, a.mapped);
	zerocopy_client_release(l, b.mapped);
	request_begin(&q, l);
	CHECK(read_to_get(&s, &number) == 2);
	answer(&s, number);
	CHECK(!request_end(&q));
	zerocopy_client_release(l, q.acquired.mapped);
	request_begin(&q, l);
	CHECK(read_to_get(&s, &number) == 1);
	answer(&s, number);
	CHECK(!request_end(&q));
	zerocopy_client_close(l);
	server_close(&s);
}

/* A descriptor that the loader has no use for stays open. */
static void more_than_one_descriptor_is_refused(void)
{
	struct zerocopy_client *l;
	struct request q;
	struct server s;
	uint64_t number;
	int before, after;

	for (unsigned copies = 2; copies <= COPIES_MAX; copies++) {
		server_open(&s);
		l = connect_to(&s);
		acquire(&s, l);
		before = dup(s.memory);
		close(before);
		request_begin(&q, l);
		read_to_get(&s, &number);
		answer_with(&s, number, copies);
		CHECK(request_end(&q) == -EPROTO);
		CHECK(zerocopy_client_is_broken(l));
		after = dup(s.memory);
		close(after);
		CHECK(before == after);
		zerocopy_client_close(l);
		server_close(&s);
	}
}

/* Returns the result of a request whose answer has this result. */
static int result_of(int answered, bool *is_broken)
{
	struct zerocopy_batch batch = { .kind = ZEROCOPY_BATCH,
					.result = answered };
	struct zerocopy_client *l;
	struct request q;
	struct server s;

	server_open(&s);
	l = connect_to(&s);
	request_begin(&q, l);
	read_to_get(&s, &batch.request);
	CHECK(send(s.fd, &batch, sizeof(batch), 0) == sizeof(batch));
	request_end(&q);
	*is_broken = zerocopy_client_is_broken(l);
	zerocopy_client_close(l);
	server_close(&s);
	return q.result;
}

/* A peer that is no daemon may send any number. */
static void numbers_that_are_no_errors_are_refused(void)
{
	static const int bad[] = { 1, INT_MAX, INT_MIN, -4096, -ECANCELED };
	bool is_broken;

	CHECK(result_of(-ENOENT, &is_broken) == -ENOENT && !is_broken);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(result_of(bad[i], &is_broken) == -EPROTO && is_broken);
}

/* --- another connection --- */

static bool is_mapped(const void *at)
{
	unsigned char resident;

	return !mincore((void *)at, 1, &resident);
}

static void reconnect_to(struct server *s, struct zerocopy_client *l)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, greet_loader, s));
	CHECK(!zerocopy_client_reopen(l, s->address, NULL));
	pthread_join(thread, NULL);
}

/* Both daemons give their memory the same number. */
static void a_restarted_daemon_is_used(void)
{
	struct zerocopy_client *l;
	struct acquired before, after;
	struct server old, new;
	struct request q;
	uint64_t number;

	server_open(&old);
	l = connect_to(&old);
	CHECK(pwrite(old.memory, "old", 4, 0) == 4);
	before = acquire(&old, l);
	server_close(&old);
	request_begin(&q, l);
	CHECK(request_end(&q) < 0 && zerocopy_client_is_broken(l));
	CHECK(zerocopy_client_reopen(l, old.address, NULL) == -ECONNREFUSED);
	CHECK(zerocopy_client_is_broken(l));

	server_open(&new);
	reconnect_to(&new, l);
	CHECK(!zerocopy_client_is_broken(l));
	CHECK(pwrite(new.memory, "new", 4, 0) == 4);
	after = acquire(&new, l);
	CHECK(!memcmp(before.bytes, "old", 4) &&
	      !memcmp(after.bytes, "new", 4));
	/* The new daemon does not own that buffer. */
	zerocopy_client_release(l, before.mapped);
	request_begin(&q, l);
	CHECK(!read_to_get(&new, &number));
	answer(&new, number);
	CHECK(!request_end(&q));
	CHECK(!is_mapped(before.bytes) && is_mapped(after.bytes));
	zerocopy_client_close(l);
	server_close(&new);
}

static void unsent_requests_are_not_sent_to_another_daemon(void)
{
	struct zerocopy_client *l;
	struct server old, new;
	struct request q;
	struct acquired acquired;
	uint64_t number;

	server_open(&old);
	l = connect_to(&old);
	acquired = acquire(&old, l);
	fill_queue(l);
	zerocopy_client_release(l, acquired.mapped);
	server_close(&old);
	request_begin(&q, l);
	CHECK(request_end(&q) < 0);
	server_open(&new);
	reconnect_to(&new, l);
	request_begin(&q, l);
	CHECK(!read_to_get(&new, &number));
	zerocopy_client_cancel(l);
	CHECK(request_end(&q) < 0);
	CHECK(zerocopy_client_reopen(l, new.address, NULL) == -ECANCELED);
	zerocopy_client_close(l);
	server_close(&new);
}

static bool is_third_question(void *asked)
{
	return ++*(int *)asked == 3;
}

/* The kernel accepts for a daemon that is stopped. */
static void a_greeting_can_be_interrupted(void)
{
	const struct zerocopy_client_name name = { NULL, 0, 1 };
	int asked = 0;
	struct cancel cancel = { .fd = -1,
				 .asked = is_third_question,
				 .arg = &asked };
	struct zerocopy_client *l;
	struct server s;

	server_open(&s);
	CHECK(!zerocopy_client_make(&name, &l));
	CHECK(zerocopy_client_reopen(l, s.address, &cancel) == -ECANCELED);
	CHECK(asked == 3 && zerocopy_client_is_broken(l));
	zerocopy_client_close(l);
	server_close(&s);
}

/* --- kept batches --- */

static void fill_memory(const struct server *s, int byte)
{
	static char bytes[CAPACITY];

	memset(bytes, byte, sizeof(bytes));
	CHECK(pwrite(s->memory, bytes, CAPACITY, 0) == CAPACITY);
}

static char byte_in_memory(const struct server *s, off_t at)
{
	char byte;

	CHECK(pread(s->memory, &byte, 1, at) == 1);
	return byte;
}

static void writes_to_a_kept_batch_are_private(void)
{
	struct zerocopy_client *l;
	struct acquired a;
	struct server s;
	char *bytes;

	server_open(&s);
	s.may_keep = true;
	fill_memory(&s, 'a');
	l = connect_to(&s);
	a = acquire(&s, l);
	CHECK(zerocopy_client_keep(l, a.mapped));
	CHECK(zerocopy_client_keep(l, a.mapped)); /* for another column */
	bytes = (char *)a.bytes;
	bytes[5] = 'x';
	bytes[CAPACITY - 1] = 'y';
	CHECK(bytes[4] == 'a' && bytes[5] == 'x');
	CHECK(byte_in_memory(&s, 5) == 'a');
	CHECK(byte_in_memory(&s, CAPACITY - 1) == 'a');
	zerocopy_client_release(l, a.mapped);
	/* The next batch in this memory. */
	fill_memory(&s, 'b');
	a = acquire(&s, l);
	CHECK((char *)a.bytes == bytes);
	CHECK(bytes[4] == 'b' && bytes[5] == 'b' && bytes[CAPACITY - 1] == 'b');
	zerocopy_client_release(l, a.mapped);
	zerocopy_client_close(l);
	server_close(&s);
}

static void a_daemon_short_of_memory_gets_it_back(void)
{
	struct zerocopy_client *l;
	struct acquired a, b;
	struct server s;

	server_open(&s);
	l = connect_to(&s);
	a = acquire(&s, l);
	CHECK(!zerocopy_client_keep(l, a.mapped));
	/* A batch that two steps read is of neither of their users. */
	s.may_keep = true;
	b = acquire(&s, l);
	CHECK(!zerocopy_client_keep(l, b.mapped));
	zerocopy_client_release(l, a.mapped);
	CHECK(zerocopy_client_keep(l, b.mapped));
	zerocopy_client_release(l, b.mapped);
	zerocopy_client_close(l);
	server_close(&s);
}

/* The user may have written to it. */
static void a_kept_batch_is_not_delivered_again(void)
{
	struct zerocopy_client *l;
	struct acquired a;
	struct request q;
	struct server s;
	uint64_t number;

	server_open(&s);
	s.may_keep = true;
	l = connect_to(&s);
	a = acquire(&s, l);
	CHECK(zerocopy_client_keep(l, a.mapped));
	request_begin(&q, l);
	CHECK(!read_to_get(&s, &number));
	answer(&s, number);
	CHECK(request_end(&q) == -EBUSY);
	CHECK(!zerocopy_client_is_broken(l));
	zerocopy_client_release(l, a.mapped);
	request_begin(&q, l);
	CHECK(read_to_get(&s, &number) == 2);
	answer(&s, number);
	CHECK(!request_end(&q));
	zerocopy_client_release(l, q.acquired.mapped);
	zerocopy_client_close(l);
	server_close(&s);
}

static void a_kept_batch_outlives_the_client(void)
{
	struct zerocopy_client *l;
	struct acquired a;
	struct server s;
	char byte;

	server_open(&s);
	s.may_keep = true;
	fill_memory(&s, 'a');
	l = connect_to(&s);
	a = acquire(&s, l);
	CHECK(zerocopy_client_keep(l, a.mapped));
	zerocopy_client_close(l);
	/* The daemon sees the end of the connection. */
	CHECK(!recv(s.fd, &byte, 1, 0));
	CHECK(a.bytes[0] == 'a' && a.bytes[SIZE - 1] == 'a');
	zerocopy_client_release(l, a.mapped);
	CHECK(!is_mapped(a.bytes));
	server_close(&s);
}

struct release {
	struct zerocopy_client *client;
	struct mapped *mapped;
};

static void *run_release(void *arg)
{
	const struct release *r = arg;

	zerocopy_client_release(r->client, r->mapped);
	return NULL;
}

/* The release must use no socket that the close has closed, which the thread
   sanitizer reports. */
static void a_thread_releases_while_another_closes(void)
{
	struct zerocopy_client *l;
	struct acquired kept;
	struct release release;
	struct server s;
	pthread_t thread;

	server_open(&s);
	s.may_keep = true;
	l = connect_to(&s);
	kept = acquire(&s, l);
	CHECK(zerocopy_client_keep(l, kept.mapped));
	release = (struct release){ l, kept.mapped };
	CHECK(!pthread_create(&thread, NULL, run_release, &release));
	usleep(10000);
	zerocopy_client_close(l);
	pthread_join(thread, NULL);
	server_close(&s);
}

/* The child must not see the batches that follow in this memory. */
static void a_forked_child_has_a_copy(void)
{
	struct zerocopy_client *l;
	struct acquired a;
	struct server s;
	int changed[2], status;
	pid_t child;
	char byte;

	server_open(&s);
	s.may_keep = true;
	fill_memory(&s, 'a');
	l = connect_to(&s);
	a = acquire(&s, l);
	CHECK(zerocopy_client_keep(l, a.mapped));
	((char *)a.bytes)[7] = 'x';
	CHECK(!pipe(changed));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		alarm(DEADLINE_S);
		CHECK(read(changed[0], &byte, 1) == 1);
		CHECK(a.bytes[0] == 'a' && a.bytes[7] == 'x');
		CHECK(a.bytes[CAPACITY - 1] == 'a');
		_exit(0);
	}
	zerocopy_client_release(l, a.mapped);
	fill_memory(&s, 'b');
	CHECK(write(changed[1], "b", 1) == 1);
	CHECK(waitpid(child, &status, 0) == child && !status);
	CHECK(a.bytes[7] == 'b');
	zerocopy_client_close(l);
	close(changed[0]);
	close(changed[1]);
	server_close(&s);
}

/* --- other processes --- */

/* A child of fork(), like a worker of another loader, may live on for long. */
static void a_forked_child_keeps_nothing(void)
{
	struct zerocopy_client *l;
	struct server s;
	struct acquired acquired;
	int ready[2];
	char answer;
	pid_t child;

	server_open(&s);
	l = connect_to(&s);
	acquired = acquire(&s, l);
	CHECK(!pipe(ready));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		answer = is_mapped(acquired.bytes) ? 'm' : 'n';
		alarm(DEADLINE_S);
		if (write(ready[1], &answer, 1) == 1)
			pause();
		_exit(1);
	}
	CHECK(read(ready[0], &answer, 1) == 1);
	CHECK(answer == 'n' && is_mapped(acquired.bytes));
	zerocopy_client_close(l);
	CHECK(!recv(s.fd, &answer, 1, 0));
	CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
	close(ready[0]);
	close(ready[1]);
	server_close(&s);
}

enum { OTHER_USER = 65534 };

static void serve_as_other_user(int out)
{
	struct server s;

	alarm(DEADLINE_S);
	CHECK(!setgid(OTHER_USER) && !setuid(OTHER_USER));
	server_open(&s);
	CHECK(write(out, s.address, sizeof(s.address)) == sizeof(s.address));
	for (;;)
		accept(s.listener, NULL, NULL);
}

/* That user could change the memory after it was checked. */
static void a_daemon_of_another_user_is_refused(void)
{
	const struct zerocopy_client_name name = { NULL, 0, 1 };
	struct zerocopy_client *l;
	struct server s;
	int address[2];
	pid_t child;

	if (geteuid()) {
		printf("skip: only root can be another user\n");
		return;
	}
	CHECK(!pipe(address));
	child = fork();
	CHECK(child >= 0);
	if (!child)
		serve_as_other_user(address[1]);
	CHECK(read(address[0], s.address, sizeof(s.address)) ==
	      sizeof(s.address));
	CHECK(zerocopy_client_open(s.address, &name, &l) == -EPERM);
	CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
	close(address[0]);
	close(address[1]);
}

int main(void)
{
	alarm(DEADLINE_S);
	a_greeting_can_be_interrupted();
	an_answer_that_does_not_come_can_be_canceled();
	a_request_that_is_not_taken_can_be_canceled();
	a_daemon_that_ends_ends_the_wait();
	a_release_does_not_wait_and_is_not_lost();
	more_than_one_descriptor_is_refused();
	numbers_that_are_no_errors_are_refused();
	a_restarted_daemon_is_used();
	unsent_requests_are_not_sent_to_another_daemon();
	writes_to_a_kept_batch_are_private();
	a_daemon_short_of_memory_gets_it_back();
	a_kept_batch_is_not_delivered_again();
	a_kept_batch_outlives_the_client();
	a_thread_releases_while_another_closes();
	a_forked_child_has_a_copy();
	a_forked_child_keeps_nothing();
	a_daemon_of_another_user_is_refused();
	return 0;
}
