/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each check runs in a child process that entered a sandbox: of both layers, or
 * of one of them, which must be enough for what it is responsible for.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/thread.h"
#include "fs/data/engine/pool.h"
#include "fs/mount/daemon/sandbox.h"
#include "fs/mount/daemon/sandbox_calls.h"
#include "tests/unit/t.h"

static char path[] = "/tmp/test_sandbox_XXXXXX";
/* Open before the sandbox. */
static int file, listener, caller, other, tier;
static struct sockaddr_un address;
static socklen_t address_size;
static pid_t victim;
static bool with_network;

#define CHECK_REFUSED(call)                                                    \
	do {                                                                   \
		errno = 0;                                                     \
		CHECK((call) == -1 && is_refusal(errno));                      \
	} while (0)

static bool is_refusal(int error)
{
	return error == EPERM || error == EACCES;
}

/* Runs a check in the sandbox. A check that fails ends its process with 1;
   _exit() looks for no leaks. */
static void run(enum sandbox_layers layers, void (*check)(void))
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child) {
		CHECK(!sandbox_enter(layers, with_network));
		check();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* --- what is refused --- */

static void files_to_write_cannot_be_opened(void)
{
	CHECK_REFUSED(open(path, O_WRONLY));
	CHECK_REFUSED(open("/tmp/test_sandbox", O_WRONLY | O_CREAT, 0600));
	CHECK_REFUSED(open("/tmp", O_RDWR | O_TMPFILE, 0600));
}

static void files_to_read_cannot_be_opened(void)
{
	CHECK_REFUSED(open(path, O_RDONLY));
	CHECK_REFUSED(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
	CHECK_REFUSED(open("/tmp", O_RDONLY | O_DIRECTORY));
	CHECK_REFUSED(open("/", O_RDONLY));
}

static void programs_cannot_be_started(void)
{
	char *const argv[] = { (char *)"true", NULL };

	CHECK_REFUSED(execve("/bin/true", argv, argv + 1));
}

static void others_get_no_signals(void)
{
	CHECK_REFUSED(kill(victim, SIGTERM));
	CHECK_REFUSED(kill(victim, 0));
	CHECK_REFUSED(syscall(SYS_tgkill, victim, victim, SIGTERM));
}

static void others_cannot_be_traced(void)
{
	CHECK_REFUSED(ptrace(PTRACE_SEIZE, victim, NULL, NULL));
}

static void networks_cannot_be_reached(void)
{
	CHECK_REFUSED(
		connect(caller, (struct sockaddr *)&address, address_size));
}

static void names_cannot_be_changed(void)
{
	CHECK_REFUSED(unlink(path));
	CHECK_REFUSED(mkdir("/tmp/test_sandbox", 0700));
	CHECK_REFUSED(rename(path, "/tmp/test_sandbox"));
	CHECK_REFUSED(symlink(path, "/tmp/test_sandbox"));
}

/* Landlock alone sees the path. */
static void no_file_can_be_opened_to_read_and_write(void)
{
	CHECK_REFUSED(open(path, O_RDWR | O_CLOEXEC));
	CHECK_REFUSED(open("/dev/null", O_RDWR | O_CLOEXEC));
}

static void processes_cannot_be_made(void)
{
	CHECK_REFUSED(fork());
	CHECK_REFUSED(vfork());
	CHECK_REFUSED(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0));
	CHECK(syscall(SYS_clone3, NULL, 0) == -1 && errno == ENOSYS);
	CHECK_REFUSED(syscall(SYS_clone, CLONE_THREAD | CLONE_VM |
						 CLONE_SIGHAND | CLONE_NEWNS));
}

static void sockets_cannot_be_made(void)
{
	int ends[2];

	CHECK_REFUSED(socket(AF_UNIX, SOCK_STREAM, 0));
	CHECK_REFUSED(socket(AF_INET, SOCK_STREAM, 0));
	CHECK_REFUSED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	CHECK_REFUSED(listen(listener, 1));
}

static void memory_cannot_be_executed(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	CHECK_REFUSED(mprotect(p, 4096, PROT_READ | PROT_EXEC));
	errno = 0;
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_EXEC,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	CHECK(errno == EPERM);
}

static void memory_of_others_stays_theirs(void)
{
	struct iovec iov = { &victim, sizeof(victim) };

	CHECK_REFUSED(process_vm_readv(victim, &iov, 1, &iov, 1, 0));
	CHECK_REFUSED(process_vm_writev(victim, &iov, 1, &iov, 1, 0));
	CHECK_REFUSED(syscall(SYS_pidfd_open, victim, 0));
}

static void rare_parts_of_the_kernel_are_closed(void)
{
	static const long numbers[] = {
		SYS_bpf,	 SYS_io_uring_setup,
		SYS_userfaultfd, SYS_keyctl,
		SYS_add_key,	 SYS_mount,
		SYS_umount2,	 SYS_unshare,
		SYS_setns,	 SYS_pivot_root,
		SYS_chroot,	 SYS_init_module,
		SYS_reboot,	 SYS_perf_event_open,
		SYS_ioctl,	 SYS_setuid,
		SYS_capset,	 SYS_personality,
		SYS_execveat,	 SYS_open_by_handle_at,
	};

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		CHECK_REFUSED(syscall(numbers[i], 0, 0, 0, 0, 0, 0));
	CHECK_REFUSED(syscall(SYS_io_uring_register, -1, 0, NULL, 0));
	CHECK_REFUSED(syscall(SYS_sched_setaffinity, victim, 0, NULL));
	CHECK_REFUSED(prctl(PR_SET_KEEPCAPS, 1));
	CHECK_REFUSED(fchmod(file, 0666));
	/* F_SETOWN would have the kernel send signals. */
	CHECK_REFUSED(fcntl(caller, F_SETOWN, victim));
#ifdef __x86_64__
	/* getpid() of x32 */
	CHECK_REFUSED(syscall(0x40000000 | SYS_getpid));
#endif
}

/* The layer that refuses what a sanitizer needs of its own process alone. */
#define UNWATCHED (SANDBOX_IS_WATCHED ? SANDBOX_LANDLOCK : SANDBOX_ALL)

/* Each of the layers must refuse it alone. */
static const struct {
	enum sandbox_layers by;
	void (*check)(void);
} refused[] = {
	{ UNWATCHED, files_to_write_cannot_be_opened },
	{ UNWATCHED, files_to_read_cannot_be_opened },
	{ SANDBOX_LANDLOCK, no_file_can_be_opened_to_read_and_write },
	{ SANDBOX_ALL, names_cannot_be_changed },
	{ SANDBOX_ALL, programs_cannot_be_started },
	{ UNWATCHED, others_cannot_be_traced },
	{ SANDBOX_SECCOMP, others_get_no_signals },
	{ SANDBOX_SECCOMP, networks_cannot_be_reached },
	{ SANDBOX_SECCOMP, processes_cannot_be_made },
	{ SANDBOX_SECCOMP, sockets_cannot_be_made },
	{ SANDBOX_SECCOMP, memory_cannot_be_executed },
	{ SANDBOX_SECCOMP, memory_of_others_stays_theirs },
	{ SANDBOX_SECCOMP, rare_parts_of_the_kernel_are_closed },
};

/* --- what a daemon does --- */

static void open_files_are_read(void)
{
	char bytes[4];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct stat st;

	CHECK(pread(file, bytes, 4, 0) == 4 && !memcmp(bytes, "text", 4));
	CHECK(preadv2(file, &iov, 1, 0, 0) == 4);
	CHECK(!fstat(file, &st) && st.st_size == 4);
	CHECK(!posix_fadvise(file, 0, 4, POSIX_FADV_DONTNEED));
}

static void *add_one(void *arg)
{
	++*(int *)arg;
	return NULL;
}

static void threads_work(void)
{
	pthread_t threads[4];
	int counts[4] = { 0 };

	for (int i = 0; i < 4; i++)
		CHECK(!thread_start(&threads[i], add_one, &counts[i]));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL) && counts[i] == 1);
	CHECK(!prctl(PR_SET_NAME, "sandboxed"));
}

