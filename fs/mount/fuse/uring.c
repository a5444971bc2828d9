/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/fuse/uring.h"

#include <errno.h>
#include <linux/fuse.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/thread.h"

/* --- the interface of the kernel, which old headers lack --- */

#ifndef SYS_io_uring_setup
#	define SYS_io_uring_setup 425
#	define SYS_io_uring_enter 426
#	define SYS_io_uring_register 427
#endif

enum {
	SETUP_R_DISABLED = 1 << 6,
	SETUP_SUBMIT_ALL = 1 << 7,
	SETUP_SQE128 = 1 << 10,
	REGISTER_FILES = 2,
	REGISTER_RESTRICTIONS = 11,
	REGISTER_ENABLE_RINGS = 12,
	RESTRICTION_SQE_OP = 1,
	RESTRICTION_SQE_FLAGS_REQUIRED = 3,
	OP_READ = 22,
	OP_URING_CMD = 46,
	CMD_REGISTER = 1,
	CMD_COMMIT_AND_FETCH = 2,
};

/* An entry of a submission queue with SETUP_SQE128. */
struct sqe {
	uint8_t opcode;
	uint8_t flags;
	uint16_t ioprio;
	int32_t fd;
	uint32_t cmd_op; /* the lower half of the offset of a read */
	uint32_t pad;
	uint64_t addr;
	uint32_t len;
	uint32_t rw_flags;
	uint64_t user_data;
	uint64_t pad2;
	uint64_t cmd_flags;
	uint64_t commit_id;
	uint16_t qid;
	uint8_t pad3[62];
};

_Static_assert(sizeof(struct sqe) == 128, "SETUP_SQE128");
_Static_assert(offsetof(struct sqe, cmd_flags) == 48, "the command's place");
_Static_assert(sizeof(struct uring_head) == 288, "fuse_uring_req_header");

struct restriction {
	uint16_t opcode;
	uint8_t value;
	uint8_t pad;
	uint32_t pad2[3];
};

/* Indexes of the files that a ring has. */
enum { FILE_FUSE, FILE_WAKE, FILES };

/* --- memory ---
 * A thread that waits, for example for a batch, keeps an entry. So there are
 * enough entries for many waiting threads on one CPU. Those that the kernel
 * used last are used next, so that most are never touched. */
enum {
	ENTRIES_MAX = 128, /* of a queue */
	ENTRIES_MIN = 16,
	ENTRIES_ALL = 256, /* of all queues, if each has ENTRIES_MIN */
	/* Bytes of replies that the entries of a queue keep in memory. */
	KEPT_MAX = 7 << 20,
	PAGE = 4096,
};

struct uring_queue {
	struct uring *uring;
	unsigned id; /* the CPU */
	pthread_t thread;
	bool has_thread;
	pthread_t self; /* the thread, set by itself */
	int fd;
	int wake_fd; /* an eventfd */

	/* Memory of the kernel. */
	void *rings;
	size_t rings_size;
	struct sqe *sqes;
	size_t sqes_size;
	unsigned *sq_head, *sq_tail, sq_mask;
	unsigned *cq_head, *cq_tail, cq_mask;
	struct io_uring_cqe *cqes;

	/* Only for the thread of the queue. */
	unsigned tail; /* of the submissions */
	uint64_t wakes;
	unsigned num_alive; /* entries that the kernel has taken, or will */
	size_t kept;	    /* bytes, of all entries */
	struct uring_entry *to_trim; /* their replies are too large to keep */

	pthread_mutex_t lock;
	struct uring_entry *replied; /* by other threads; guarded by lock */
	bool may_sleep; /* its thread needs a wake; guarded by lock */

	char *memory; /* heads, then payloads */
	size_t memory_size;
	struct uring_entry *entries;
	struct iovec (*parts)[2]; /* of each entry: head and payload */
};

struct uring {
	unsigned num_queues;
	unsigned num_entries; /* of a queue */
	size_t payload_size;
	int ended_fd; /* an eventfd */
	atomic_bool stopping;
	void (*serve)(void *arg, struct uring_entry *entry);
	void *arg;
	pthread_mutex_t ending; /* held while the threads are joined */
	pthread_mutex_t lock;	/* guards the members below */
	pthread_cond_t changed;
	unsigned num_started;
	int result; /* of the start */
	struct uring_queue *queues;
};

