/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any messages as those of a daemon, with descriptors of many kinds, to the
 * loader's end of zero-copy delivery. Each is a struct record, the descriptors'
 * kinds, and its bytes; the first answers the HELLO, the others one GET each.
 * Memory that is accepted can be read, and no descriptor stays open.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/data/wire/zerocopy_message.h"
#include "loader/run/feed/zerocopy_client.h"
#include "tests/fuzz/fuzz.h"

enum { MESSAGES_MAX = 96, FDS_MAX = 7, KINDS = 8, BUFFERS_MAX = 64 };

struct record {
	uint8_t fds; /* descriptors that come along */
	uint8_t flags;
	uint8_t repeat; /* times that the message is sent */
	uint8_t size;
};

enum {
	STAMP = 1, /* put in the number of the request that waits */
	KEEP = 2,  /* release the memory at the end */
	TELL = 4,  /* send a report before the request */
	WRITE = 8, /* keep the memory, and write to it */
};

/* The messages of an input. */
struct script {
	uint8_t flags[MESSAGES_MAX];
	unsigned n;
};

static int ends[2]; /* the loader's, the daemon's */

/* Makes the compiler read the bytes, and a sanitizer look at them. */
static volatile uint8_t sink;

/* Instead of the C library's: the daemon is this thread, which cannot accept
   while the client waits. */
int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t size)
{
	(void)address;
	(void)size;
	return dup3(ends[0], fd, O_CLOEXEC) == fd ? 0 : -1;
}

/* --- the daemon --- */

static int make_memory(off_t size, int seals)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	MUST(fd >= 0 && !ftruncate(fd, size));
	MUST(!seals || !fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

static const int *descriptors(void)
{
	static int fds[KINDS], pipes[2];

	if (fds[0])
		return fds;
	MUST(!pipe2(pipes, O_CLOEXEC));
	fds[0] = make_memory(2 << 20, F_SEAL_SHRINK);
	fds[1] = make_memory(4096, F_SEAL_SHRINK | F_SEAL_SEAL);
	fds[2] = make_memory(100, F_SEAL_SHRINK | F_SEAL_GROW);
	fds[3] = make_memory(0, F_SEAL_SHRINK);
	fds[4] = make_memory(2 << 20, F_SEAL_GROW);
	fds[5] = pipes[0];
	fds[6] = eventfd(0, EFD_CLOEXEC);
	fds[7] = open("/dev/null", O_RDWR | O_CLOEXEC);
	return fds;
}

static void send_message(const void *bytes, size_t size, const uint8_t *kinds,
			 unsigned num_fds)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec iov = { (void *)bytes, size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[FDS_MAX];

	for (unsigned i = 0; i < num_fds; i++)
		fds[i] = descriptors()[kinds[i] % KINDS];
	if (num_fds) {
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(num_fds * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, num_fds * sizeof(int));
	}
	MUST(sendmsg(ends[1], &m, MSG_DONTWAIT | MSG_NOSIGNAL) ==
	     (ssize_t)size);
}

static void send_record(struct script *s, const struct record *r,
			const uint8_t *kinds, const uint8_t *bytes)
{
	uint8_t message[UINT8_MAX];
	const size_t at = offsetof(struct zerocopy_batch, request);

	memcpy(message, bytes, r->size);
	for (unsigned i = 0; i <= r->repeat && s->n < MESSAGES_MAX; i++) {
		if (r->flags & STAMP && r->size >= at + 8)
			store64(message + at, s->n);
		send_message(message, r->size, kinds, r->fds);
		s->flags[s->n++] = r->flags;
	}
}

/* Queues all messages: the client reads them in turn. */
static void send_all(struct script *s, const uint8_t *data, size_t size)
{
	struct record r;

	while (size >= sizeof(r) && s->n < MESSAGES_MAX) {
		memcpy(&r, data, sizeof(r));
		data += sizeof(r);
		size -= sizeof(r);
		r.fds = (uint8_t)min_u64(r.fds % (FDS_MAX + 1), size);
		r.size = (uint8_t)min_u64(r.size, size - r.fds);
		send_record(s, &r, data, data + r.fds);
		data += r.fds + r.size;
		size -= (size_t)r.fds + r.size;
	}
	MUST(!shutdown(ends[1], SHUT_WR));
}

/* --- the loader --- */

static void get_all(struct zerocopy_client *l, const struct script *s)
{
	struct mapped *kept[BUFFERS_MAX];
	unsigned num_kept = 0;
	struct acquired acquired;

	for (unsigned i = 1; i <= s->n; i++) {
		if (s->flags[i % s->n] & TELL)
			zerocopy_client_report(
				l, &(struct rank_figures){ .epoch = i });
		if (zerocopy_client_get(l, "batches/default/0/0.batch", NULL,
					&acquired))
			continue;
		if (acquired.size) {
			sink = acquired.bytes[0];
			sink = acquired.bytes[acquired.size - 1];
		}
		if (s->flags[i % s->n] & WRITE &&
		    zerocopy_client_keep(l, acquired.mapped) && acquired.size)
			((uint8_t *)acquired.bytes)[acquired.size - 1] = sink;
		if (s->flags[i % s->n] & KEEP && num_kept < BUFFERS_MAX)
			kept[num_kept++] = acquired.mapped;
		else
			zerocopy_client_release(l, acquired.mapped);
	}
	MUST(zerocopy_client_is_broken(l));
	while (num_kept)
		zerocopy_client_release(l, kept[--num_kept]);
}

/* A bit for each of the lowest descriptors that is open. */
static uint32_t open_descriptors(void)
{
	uint32_t open = 0;

	for (int fd = 0; fd < 32; fd++)
		open |= (uint32_t)(fcntl(fd, F_GETFD) >= 0) << fd;
	return open;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct zerocopy_client_name name = { "job", 0, 1 };
	struct zerocopy_client *l;
	struct script s = { .n = 0 };
	uint32_t before;

	descriptors();
	before = open_descriptors();
	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	send_all(&s, data, size);
	if (!zerocopy_client_open("@fuzz", &name, &l)) {
		get_all(l, &s);
		zerocopy_client_close(l);
	}
	close(ends[0]);
	close(ends[1]);
	MUST(open_descriptors() == before);
	return 0;
}