/* They exist before the sandbox. Their threads bind themselves to a CPU. */
static void rings_work(void)
{
	cpu_set_t set;

	CHECK(syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0) == -1 &&
	      (errno == EBADF || errno == ENOSYS));
	CHECK(!sched_getaffinity(0, sizeof(set), &set));
	CHECK(!sched_setaffinity(0, sizeof(set), &set));
}

static void *wait_indefinitely(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* As libfuse ends its threads. */
static void threads_can_be_canceled(void)
{
	pthread_t thread;
	void *result;

	CHECK(!thread_start(&thread, wait_indefinitely, NULL));
	CHECK(!pthread_cancel(thread));
	CHECK(!pthread_join(thread, &result) && result == PTHREAD_CANCELED);
}

/* Memory is made as in fs/data/engine, and in a way that can be shared with
   loaders. */
static void memory_is_made_and_shared(void)
{
	const struct pool_options options = { .limit = 8 << 20,
					      .keep = 8 << 20 };
	const struct pool_readers readers = { .mode = 0600 };
	struct pool *pool;
	struct piece *p;
	int fd;

	CHECK(!pool_open(&options, &pool));
	CHECK(!pool_take(pool, 1 << 20, &readers, &p));
	CHECK(p->fd >= 0);
	p->bytes[7] = 9;
	CHECK(!pool_share(pool, p, 0, &fd));
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
	CHECK(!close(fd));
	pool_give(pool, &p);
	pool_close(pool);
	CHECK(!madvise(mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		       4096, MADV_DONTNEED));
}

static void connections_are_taken(void)
{
	struct ucred who;
	socklen_t size = sizeof(who);
	struct pollfd ready = { .fd = listener, .events = POLLIN };
	struct iovec iov = { path, 4 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	char byte;
	int fd;

	CHECK(poll(&ready, 1, 1000) == 1);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	CHECK(fd >= 0);
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size));
	CHECK(sendmsg(fd, &message, MSG_NOSIGNAL) == 4);
	CHECK(recv(fd, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

static void times_pass(void)
{
	const struct timespec pause = { .tv_nsec = 1000 };
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct timespec now;
	pthread_cond_t never;

	CHECK(!clock_gettime(CLOCK_MONOTONIC, &now));
	CHECK(!syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now));
	CHECK(!nanosleep(&pause, NULL));
	CHECK(!clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL));
	clock_cond_init(&never);
	now = clock_in_ms(1);
	pthread_mutex_lock(&lock);
	CHECK(pthread_cond_timedwait(&never, &lock, &now) == ETIMEDOUT);
	pthread_mutex_unlock(&lock);
}

static void signals_of_its_own_come(void)
{
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK(!pthread_kill(pthread_self(), SIGHUP));
	CHECK(!sigwait(&set, &got) && got == SIGHUP);
}

/* --- */

/* Each of them runs with each layer alone, too. */
static void (*const works[])(void) = {
	open_files_are_read,
	threads_work,
	rings_work,
	threads_can_be_canceled,
	memory_is_made_and_shared,
	connections_are_taken,
	times_pass,
	signals_of_its_own_come,
};

/* --- datasets behind URLs --- */

static void servers_are_reached(void)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6,
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT,
				   .sin6_port = 1 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), pair[2];

	CHECK(fd >= 0 && !close(fd));
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 || errno == EAFNOSUPPORT);
	if (fd >= 0)
		CHECK(connect(fd, (struct sockaddr *)&at, sizeof(at)) == -1 &&
		      !is_refusal(errno));
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	CHECK(fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0);
}