/* --- submissions --- */

static struct sqe *next_sqe(struct uring_queue *q)
{
	struct sqe *sqe = &q->sqes[q->tail++ & q->sq_mask];

	memset(sqe, 0, sizeof(*sqe));
	sqe->flags = IOSQE_FIXED_FILE;
	return sqe;
}

static void put_command(struct uring_queue *q, struct uring_entry *e)
{
	struct sqe *sqe = next_sqe(q);

	sqe->opcode = OP_URING_CMD;
	sqe->fd = FILE_FUSE;
	sqe->user_data = (uintptr_t)e;
	sqe->qid = (uint16_t)q->id;
	if (e->is_registered) {
		sqe->cmd_op = CMD_COMMIT_AND_FETCH;
		sqe->commit_id = e->id;
		return;
	}
	sqe->cmd_op = CMD_REGISTER;
	sqe->addr = (uintptr_t)q->parts[e - q->entries];
	sqe->len = 2;
}

/* Completes when another thread has replied, or wants the end. */
static void put_wake(struct uring_queue *q)
{
	struct sqe *sqe = next_sqe(q);

	sqe->opcode = OP_READ;
	sqe->fd = FILE_WAKE;
	sqe->addr = (uintptr_t)&q->wakes;
	sqe->len = sizeof(q->wakes);
	sqe->user_data = 0;
}

static void wake(struct uring_queue *q)
{
	const uint64_t one = 1;

	/* It fails only if the counter is full, and so readable. */
	if (write(q->wake_fd, &one, sizeof(one)) < 0)
		return;
}

/* Submits everything, and waits for `least` completions. */
static int submit(struct uring_queue *q, unsigned least)
{
	unsigned n;
	long r;

	__atomic_store_n(q->sq_tail, q->tail, __ATOMIC_RELEASE);
	do {
		n = q->tail - __atomic_load_n(q->sq_head, __ATOMIC_ACQUIRE);
		r = syscall(SYS_io_uring_enter, q->fd, n, least,
			    IORING_ENTER_GETEVENTS, NULL, 0);
	} while (r < 0 &&
		 (errno == EINTR || errno == EAGAIN || errno == EBUSY));
	return r < 0 ? -errno : 0;
}

/* --- replies --- */

/* The kernel reads the payload when the reply is submitted. If the entry may
   not keep as much memory, it gives the rest back after that. */
static void note_size(struct uring_queue *q, struct uring_entry *e, size_t size)
{
	if (size <= e->kept)
		return;
	size = align_up(size, PAGE) - e->kept;
	if (size <= KEPT_MAX - q->kept) {
		q->kept += size;
		e->kept += size;
		return;
	}
	e->next = q->to_trim;
	q->to_trim = e;
}

static void trim_memory(struct uring_queue *q)
{
	const struct uring_entry *e;

	for (; (e = q->to_trim); q->to_trim = e->next)
		madvise((char *)e->payload + e->kept,
			q->uring->payload_size - e->kept, MADV_DONTNEED);
}

static void put_reply(struct uring_queue *q, struct uring_entry *e)
{
	note_size(q, e, e->head->payload_size);
	put_command(q, e);
}

/* The thread sleeps after this, unless there is something to complete. */
static void put_replies_of_others(struct uring_queue *q)
{
	struct uring_entry *e, *next;

	pthread_mutex_lock(&q->lock);
	e = steal(q->replied);
	q->may_sleep = true;
	pthread_mutex_unlock(&q->lock);
	for (; e; e = next) {
		next = e->next;
		put_reply(q, e);
	}
}

/* Replies of other threads are taken before the thread sleeps again. */
static void note_awake(struct uring_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->may_sleep = false;
	pthread_mutex_unlock(&q->lock);
}

