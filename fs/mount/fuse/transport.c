/* SPDX-License-Identifier: Apache-2.0 */
#define FUSE_USE_VERSION 312

#include "fs/mount/fuse/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/log.h"
#include "fs/mount/fuse/uring.h"
#include "fs/mount/fuse/workers.h"

enum {
	/* As many as libfuse has for the same requests: betonfs.c. */
	WORKERS_MAX = 200,
	WORKERS_IDLE = 10,
	LEAST_PAYLOAD = 8192, /* of any kernel */
	REPLY_MAX = 512,      /* to INIT */
	INIT_DESCRIPTORS = 3, /* until INIT has its reply */
	/* Rings may take this share of the descriptors: a quarter. */
	RINGS_SHARE = 4,
};

#define PARAMETER "/sys/module/fuse/parameters/enable_uring"

/* --- the choice --- */

/* Returns why this mount cannot use rings; NULL: it can. */
static const char *why_not_for(const struct transport_options *o)
{
	if (o->single_thread)
		return "-s serves all requests with one thread: leave out -s to use io_uring";
	if (o->debug)
		return "-d prints requests, which come through libfuse then: leave out -d to use io_uring";
	return NULL;
}

static const char *why_not_in_kernel(void)
{
	cleanup_fd int fd = open(PARAMETER, O_RDONLY | O_CLOEXEC);
	char value;

	if (fd < 0)
		return "this kernel lacks FUSE over io_uring: it takes Linux 6.14 or later with CONFIG_FUSE_IO_URING";
	if (read(fd, &value, 1) != 1 || value != 'Y')
		return "the kernel has FUSE over io_uring disabled: to enable it, run as root: echo Y >" PARAMETER;
	return NULL;
}

/* Rings must leave descriptors for everything else, because a mount without
   rings may work. */
static bool leave_descriptors(unsigned cpus)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) ||
	       uring_descriptors(cpus) + INIT_DESCRIPTORS <=
		       files.rlim_cur / RINGS_SHARE;
}

static const char *open_rings(struct transport *t)
{
	const unsigned cpus = uring_cpus();
	int r;

	if (!cpus)
		return "/sys/devices/system/cpu/possible does not list the CPUs";
	r = leave_descriptors(cpus) ? uring_open(cpus, &t->uring) : -EMFILE;
	if (r == -EPERM || r == -EACCES)
		return "io_uring is forbidden here: kernel.io_uring_disabled is not 0, or the container does not allow io_uring_setup";
	if (r == -ENOSYS)
		return "this kernel lacks io_uring";
	if (r == -EINVAL)
		return "the kernel's io_uring is too old";
	return r ? "there is not enough memory, or there are not enough descriptors, for the rings"
		 : NULL;
}

/* Takes /dev/fuse instead, unless rings are demanded. */
static int give_up(struct transport *t, const char *why)
{
	uring_close(steal(t->uring));
	atomic_store(&t->count.queues, 0);
	atomic_store(&t->count.why_not, why);
	if (!t->is_demanded)
		return 0;
	log_error(t->log, "-o io_uring=on: %s", why);
	return -ENOTSUP;
}

/* Like give_up(), for what the choice could not know. */
static int give_up_late(struct transport *t, const char *why, int r)
{
	if (!t->is_demanded)
		log_info(t->log, "io_uring: %s: %s: using /dev/fuse instead",
			 why, strerror(-r));
	return give_up(t, why);
}

int transport_open(struct transport *t, const struct transport_options *o)
{
	const char *why;

	t->log = o->log;
	if (o->wanted && !strcmp(o->wanted, "off"))
		return give_up(t, "-o io_uring=off");
	t->is_demanded = o->wanted && !strcmp(o->wanted, "on");
	why = why_not_for(o);
	if (why)
		return give_up(t, why) ? -EINVAL : 0;
	why = why_not_in_kernel();
	if (!why)
		why = open_rings(t);
	if (why)
		return give_up(t, why);
	t->ring_ops.denies_others = o->allow_root;
	t->ring_ops.user = getuid();
	atomic_store(&t->count.queues, uring_queues(t->uring));
	return 0;
}

