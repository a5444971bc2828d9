/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/daemon/sandbox_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"

#if defined(__x86_64__)
#	define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#	define MACHINE AUDIT_ARCH_AARCH64
#else
#	define MACHINE 0
#endif

/* Numbers that old headers lack. */
#ifndef SYS_rseq
#	define SYS_rseq (MACHINE == AUDIT_ARCH_X86_64 ? 334 : 293)
#endif
#ifndef SYS_io_uring_enter
#	define SYS_io_uring_enter 426
#endif
#ifndef SYS_clone3
#	define SYS_clone3 435
#endif
#ifndef PR_SET_VMA
#	define PR_SET_VMA 0x53564d41
#endif

/* A thread has CLONE_THREAD and shares all namespaces. */
#define NAMESPACES                                                             \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |         \
	 CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

enum verdict {
	IF_EQUAL, /* allow if the argument is `value` under `mask` */
	IF_SELF,  /* allow if the argument is the process ID */
	ALLOW,
	UNKNOWN, /* ENOSYS: the C library then uses an older call */
};

/* The kernel takes 32 bits of each argument that has a condition here. */
struct call {
	int number;
	enum verdict verdict;
	unsigned arg;
	uint32_t mask, value;
};

#define CALL(name)                                                             \
	{                                                                      \
		SYS_##name, ALLOW, 0, 0, 0                                     \
	}
#define CALL_IF(name, arg, mask, value)                                        \
	{                                                                      \
		SYS_##name, IF_EQUAL, arg, mask, value                         \
	}

/*
 * A call has one row, or a row for each value of an argument. Kernels before
 * 5.11 compare a call with one row after the other, so the frequent ones are
 * first.
 */
static const struct call calls[] = {
	/* Requests of the kernel, replies, and reads of datasets. */
	CALL(read),
	CALL(writev),
	CALL(futex),
	CALL(pread64),
	CALL(preadv2),
	CALL(preadv),
	CALL(write), /* events, the log */
	CALL(close),
	CALL(fadvise64),

	/* Rings that are open, and that take commands of FUSE alone: uring.h.
	   Their threads bind themselves to a CPU. */
	CALL(io_uring_enter),
	CALL_IF(sched_setaffinity, 0, ~0u, 0),

	/* Zero-copy delivery: its socket exists, and takes connections. */
	CALL(epoll_pwait),
	CALL(recvfrom),
	CALL(recvmsg),
	CALL(sendmsg),
	CALL(accept4),
	CALL(epoll_ctl),
	CALL(getsockopt),
	CALL(setsockopt),
	CALL(getsid), /* jobs */

	/* Memory, none of it executable. */
	CALL_IF(mmap, 2, PROT_EXEC, 0),
	CALL_IF(mprotect, 2, PROT_EXEC, 0),
	CALL(munmap),
	CALL(madvise),
	CALL(mremap),
	CALL(brk),
	CALL(sysinfo), /* qsort(3) */

	/* Memory of batches. It is opened again through /proc/self/fd: without
	   landlock, so is any file that the daemon may write, and no other. */
	CALL(memfd_create),
	CALL_IF(fchmod, 1, ~0u, 0600),
	CALL(ftruncate),
	CALL(fallocate),
	CALL_IF(openat, 2, ~0u, O_RDWR | O_CLOEXEC),
	CALL_IF(fcntl, 1, ~0u, F_ADD_SEALS),
	CALL_IF(fcntl, 1, ~0u, F_SETLEASE),

	/* Threads. The flags of clone3 are in memory, which a filter cannot
	   read. */
	CALL_IF(clone, 0, CLONE_THREAD | NAMESPACES, CLONE_THREAD),
	{ SYS_clone3, UNKNOWN, 0, 0, 0 },
	CALL(set_robust_list),
	CALL(rseq),
	CALL_IF(prctl, 0, ~0u, PR_SET_NAME),
	CALL_IF(prctl, 0, ~0u, PR_SET_VMA),
	CALL(sched_yield),
	CALL(sched_getaffinity),
	CALL(exit),

	/* Signals of its own. */
	CALL(rt_sigprocmask),
	CALL(rt_sigreturn),
	CALL(rt_sigaction),
	CALL(rt_sigtimedwait),
	CALL(restart_syscall),
	CALL(sigaltstack),
	{ SYS_tgkill, IF_SELF, 0, 0, 0 },

	/* Times. */
	CALL(clock_gettime),
	CALL(clock_getres),
	CALL(clock_nanosleep),
	CALL(nanosleep),
	CALL(gettimeofday),

	/* Descriptors that are open. */
	CALL_IF(newfstatat, 3, ~0u, AT_EMPTY_PATH),
	CALL_IF(statx, 2, AT_EMPTY_PATH, AT_EMPTY_PATH),
	CALL(fstat),
	CALL(lseek),
	CALL(dup3), /* the log, opened again; the terminal */
	CALL(readv),
	CALL(pwrite64),

	/* Itself. */
	CALL(getpid),
	CALL(gettid),
	CALL(getuid),
	CALL(geteuid),
	CALL(getgid),
	CALL(getegid),
	CALL(getrandom),
	CALL_IF(prlimit64, 0, ~0u, 0),
	CALL(setsid),

	/* The end. */
	CALL(pipe2),
	CALL(ppoll),
	CALL(wait4), /* for the watcher */
	CALL(exit_group),

#if SANDBOX_IS_WATCHED
	/* LeakSanitizer stops all threads by a process that shares their memory
	   and traces them. Without this process, a report or the end of the
	   daemon hangs or fails. Reports need files: sandbox.c. */
	CALL_IF(clone, 0, ~0u,
		CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED),
	CALL(ptrace),
	CALL_IF(prctl, 0, ~0u, PR_GET_DUMPABLE),
	CALL_IF(prctl, 0, ~0u, PR_SET_DUMPABLE),
	CALL_IF(prctl, 0, ~0u, PR_SET_PTRACER),
	CALL_IF(prctl, 0, ~0u, PR_SET_PDEATHSIG),
	CALL(getppid),
	CALL(openat),
	CALL(getdents64),
	CALL(newfstatat),
	CALL(readlinkat),
#endif
#if SANDBOX_IS_WATCHED && defined(__x86_64__)
	CALL(open),
	CALL(getdents),
	CALL(stat),
	CALL(readlink),
#endif
#ifdef __x86_64__
	/* Calls that newer architectures never had. */
	CALL(epoll_wait),
	CALL(poll),
	CALL(dup2),
	CALL(time),
	CALL(getrlimit),
#endif
};