void uring_reply(struct uring_entry *e, int error, size_t size)
{
	struct uring_queue *q = e->queue;
	struct fuse_out_header *out = (void *)e->head->in_out;
	bool needs_wake;

	*out = (struct fuse_out_header){
		.len = (uint32_t)(sizeof(*out) + size),
		.error = error,
		.unique = e->id,
	};
	e->head->payload_size = (uint32_t)size;
	if (pthread_equal(pthread_self(), q->self)) {
		put_reply(q, e);
		return;
	}
	pthread_mutex_lock(&q->lock);
	e->next = q->replied;
	q->replied = e;
	needs_wake = q->may_sleep;
	q->may_sleep = false;
	pthread_mutex_unlock(&q->lock);
	if (needs_wake)
		wake(q);
}

size_t uring_reply_max(const struct uring_entry *e)
{
	return e->queue->uring->payload_size;
}

/* --- completions --- */

static void take_request(struct uring_queue *q, struct uring_entry *e)
{
	struct uring *u = q->uring;

	e->is_registered = true;
	e->id = e->head->commit_id;
	e->payload_size = min_u64(e->head->payload_size, u->payload_size);
	u->serve(u->arg, e);
}

/* EAGAIN: the kernel has not processed the reply to INIT yet. */
static void complete(struct uring_queue *q, uint64_t data, int result)
{
	struct uring_entry *e = (void *)(uintptr_t)data;

	if (!e) {
		put_wake(q);
	} else if (!result) {
		take_request(q, e);
	} else if (result == -EAGAIN || result == -EINTR) {
		put_command(q, e);
	} else {
		q->num_alive--;
	}
}

static void complete_all(struct uring_queue *q)
{
	unsigned head = *q->cq_head;

	while (head != __atomic_load_n(q->cq_tail, __ATOMIC_ACQUIRE)) {
		const struct io_uring_cqe cqe = q->cqes[head++ & q->cq_mask];

		__atomic_store_n(q->cq_head, head, __ATOMIC_RELEASE);
		complete(q, cqe.user_data, cqe.res);
	}
}

/* --- threads --- */

/* If it fails, the CPU is offline or not for this process. */
static void bind_to_cpu(unsigned cpu)
{
	const size_t size = CPU_ALLOC_SIZE(cpu + 1);
	cpu_set_t *set = CPU_ALLOC(cpu + 1);

	if (!set)
		return;
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpu, size, set);
	sched_setaffinity(0, size, set);
	CPU_FREE(set);
}

/* Gives all entries to the kernel. A refusal is there at once. */
static int register_entries(struct uring_queue *q)
{
	int r;

	for (unsigned i = 0; i < q->uring->num_entries; i++)
		put_command(q, &q->entries[i]);
	q->num_alive = q->uring->num_entries;
	put_wake(q);
	r = submit(q, 0);
	if (!r)
		complete_all(q);
	if (!r && !q->num_alive)
		r = -EOPNOTSUPP;
	return r;
}

static void say_started(struct uring *u, int r)
{
	scoped_lock(&u->lock);
	u->num_started++;
	if (r)
		u->result = r;
	pthread_cond_signal(&u->changed);
}

static void say_ended(const struct uring *u)
{
	const uint64_t one = 1;

	if (write(u->ended_fd, &one, sizeof(one)) < 0)
		return;
}

static void *serve_queue(void *arg)
{
	struct uring_queue *q = arg;
	struct uring *u = q->uring;
	int r;

	q->self = pthread_self();
	bind_to_cpu(q->id);
	r = register_entries(q);
	say_started(u, r);
	while (!r && q->num_alive && !atomic_load(&u->stopping)) {
		put_replies_of_others(q);
		r = submit(q, 1);
		trim_memory(q);
		note_awake(q);
		complete_all(q);
	}
	say_ended(u);
	return NULL;
}

/* --- opening and closing --- */

unsigned uring_cpus(void)
{
	FILE *f = fopen("/sys/devices/system/cpu/possible", "re");
	unsigned first = 0, last = 0;
	int n = f ? fscanf(f, "%u-%u", &first, &last) : 0;
	int next = f ? fgetc(f) : EOF;

	if (f)
		fclose(f);
	/* The kernel numbers its queues without gaps. */
	if (n < 1 || first || (next != '\n' && next != EOF) ||
	    last >= UINT16_MAX)
		return 0;
	return last + 1;
}

