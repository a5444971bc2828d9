/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings with a kernel that this file plays: it takes the submissions of a
 * queue, and puts requests into the entries that it has. Half of the requests
 * are answered by the thread of the queue, the others by a thread of the test.
 * The last test asks the real kernel, which takes no entries for a file that is
 * not /dev/fuse.
 */
#include <unistd.h>

static long fake_syscall(long number, ...);
#define syscall fake_syscall
#include "fs/mount/fuse/uring.c"
#undef syscall

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "tests/unit/t.h"

enum {
	QUEUES = 2,
	REQUESTS = 5000, /* for each queue */
	PAYLOAD = 64 << 10,
	LARGE = 48 << 10,
	AT_SQ_HEAD = 0,
	AT_SQ_TAIL = 64,
	AT_CQ_HEAD = 128,
	AT_CQ_TAIL = 192,
	AT_CQES = 4096,
	AT_ARRAY = 32 << 10,
	RING_SIZE = 64 << 10,
	SQES_SIZE = 128 << 10,
};

static bool is_real;

/* --- the kernel --- */

struct fake_queue {
	int fd;
	unsigned entries;
	char *ring;
	struct sqe *sqes;
	int wake_fd;
	uint64_t *wake_at; /* the read that waits; NULL: none */
	bool has_refused;  /* the first entry: INIT is not there yet */
	struct uring_entry *owners[ENTRIES_MAX];
	unsigned num_free;
	unsigned num_out; /* requests without a reply */
	uint64_t num_sent;
	uint64_t num_replies;
	bool is_aborted;
};

static struct fake_queue kernel[QUEUES];
static unsigned num_kernel;

static unsigned *word(const struct fake_queue *k, size_t at)
{
	return (unsigned *)(k->ring + at);
}

static void put_cqe(const struct fake_queue *k, uint64_t data, int result)
{
	unsigned *tail = word(k, AT_CQ_TAIL);
	struct io_uring_cqe *cqes = (void *)(k->ring + AT_CQES);

	cqes[*tail % (2 * k->entries)] =
		(struct io_uring_cqe){ .user_data = data, .res = result };
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
}

static size_t size_of_reply(uint64_t id)
{
	return id % 11 ? id % 4096 : LARGE + id % 64;
}

static void check_reply(struct fake_queue *k, const struct sqe *sqe)
{
	const struct uring_entry *e = (void *)(uintptr_t)sqe->user_data;
	const struct fuse_out_header *out = (void *)e->head->in_out;
	const unsigned char *payload = e->payload;

	CHECK(sqe->commit_id && sqe->commit_id <= k->num_sent);
	CHECK(out->unique == sqe->commit_id);
	CHECK(out->error == -(int)(sqe->commit_id % 3));
	CHECK(e->head->payload_size == size_of_reply(sqe->commit_id));
	CHECK(!e->head->payload_size ||
	      payload[e->head->payload_size - 1] == sqe->commit_id % 251);
	k->num_out--;
	k->num_replies++;
}

static void take_sqe(struct fake_queue *k, const struct sqe *sqe)
{
	CHECK(sqe->flags == IOSQE_FIXED_FILE);
	if (sqe->opcode == OP_READ) {
		CHECK(sqe->fd == FILE_WAKE && sqe->len == 8 && !k->wake_at);
		k->wake_at = (void *)(uintptr_t)sqe->addr;
		return;
	}
	CHECK(sqe->opcode == OP_URING_CMD && sqe->fd == FILE_FUSE);
	CHECK(sqe->qid == k - kernel);
	if (sqe->cmd_op == CMD_REGISTER && !k->has_refused) {
		k->has_refused = true;
		put_cqe(k, sqe->user_data, -EAGAIN);
		return;
	}
	if (sqe->cmd_op == CMD_REGISTER) {
		const struct iovec *parts = (void *)(uintptr_t)sqe->addr;

		CHECK(sqe->len == 2 && parts[1].iov_len == PAYLOAD);
		CHECK(parts[0].iov_len == sizeof(struct uring_head));
	} else {
		CHECK(sqe->cmd_op == CMD_COMMIT_AND_FETCH);
		check_reply(k, sqe);
	}
	k->owners[k->num_free++] = (void *)(uintptr_t)sqe->user_data;
}

static void send_request(struct fake_queue *k)
{
	struct uring_entry *e = k->owners[--k->num_free];

	e->head->commit_id = ++k->num_sent;
	e->head->payload_size = 0;
	k->num_out++;
	put_cqe(k, (uintptr_t)e, 0);
}

static void abort_entries(struct fake_queue *k)
{
	k->is_aborted = true;
	while (k->num_free)
		put_cqe(k, (uintptr_t)k->owners[--k->num_free], -ENOTCONN);
}

/* Waits until another thread wants something. */
static void wait_for_wake(struct fake_queue *k)
{
	struct pollfd fd = { .fd = k->wake_fd, .events = POLLIN };

	CHECK(k->wake_at && poll(&fd, 1, 20000) == 1);
	CHECK(read(k->wake_fd, k->wake_at, 8) == 8);
	k->wake_at = NULL;
	put_cqe(k, 0, 8);
}