/* Calls of libcurl, the resolver and TLS. The resolver falls back to its own
   code without a socket of AF_UNIX or AF_NETLINK. */
static const struct call network_calls[] = {
	CALL_IF(socket, 0, ~0u, AF_INET),
	CALL_IF(socket, 0, ~0u, AF_INET6),
	CALL_IF(socketpair, 0, ~0u, AF_UNIX), /* wakes its own thread */
	CALL(connect),
	CALL(sendto),
	CALL(sendmmsg),
	CALL(recvmmsg),
	CALL(shutdown),
	CALL(getsockname),
	CALL(getpeername),
	CALL(eventfd2),
	CALL_IF(ioctl, 1, ~0u, FIONREAD),
	CALL_IF(ioctl, 1, ~0u, FIONBIO),
	CALL_IF(fcntl, 1, ~0u, F_GETFL),
	CALL_IF(fcntl, 1, ~0u, F_SETFL),
	CALL_IF(fcntl, 1, ~0u, F_GETFD),
	CALL_IF(fcntl, 1, ~0u, F_SETFD),
	CALL(uname),

	/* Files of the resolver, certificates, credentials. */
	CALL_IF(openat, 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY),
	CALL(newfstatat),
	CALL(statx),
	CALL(getdents64),
	CALL(readlinkat),

	/* The disk tier, whose files are open. */
	CALL(fdatasync),
	CALL(fsync),
	CALL(flock), /* to become the writer */
	CALL(fstatfs),
	CALL(pwritev),
#ifdef __x86_64__
	CALL_IF(open, 1, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY),
	CALL(stat),
	CALL(lstat),
	CALL(access),
	CALL(readlink),
#endif
};

enum {
	HEAD = 4,	  /* instructions before the rows */
	PER_CALL_MAX = 6, /* of a row */
	TAIL = 1,
};

#define LOAD(member)                                                           \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS,                                     \
		 offsetof(struct seccomp_data, member))
#define REFUSE(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define ACCEPT BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
/* Skips so many instructions if the loaded number is another. */
#define UNLESS(number, skip)                                                   \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, skip)

static struct sock_filter *put(struct sock_filter *at,
			       const struct sock_filter *from, size_t n)
{
	while (n--)
		*at++ = *from++;
	return at;
}

static struct sock_filter *put_condition(struct sock_filter *at,
					 const struct call *c)
{
	bool is_self = c->verdict == IF_SELF;
	const struct sock_filter block[PER_CALL_MAX + 1] = {
		UNLESS((uint32_t)c->number, 5),
		/* Both kinds of machines have the low half first. */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 (uint32_t)(offsetof(struct seccomp_data, args) +
				    8 * c->arg)),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, is_self ? ~0u : c->mask),
		UNLESS(is_self ? (uint32_t)getpid() : c->value, 1),
		ACCEPT,
		LOAD(nr),
	};

	return put(at, block, PER_CALL_MAX);
}

static struct sock_filter *put_call(struct sock_filter *at,
				    const struct call *c)
{
	const struct sock_filter allow[] = {
		UNLESS((uint32_t)c->number, 1),
		ACCEPT,
	};
	const struct sock_filter unknown[] = {
		UNLESS((uint32_t)c->number, 1),
		REFUSE(ENOSYS),
	};

	switch (c->verdict) {
	case ALLOW:
		return put(at, allow, ARRAY_LEN(allow));
	case UNKNOWN:
		return put(at, unknown, ARRAY_LEN(unknown));
	default:
		return put_condition(at, c);
	}
}

int sandbox_calls(bool network, struct sock_fprog *out)
{
	const size_t num_network = network ? ARRAY_LEN(network_calls) : 0;
	const size_t num = ARRAY_LEN(calls) + num_network;
	const size_t most = HEAD + num * PER_CALL_MAX + TAIL;
	/* Numbers of x32 have a bit of their own, and so are in no row. */
	const struct sock_filter head[HEAD] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0),
		REFUSE(EPERM),
		LOAD(nr),
	};
	const struct sock_filter tail[TAIL] = { REFUSE(EPERM) };
	struct sock_filter *filter, *at;

	if (!MACHINE)
		return -ENOSYS;
	filter = calloc(most, sizeof(*filter));
	if (!filter)
		return -ENOMEM;
	at = put(filter, head, HEAD);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		at = put_call(at, &calls[i]);
	for (size_t i = 0; i < num_network; i++)
		at = put_call(at, &network_calls[i]);
	at = put(at, tail, TAIL);
	out->filter = filter;
	out->len = (unsigned short)(at - filter);
	return 0;
}