static void *map_ring(int fd, size_t size, off_t off)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_POPULATE, fd, off);

	return at == MAP_FAILED ? NULL : at;
}

static int map_rings(struct uring_queue *q, const struct io_uring_params *p)
{
	const size_t of_cq =
		p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	char *at;
	unsigned *array;

	q->rings_size = max_u64(of_cq, p->sq_off.array +
					       p->sq_entries * sizeof(*array));
	q->sqes_size = p->sq_entries * sizeof(*q->sqes);
	q->rings = map_ring(q->fd, q->rings_size, IORING_OFF_SQ_RING);
	q->sqes = map_ring(q->fd, q->sqes_size, IORING_OFF_SQES);
	if (!q->rings || !q->sqes)
		return -ENOMEM;
	at = q->rings;
	q->sq_head = (void *)(at + p->sq_off.head);
	q->sq_tail = (void *)(at + p->sq_off.tail);
	q->sq_mask = p->sq_entries - 1;
	q->cq_head = (void *)(at + p->cq_off.head);
	q->cq_tail = (void *)(at + p->cq_off.tail);
	q->cq_mask = p->cq_entries - 1;
	q->cqes = (void *)(at + p->cq_off.cqes);
	array = (void *)(at + p->sq_off.array);
	for (unsigned i = 0; i < p->sq_entries; i++)
		array[i] = i;
	return 0;
}

static int open_queue(struct uring_queue *q)
{
	struct io_uring_params params = {
		.flags = SETUP_SQE128 | SETUP_SUBMIT_ALL | SETUP_R_DISABLED,
	};

	q->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (q->wake_fd < 0)
		return -errno;
	/* One more entry is for the read of the eventfd. */
	q->fd = (int)syscall(SYS_io_uring_setup, q->uring->num_entries + 1,
			     &params);
	return q->fd < 0 ? -errno : map_rings(q, &params);
}

static unsigned entries_for(unsigned num_queues)
{
	const unsigned share = ENTRIES_ALL / num_queues;

	return share > ENTRIES_MAX   ? ENTRIES_MAX
	       : share < ENTRIES_MIN ? ENTRIES_MIN
				     : share;
}

unsigned uring_descriptors(unsigned num_queues)
{
	return 1 + 2 * num_queues;
}

int uring_open(unsigned num_queues, struct uring **out)
{
	struct uring *u = calloc(1, sizeof(*u));
	int r = 0;

	if (!u)
		return -ENOMEM;
	u->num_entries = entries_for(num_queues);
	pthread_mutex_init(&u->ending, NULL);
	pthread_mutex_init(&u->lock, NULL);
	pthread_cond_init(&u->changed, NULL);
	u->ended_fd = eventfd(0, EFD_CLOEXEC);
	u->queues = calloc(num_queues, sizeof(*u->queues));
	if (!u->queues || u->ended_fd < 0)
		r = -ENOMEM;
	for (unsigned i = 0; i < num_queues && !r; i++) {
		struct uring_queue *q = &u->queues[i];

		*q = (struct uring_queue){
			.uring = u, .id = i, .fd = -1, .wake_fd = -1
		};
		pthread_mutex_init(&q->lock, NULL);
		u->num_queues = i + 1;
		r = open_queue(q);
	}
	if (r)
		uring_close(u);
	else
		*out = u;
	return r;
}

static int ring_register(const struct uring_queue *q, unsigned what,
			 const void *arg, unsigned n)
{
	return syscall(SYS_io_uring_register, q->fd, what, arg, n) ? -errno : 0;
}

int uring_connect(struct uring *u, int fuse_fd)
{
	const struct restriction rules[] = {
		{ .opcode = RESTRICTION_SQE_OP, .value = OP_URING_CMD },
		{ .opcode = RESTRICTION_SQE_OP, .value = OP_READ },
		{ .opcode = RESTRICTION_SQE_FLAGS_REQUIRED,
		  .value = IOSQE_FIXED_FILE },
	};
	int r = 0;

	for (unsigned i = 0; i < u->num_queues && !r; i++) {
		const struct uring_queue *q = &u->queues[i];
		const int files[FILES] = { fuse_fd, q->wake_fd };

		r = ring_register(q, REGISTER_FILES, files, FILES);
		if (!r)
			r = ring_register(q, REGISTER_RESTRICTIONS, rules,
					  ARRAY_LEN(rules));
		if (!r)
			r = ring_register(q, REGISTER_ENABLE_RINGS, NULL, 0);
	}
	return r;
}