static long enter(struct fake_queue *k, unsigned n, unsigned least)
{
	unsigned *head = word(k, AT_SQ_HEAD);

	for (unsigned i = 0; i < n; i++) {
		const struct sqe sqe = k->sqes[*head % k->entries];

		take_sqe(k, &sqe);
		__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	}
	if (!least)
		return n;
	/* Some stay free, so that replies of all kinds meet. */
	while (k->num_free > 3 && k->num_sent < REQUESTS)
		send_request(k);
	if (k->num_replies == REQUESTS && !k->is_aborted)
		abort_entries(k);
	if (*word(k, AT_CQ_HEAD) == *word(k, AT_CQ_TAIL))
		wait_for_wake(k);
	return n;
}

static unsigned power_of_two(unsigned n)
{
	unsigned p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static long setup(unsigned entries, struct io_uring_params *p)
{
	struct fake_queue *k = &kernel[num_kernel++];

	CHECK(num_kernel <= QUEUES);
	CHECK(p->flags == (SETUP_SQE128 | SETUP_SUBMIT_ALL | SETUP_R_DISABLED));
	k->entries = power_of_two(entries);
	k->fd = memfd_create("fake", MFD_CLOEXEC);
	CHECK(k->fd >= 0 &&
	      !ftruncate(k->fd, (off_t)IORING_OFF_SQES + SQES_SIZE));
	k->ring = mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		       k->fd, 0);
	k->sqes = mmap(NULL, SQES_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		       k->fd, IORING_OFF_SQES);
	CHECK(k->ring != MAP_FAILED && k->sqes != MAP_FAILED);
	p->sq_entries = k->entries;
	p->cq_entries = 2 * k->entries;
	p->sq_off.head = AT_SQ_HEAD;
	p->sq_off.tail = AT_SQ_TAIL;
	p->sq_off.array = AT_ARRAY;
	p->cq_off.head = AT_CQ_HEAD;
	p->cq_off.tail = AT_CQ_TAIL;
	p->cq_off.cqes = AT_CQES;
	return fcntl(k->fd, F_DUPFD_CLOEXEC, 0);
}

static struct fake_queue *queue_of(int fd)
{
	struct stat a, b;

	CHECK(!fstat(fd, &a));
	for (unsigned i = 0; i < num_kernel; i++) {
		CHECK(!fstat(kernel[i].fd, &b));
		if (a.st_ino == b.st_ino)
			return &kernel[i];
	}
	CHECK(false);
	return NULL;
}