static void files_are_read(void)
{
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	char byte;

	CHECK(fd >= 0 && read(fd, &byte, 1) == 1);
	CHECK(!access("/etc/passwd", R_OK));
}

static void servers_cannot_be_made(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_REFUSED(bind(fd, (struct sockaddr *)&any, sizeof(any)));
	CHECK_REFUSED(socket(AF_UNIX, SOCK_STREAM, 0));
	CHECK_REFUSED(socket(AF_PACKET, SOCK_RAW, 0));
	CHECK_REFUSED(socket(AF_NETLINK, SOCK_RAW, 0));
}

/* Its files are open. */
static void a_disk_tier_is_filled(void)
{
	struct statvfs space;

	CHECK(!flock(tier, LOCK_EX | LOCK_NB));
	CHECK(!fstatvfs(tier, &space) && space.f_blocks);
	CHECK(!ftruncate(tier, 0) && !ftruncate(tier, 8192));
	CHECK(pwrite(tier, "page", 4, 4096) == 4);
	CHECK(!fallocate(tier, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			 4096) ||
	      errno == EOPNOTSUPP);
}

static void run_network(enum sandbox_layers layers)
{
	with_network = true;
	for (size_t i = 0; i < ARRAY_LEN(works); i++)
		run(layers, works[i]);
	run(layers, servers_are_reached);
	run(layers, a_disk_tier_is_filled);
	run(layers, files_are_read);
	run(layers, files_to_write_cannot_be_opened);
	if (layers & SANDBOX_LANDLOCK)
		run(layers, no_file_can_be_opened_to_read_and_write);
	run(layers, programs_cannot_be_started);
	if (layers & SANDBOX_SECCOMP) {
		run(layers, servers_cannot_be_made);
		run(layers, names_cannot_be_changed);
		run(layers, others_get_no_signals);
		run(layers, processes_cannot_be_made);
		run(layers, memory_cannot_be_executed);
		run(layers, memory_of_others_stays_theirs);
	}
	with_network = false;
}