int transport_connect(struct transport *t, struct fuse_session *session)
{
	int r;

	if (!t->uring)
		return 0;
	/* libfuse closes its own. */
	t->fuse_fd = fcntl(fuse_session_fd(session), F_DUPFD_CLOEXEC, 0);
	r = t->fuse_fd < 0 || pipe2(t->reply, O_CLOEXEC)
		    ? -errno
		    : uring_connect(t->uring, t->fuse_fd);
	return r ? give_up_late(t, "the rings cannot use /dev/fuse", r) : 0;
}

/* --- INIT ---
 * libfuse makes the reply, and a pipe takes it in place of /dev/fuse. Then the
 * reply gets the flag that libfuse would only set for rings of its own. */

/* The structs of INIT, which have no second flags in old headers. */
struct init_in {
	uint32_t major;
	uint32_t minor;
	uint32_t max_readahead;
	uint32_t flags;
	uint32_t flags2;
};

struct init_out {
	uint32_t major;
	uint32_t minor;
	uint32_t max_readahead;
	uint32_t flags;
	uint16_t max_background;
	uint16_t congestion_threshold;
	uint32_t max_write;
	uint32_t time_gran;
	uint16_t max_pages;
	uint16_t map_alignment;
	uint32_t flags2;
};

struct init_reply {
	struct fuse_out_header head;
	struct init_out out;
	char rest[REPLY_MAX];
};

#define HAS_FLAGS2 (UINT32_C(1) << 30)
#define OVER_IO_URING (UINT32_C(1) << (41 - 32)) /* of flags2 */

static bool is_offered(const struct fuse_buf *buf)
{
	const struct fuse_in_header *head = buf->mem;
	struct init_in in;

	if (buf->flags & FUSE_BUF_IS_FD ||
	    buf->size < sizeof(*head) + sizeof(in) || head->opcode != FUSE_INIT)
		return false;
	memcpy(&in, head + 1, sizeof(in));
	return in.major == FUSE_KERNEL_VERSION && in.flags & HAS_FLAGS2 &&
	       in.flags2 & OVER_IO_URING;
}

/* Has libfuse answer INIT. Returns the size of the reply, or -errno. */
static ssize_t make_reply(struct transport *t, struct fuse_session *session,
			  const struct fuse_buf *init, struct init_reply *out)
{
	const int fd = fuse_session_fd(session);
	ssize_t size;

	if (dup3(t->reply[1], fd, O_CLOEXEC) < 0)
		return -errno;
	fuse_session_process_buf(session, init);
	if (dup3(t->fuse_fd, fd, O_CLOEXEC) < 0)
		return -errno;
	size = read(t->reply[0], out, sizeof(*out));
	return size < 0 ? -errno : size;
}

/* Returns the most bytes of a reply, as the kernel computes it. */
static size_t payload_of(const struct init_out *out)
{
	const uint64_t pages = out->max_pages * (uint64_t)sysconf(_SC_PAGESIZE);

	return max_u64(max_u64(out->max_write, pages), LEAST_PAYLOAD);
}

/* Returns 0, or why there are no rings. The reply is sent in any case. */
static int send_reply(struct transport *t, struct init_reply *reply,
		      size_t size)
{
	int r = -EOPNOTSUPP;

	if (!reply->head.error &&
	    size >= sizeof(reply->head) + sizeof(reply->out))
		r = uring_allocate(t->uring, payload_of(&reply->out));
	if (!r) {
		reply->out.flags |= HAS_FLAGS2;
		reply->out.flags2 |= OVER_IO_URING;
	}
	if (write(t->fuse_fd, reply, size) < 0)
		return -errno;
	return r;
}

/* Returns a positive number when INIT is there; 0 or -errno at the end of the
   session. */
static int receive_init(struct fuse_session *session, struct fuse_buf *buf)
{
	int r;

	do
		r = fuse_session_receive_buf(session, buf);
	while ((r == -EINTR || r == -EAGAIN) && !fuse_session_exited(session));
	return fuse_session_exited(session) ? 0 : r;
}