static long fake_syscall(long number, ...)
{
	long a[6], r = 0;
	va_list args;

	va_start(args, number);
	for (unsigned i = 0; i < ARRAY_LEN(a); i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (is_real)
		r = (syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	else if (number == SYS_io_uring_setup)
		r = setup((unsigned)a[0], (void *)a[1]);
	else if (number == SYS_io_uring_enter)
		r = enter(queue_of((int)a[0]), (unsigned)a[1], (unsigned)a[2]);
	else if ((unsigned)a[1] == REGISTER_FILES)
		queue_of((int)a[0])->wake_fd = ((const int *)a[2])[FILE_WAKE];
	return r;
}

/* --- the daemon --- */

struct daemon {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct uring_entry *passed_on; /* guarded by lock */
	bool is_over;
};

static void answer(struct uring_entry *e)
{
	const size_t size = size_of_reply(e->id);

	CHECK(uring_reply_max(e) == PAYLOAD);
	memset(e->payload, (int)(e->id % 251), size);
	uring_reply(e, -(int)(e->id % 3), size);
}

static void serve(void *arg, struct uring_entry *e)
{
	struct daemon *d = arg;

	if (e->id % 2) {
		answer(e);
		return;
	}
	pthread_mutex_lock(&d->lock);
	e->next = d->passed_on;
	d->passed_on = e;
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->lock);
}

static void *answer_others(void *arg)
{
	struct daemon *d = arg;
	struct uring_entry *e;

	pthread_mutex_lock(&d->lock);
	while (!d->is_over) {
		e = d->passed_on;
		if (!e) {
			pthread_cond_wait(&d->changed, &d->lock);
			continue;
		}
		d->passed_on = e->next;
		pthread_mutex_unlock(&d->lock);
		answer(e);
		pthread_mutex_lock(&d->lock);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

/* --- tests --- */

static void every_request_gets_its_reply(void)
{
	struct daemon d = { .is_over = false };
	struct uring *u;
	pthread_t threads[2];
	struct pollfd ended;

	pthread_mutex_init(&d.lock, NULL);
	pthread_cond_init(&d.changed, NULL);
	CHECK(!uring_open(QUEUES, &u));
	CHECK(uring_queues(u) == QUEUES);
	CHECK(!uring_connect(u, 0));
	CHECK(!uring_allocate(u, PAYLOAD));
	for (unsigned i = 0; i < ARRAY_LEN(threads); i++)
		CHECK(!thread_start(&threads[i], answer_others, &d));
	CHECK(!uring_start(u, serve, &d));
	/* The kernel aborts each queue after its last reply. */
	for (unsigned i = 0; i < QUEUES; i++)
		pthread_join(u->queues[i].thread, NULL);
	ended = (struct pollfd){ .fd = uring_ended_fd(u), .events = POLLIN };
	CHECK(poll(&ended, 1, 0) == 1);
	for (unsigned i = 0; i < QUEUES; i++) {
		u->queues[i].has_thread = false;
		CHECK(kernel[i].num_replies == REQUESTS && !kernel[i].num_out);
		CHECK(u->queues[i].kept <= KEPT_MAX);
	}
	pthread_mutex_lock(&d.lock);
	d.is_over = true;
	pthread_cond_broadcast(&d.changed);
	pthread_mutex_unlock(&d.lock);
	for (unsigned i = 0; i < ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	uring_close(u);
}

/* Memory that is too much to keep is released. */
static void entries_keep_little_memory(void)
{
	enum { BIG = 1 << 20, PAGES = BIG / 4096, ENTRIES = 16 };
	struct uring u = { .num_entries = ENTRIES, .payload_size = BIG };
	struct uring_queue q = { .uring = &u };
	unsigned char there[PAGES];
	size_t kept = 0;

	CHECK(!allocate_queue(&q));
	for (unsigned i = 0; i < ENTRIES; i++) {
		memset(q.entries[i].payload, 1, BIG);
		note_size(&q, &q.entries[i], BIG);
		trim_memory(&q);
	}
	for (unsigned i = 0; i < ENTRIES; i++) {
		CHECK(!mincore(q.entries[i].payload, BIG, there));
		/* It may have the name of the next request. */
		CHECK(there[0] & 1 && *(char *)q.entries[i].payload == 1);
		for (unsigned p = 0; p < PAGES; p++)
			kept += there[p] & 1 ? 4096 : 0;
	}
	CHECK(kept == q.kept && kept <= KEPT_MAX && kept > KEPT_MAX - BIG);
	q.fd = q.wake_fd = -1;
	pthread_mutex_init(&q.lock, NULL);
	close_queue(&q);
}

/* An end by a signal: no request came, and the kernel aborts nothing. */
static void the_end_wakes_the_threads(void)
{
	struct daemon d = { .is_over = false };
	struct uring *u;

	num_kernel = 0;
	for (unsigned i = 0; i < QUEUES; i++)
		kernel[i] = (struct fake_queue){ .num_sent = REQUESTS };
	CHECK(!uring_open(QUEUES, &u));
	CHECK(!uring_connect(u, 0) && !uring_allocate(u, PAYLOAD));
	CHECK(!uring_start(u, serve, &d));
	uring_close(u);
}

/* A ring takes nothing that could open a way out of the sandbox. */
static void other_operations_are_refused(struct uring *u)
{
	enum { OP_NOP = 0, OP_WRITE = 23, OP_OPENAT = 18, OP_SOCKET = 45 };
	const uint8_t ops[] = { OP_NOP, OP_OPENAT, OP_WRITE, OP_SOCKET };
	struct uring_queue *q = &u->queues[0];

	for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
		const struct io_uring_cqe *cqe =
			&q->cqes[*q->cq_head & q->cq_mask];

		next_sqe(q)->opcode = ops[i];
		CHECK(!submit(q, 1));
		CHECK(cqe->res == -EACCES);
		++*q->cq_head;
	}
	/* A file that was not registered. */
	put_wake(q);
	q->sqes[(q->tail - 1) & q->sq_mask].flags = 0;
	CHECK(!submit(q, 1));
	CHECK(q->cqes[*q->cq_head & q->cq_mask].res == -EACCES);
	++*q->cq_head;
}

static void the_real_kernel_refuses_other_files(void)
{
	struct daemon d = { .is_over = false };
	int file = memfd_create("file", MFD_CLOEXEC);
	struct uring *u;
	int r;

	is_real = true;
	r = uring_open(1, &u);
	if (r) {
		printf("skip: test_uring: io_uring: %s\n", strerror(-r));
	} else {
		CHECK(!uring_connect(u, file) && !uring_allocate(u, PAYLOAD));
		other_operations_are_refused(u);
		CHECK(uring_start(u, serve, &d) == -EOPNOTSUPP);
		uring_close(u);
	}
	close(file);
	is_real = false;
}

/* A share of the machine's memory, whatever the number of its CPUs is. */
static void entries_are_bounded(void)
{
	CHECK(entries_for(1) == ENTRIES_MAX && entries_for(2) == ENTRIES_MAX);
	CHECK(entries_for(8) == 32 && entries_for(256) == ENTRIES_MIN);
	CHECK(uring_cpus() >= thread_usable_cpus() || !uring_cpus());
}

int main(void)
{
	every_request_gets_its_reply();
	entries_keep_little_memory();
	the_end_wakes_the_threads();
	the_real_kernel_refuses_other_files();
	entries_are_bounded();
	return 0;
}