/* --- all of them --- */

static void run_all(enum sandbox_layers layers)
{
	for (size_t i = 0; i < ARRAY_LEN(works); i++)
		run(layers, works[i]);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		if (refused[i].by & layers)
			run(layers, refused[i].check);
	}
}

static void listen_and_call(void)
{
	struct sockaddr_un any = { .sun_family = AF_UNIX };

	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(!bind(listener, (struct sockaddr *)&any, sizeof(sa_family_t)));
	CHECK(!listen(listener, 64));
	address_size = sizeof(address);
	CHECK(!getsockname(listener, (struct sockaddr *)&address,
			   &address_size));
	/* More than there are checks. */
	for (int i = 0; i < 8; i++) {
		other = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		CHECK(!connect(other, (struct sockaddr *)&address,
			       address_size));
	}
	caller = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

static void open_all(void)
{
	file = mkstemp(path);
	CHECK(file >= 0 && write(file, "text", 4) == 4);
	listen_and_call();
	victim = fork();
	CHECK(victim >= 0);
	if (!victim) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		wait_indefinitely(NULL);
	}
	tier = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	CHECK(tier >= 0);
}

static void names_report_the_layers(void)
{
	CHECK(!strcmp(sandbox_name(SANDBOX_NONE), "none"));
	CHECK(!strcmp(sandbox_name(SANDBOX_LANDLOCK), "landlock"));
	CHECK(!strcmp(sandbox_name(SANDBOX_SECCOMP), "seccomp"));
	CHECK(!strcmp(sandbox_name(SANDBOX_ALL), "landlock,seccomp"));
}

int main(void)
{
	enum sandbox_layers offered = sandbox_offered();

	names_report_the_layers();
	open_all();
	run_all(SANDBOX_NONE);
	if (offered & SANDBOX_LANDLOCK)
		run_all(SANDBOX_LANDLOCK);
	if (offered & SANDBOX_SECCOMP)
		run_all(SANDBOX_SECCOMP);
	if (offered == SANDBOX_ALL)
		run_all(SANDBOX_ALL);
	run_network(SANDBOX_NONE | (offered & SANDBOX_SECCOMP));
	run_network(offered);
	kill(victim, SIGKILL);
	waitpid(victim, NULL, 0);
	unlink(path);
	return 0;
}