static int answer_init(struct transport *t, struct fuse_session *session)
{
	struct fuse_buf buf = { .mem = NULL };
	struct init_reply reply;
	ssize_t size;
	int r = receive_init(session, &buf);

	if (r > 0 && is_offered(&buf)) {
		size = make_reply(t, session, &buf, &reply);
		r = size < 0 ? (int)size : send_reply(t, &reply, (size_t)size);
	} else if (r > 0) {
		fuse_session_process_buf(session, &buf);
		r = -EOPNOTSUPP;
	} else {
		r = r ? r : -ENODEV;
	}
	free(buf.mem);
	return r;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_descriptors(struct transport *t)
{
	close_fd(&t->fuse_fd);
	close_fd(&t->reply[0]);
	close_fd(&t->reply[1]);
}

static int start_rings(struct transport *t, struct fuse_session *session)
{
	int r;

	t->ring_ops.count = &t->count;
	r = workers_open(WORKERS_MAX, WORKERS_IDLE, ring_ops_run, &t->ring_ops,
			 &t->workers);
	t->ring_ops.workers = t->workers;
	if (!r)
		r = answer_init(t, session);
	close_descriptors(t);
	if (fuse_session_exited(session))
		return -ENODEV;
	if (!r)
		r = uring_start(t->uring, ring_ops_serve, &t->ring_ops);
	return r ? give_up_late(t, "the kernel does not take the rings", r) : 1;
}

int transport_start(struct transport *t, struct fuse_session *session,
		    struct fuse_ops *ops)
{
	int r;

	if (!t->uring)
		return 0;
	t->ring_ops.ops = ops;
	ops->is_starting = true;
	r = start_rings(t, session);
	ops->is_starting = false;
	if (r >= 0)
		ops->ready(ops->arg);
	return r;
}

/* --- the loop --- */

/*
 * Interrupts and forgotten names still come through /dev/fuse. libfuse would
 * keep an interrupt for good, because it does not know the request.
 */
static int read_device(struct fuse_session *session, struct fuse_buf *buf)
{
	int r = fuse_session_receive_buf(session, buf);
	const struct fuse_in_header *head = buf->mem;

	if (r == -EINTR || r == -EAGAIN)
		return 0;
	if (r > 0 &&
	    (buf->flags & FUSE_BUF_IS_FD || head->opcode != FUSE_INTERRUPT))
		fuse_session_process_buf(session, buf);
	return r < 0 ? r : 0;
}

/* Signals end the session. They are blocked but for the wait, so that none
   comes just before it. */
static int wait_for_device(const struct transport *t,
			   const struct fuse_session *session, sigset_t *open)
{
	struct pollfd fds[] = {
		{ .fd = fuse_session_fd((struct fuse_session *)session),
		  .events = POLLIN },
		{ .fd = uring_ended_fd(t->uring), .events = POLLIN },
	};

	if (ppoll(fds, ARRAY_LEN(fds), NULL, open) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents)
		return 1;
	/* The kernel aborts the rings just before the device. */
	return fds[1].revents && poll(fds, 1, 1000) != 1 ? -EIO : 1;
}

static int loop(const struct transport *t, struct fuse_session *session,
		sigset_t *open)
{
	struct fuse_buf buf = { .mem = NULL };
	int r = 0;

	while (r >= 0 && !fuse_session_exited(session)) {
		r = wait_for_device(t, session, open);
		if (r > 0)
			r = read_device(session, &buf);
	}
	free(buf.mem);
	return r < 0 && !fuse_session_exited(session) ? r : 0;
}

int transport_loop(struct transport *t, struct fuse_session *session)
{
	sigset_t ending, before;
	int r;

	sigemptyset(&ending);
	sigaddset(&ending, SIGHUP);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &ending, &before);
	r = loop(t, session, &before);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

void transport_cut_off(struct transport *t)
{
	if (t->uring)
		uring_stop(t->uring);
}

void transport_stop(struct transport *t)
{
	/* Workers reply through rings, and rings pass requests to workers. */
	workers_stop(t->workers);
	transport_cut_off(t);
}

void transport_close(struct transport *t)
{
	transport_stop(t);
	uring_close(steal(t->uring));
	workers_close(steal(t->workers));
	close_descriptors(t);
}
