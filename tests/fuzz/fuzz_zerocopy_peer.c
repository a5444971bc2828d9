/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any messages as those of loaders to a daemon with a dataset. Each is a struct
 * record and its bytes; several connections of different users are open at
 * once. When all are closed, the daemon holds nothing for them.
 */
#include <sys/mman.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/daemon_end.h"

enum { PEERS = 3, HELD_MAX = 8, RECORDS_MAX = 64, ANSWER_MS = 2 };

enum action { SEND, HELLO, GET, PUT, SEND_MEMORY, CLOSE, READ, ACTIONS };

struct record {
	uint8_t action;
	uint8_t peer;
	uint16_t size;
};

struct peer_end {
	int fd; /* -1: not connected */
	unsigned waits;
	uint64_t held[HELD_MAX]; /* slots */
	unsigned num_held;
};

static struct daemon_end daemon_end;
static struct peer_end peers[PEERS];

static void open_daemon(void)
{
	const struct ns_owner owner = { .file_mode = 0440, .dir_mode = 0550 };
	struct jobs *jobs;

	if (daemon_end.ds)
		return;
	daemon_end_open(&daemon_end, &owner, 16 << 20);
	MUST(!jobs_open(1, &jobs));
	daemon_end.shared.jobs = jobs;
	for (unsigned i = 0; i < PEERS; i++)
		peers[i].fd = -1;
}

/* --- what a peer does --- */

static void hang_up(struct peer_end *p)
{
	if (p->fd >= 0)
		close(p->fd);
	*p = (struct peer_end){ .fd = -1 };
}

static void send_bytes(struct peer_end *p, const void *bytes, size_t size)
{
	/* The daemon may have closed the connection. */
	if (send(p->fd, bytes, size, MSG_NOSIGNAL) < 0)
		hang_up(p);
}

static void send_hello(struct peer_end *p, const uint8_t *job, size_t size)
{
	struct zerocopy_hello h = { .kind = ZEROCOPY_HELLO,
				    .version = ZEROCOPY_VERSION,
				    .magic = ZEROCOPY_MAGIC,
				    .world_size = 1 };

	memcpy(h.job, job, min_u64(size, ZEROCOPY_JOB_SIZE));
	send_bytes(p, &h, sizeof(h));
}

static void send_get(struct peer_end *p, const uint8_t *text, size_t size)
{
	char *path = fuzz_text(text, size);
	struct zerocopy_get get;
	int n = zerocopy_make_get(&get, p->waits, path);

	free(path);
	if (n < 0)
		return;
	p->waits++;
	send_bytes(p, &get, (size_t)n);
}

static void send_put(struct peer_end *p)
{
	struct zerocopy_number put = { .kind = ZEROCOPY_PUT };

	if (p->num_held)
		put.number = p->held[--p->num_held];
	send_bytes(p, &put, sizeof(put));
}

/* Descriptors are no part of any message to the daemon. */
static void send_memory(struct peer_end *p, const void *bytes, size_t size)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec iov = { (void *)bytes, size };
	const struct msghdr m = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &(int){ STDERR_FILENO }, sizeof(int));
	if (sendmsg(p->fd, &m, MSG_NOSIGNAL) < 0)
		hang_up(p);
}

static void note_answer(struct peer_end *p, const struct zerocopy_batch *b)
{
	MUST(b->result <= 0);
	if (p->waits)
		p->waits--;
	if (b->result)
		return;
	MUST(b->size && b->size <= b->capacity);
	if (p->num_held < HELD_MAX)
		p->held[p->num_held++] = b->slot;
}

/* Reads one answer. False: there is none. */
static bool read_answer(struct peer_end *p)
{
	struct zerocopy_batch b = { .kind = 0 };
	ssize_t n = recv(p->fd, &b, sizeof(b), 0);

	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0) {
		hang_up(p);
		return false;
	}
	if (b.kind == ZEROCOPY_WELCOME) {
		MUST(n == sizeof(struct zerocopy_welcome));
	} else {
		MUST(b.kind == ZEROCOPY_BATCH && n == sizeof(b));
		note_answer(p, &b);
	}
	return true;
}

/* Reads what the daemon has answered, and waits for one answer if any is due.
 */
static void read_answers(struct peer_end *p)
{
	bool any = false;

	while (p->fd >= 0 && read_answer(p))
		any = true;
	if (any || p->fd < 0 || !p->waits)
		return;
	daemon_end_step(&daemon_end, ANSWER_MS);
	while (p->fd >= 0 && read_answer(p))
		;
}

static void act(struct peer_end *p, unsigned action, const uint8_t *bytes,
		size_t size)
{
	switch (action) {
	case HELLO:
		send_hello(p, bytes, size);
		break;
	case GET:
		send_get(p, bytes, size);
		break;
	case PUT:
		send_put(p);
		break;
	case SEND_MEMORY:
		send_memory(p, bytes, size);
		break;
	case CLOSE:
		hang_up(p);
		break;
	case READ:
		read_answers(p);
		break;
	default:
		send_bytes(p, bytes, size);
	}
}

/* --- */

static void run(const struct record *r, const uint8_t *bytes)
{
	const unsigned i = r->peer % PEERS;
	struct peer_end *p = &peers[i];

	/* The first may read all, the second is of the group, the third not. */
	if (p->fd < 0)
		p->fd = daemon_end_connect(&daemon_end, i == 2 ? 4000
							: i    ? getegid()
							       : 0);
	act(p, r->action % ACTIONS, bytes, r->size);
	while (daemon_end_step(&daemon_end, 0))
		;
}

static void run_all(const uint8_t *data, size_t size)
{
	struct record r;

	for (unsigned n = 0; size >= sizeof(r) && n < RECORDS_MAX; n++) {
		memcpy(&r, data, sizeof(r));
		data += sizeof(r);
		size -= sizeof(r);
		r.size = (uint16_t)min_u64(r.size, size);
		run(&r, data);
		data += r.size;
		size -= r.size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct zerocopy_shared *h = &daemon_end.shared;

	open_daemon();
	run_all(data, size);
	for (unsigned i = 0; i < PEERS; i++)
		hang_up(&peers[i]);
	while (h->num_connections)
		daemon_end_step(&daemon_end, 1000);
	requests_wait(h);
	MUST(!h->bytes && !h->connections && !h->num_strangers && !h->done);
	return 0;
}