/* Huge pages would make every entry take 2 MiB at its first small reply. */
static int allocate_queue(struct uring_queue *q)
{
	const unsigned n = q->uring->num_entries;
	const size_t heads = align_up(n * sizeof(struct uring_head), 4096);
	const size_t size = q->uring->payload_size;

	q->entries = calloc(n, sizeof(*q->entries));
	q->parts = calloc(n, sizeof(*q->parts));
	q->memory_size = heads + n * size;
	q->memory = mmap(NULL, q->memory_size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (q->memory == MAP_FAILED)
		q->memory = NULL;
	if (!q->entries || !q->parts || !q->memory)
		return -ENOMEM;
	madvise(q->memory, q->memory_size, MADV_NOHUGEPAGE);
	for (unsigned i = 0; i < n; i++) {
		struct uring_entry *e = &q->entries[i];

		e->queue = q;
		/* The next request's name is there before the memory of a
		   reply is released. */
		e->kept = PAGE;
		q->kept += PAGE;
		e->head = (struct uring_head *)q->memory + i;
		e->payload = q->memory + heads + i * size;
		q->parts[i][0] = (struct iovec){ e->head, sizeof(*e->head) };
		q->parts[i][1] = (struct iovec){ e->payload, size };
	}
	return 0;
}

int uring_allocate(struct uring *u, size_t payload_size)
{
	int r = 0;

	u->payload_size = payload_size;
	for (unsigned i = 0; i < u->num_queues && !r; i++)
		r = allocate_queue(&u->queues[i]);
	return r;
}

int uring_start(struct uring *u,
		void (*serve)(void *arg, struct uring_entry *entry), void *arg)
{
	unsigned n = 0;
	int r = 0;

	u->serve = serve;
	u->arg = arg;
	for (; n < u->num_queues && !r; n++) {
		struct uring_queue *q = &u->queues[n];

		r = thread_start(&q->thread, serve_queue, q);
		q->has_thread = !r;
	}
	if (r)
		return r;
	scoped_lock(&u->lock);
	while (u->num_started < n)
		pthread_cond_wait(&u->changed, &u->lock);
	return u->result;
}

unsigned uring_queues(const struct uring *u)
{
	return u->num_queues;
}

int uring_ended_fd(const struct uring *u)
{
	return u->ended_fd;
}

static void close_queue(struct uring_queue *q)
{
	if (q->memory)
		munmap(q->memory, q->memory_size);
	free(q->entries);
	free(q->parts);
	if (q->rings)
		munmap(q->rings, q->rings_size);
	if (q->sqes)
		munmap(q->sqes, q->sqes_size);
	if (q->wake_fd >= 0)
		close(q->wake_fd);
	pthread_mutex_destroy(&q->lock);
}

void uring_stop(struct uring *u)
{
	scoped_lock(&u->ending);
	atomic_store(&u->stopping, true);
	for (unsigned i = 0; i < u->num_queues; i++) {
		if (u->queues[i].has_thread)
			wake(&u->queues[i]);
	}
	for (unsigned i = 0; i < u->num_queues; i++) {
		struct uring_queue *q = &u->queues[i];

		if (q->has_thread)
			pthread_join(q->thread, NULL);
		q->has_thread = false;
		if (q->fd >= 0)
			close(q->fd);
		q->fd = -1;
	}
}

void uring_close(struct uring *u)
{
	if (!u)
		return;
	uring_stop(u);
	for (unsigned i = 0; i < u->num_queues; i++)
		close_queue(&u->queues[i]);
	if (u->ended_fd >= 0)
		close(u->ended_fd);
	free(u->queues);
	pthread_cond_destroy(&u->changed);
	pthread_mutex_destroy(&u->lock);
	pthread_mutex_destroy(&u->ending);
	free(u);
}
