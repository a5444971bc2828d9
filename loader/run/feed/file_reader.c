/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/feed/file_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"
#include "loader/util/cancel.h"

enum {
	/* Larger reads gain nothing: the kernel cuts them to 1 MiB. */
	READ_BYTES = 4 << 20,
	STACK_BYTES = 64 << 10,
	/* A read that is canceled and takes longer is abandoned. */
	CLOSE_MS = 200,
	/* Between two questions whether the caller was interrupted. */
	ASK_MS = 50,
};

/* The thread sanitizer takes clone() for fork(). */
#ifdef __SANITIZE_THREAD__
enum { HAS_PROCESS = 0 };
#else
enum { HAS_PROCESS = 1 };
#endif

enum request_state { REQUEST_NONE, REQUEST_ASKED, REQUEST_DONE };

/* The helper process may be killed at any moment, so it takes no lock. */
struct file_reader {
	atomic_uint refs; /* the owner and the thread */
	pthread_t thread;
	bool has_thread; /* started by the first read */
	pid_t pid;	 /* of this process */
	sem_t asked;	 /* posted for a request, and to end */
	sem_t decided; /* posted when `state` or `canceled` may have changed */
	_Atomic enum request_state state;
	atomic_bool canceled;
	atomic_bool closing;
	/* The request's function, path and result. Between REQUEST_ASKED and
	   REQUEST_DONE they belong to the process or thread that reads. */
	file_reader_fn *fn;
	char path[PATH_MAX];
	struct buffer buffer;
	uint64_t size;
	int result;
	char stack[STACK_BYTES] __attribute__((aligned(64)));
};

/* --- reading --- */

static int read_all(int fd, struct buffer *into, uint64_t *size)
{
	struct stat st;
	uint64_t at = 0;
	ssize_t n;
	int r;

	if (fstat(fd, &st))
		return -errno;
	/* O_DIRECT may write whole pages. */
	r = buffer_reserve(into, align_up((uint64_t)st.st_size + 1, 4096));
	while (!r) {
		n = pread(fd, into->bytes + at,
			  min_u64(READ_BYTES, into->capacity - at), (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = -errno;
		if (n <= 0)
			break;
		at += (uint64_t)n;
		if (at >= (uint64_t)st.st_size)
			break;
	}
	/* A file shorter than its size had metadata that could not be read any
	   more. Its header shows whether it is whole. */
	*size = at;
	return r;
}

int file_reader_read_here(const char *path, struct buffer *into, uint64_t *size)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);

	if (fd < 0 && errno == EINVAL)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : read_all(fd, into, size);
}

/* --- the helper process, and its thread --- */

/* A daemon whose rings of io_uring end cancels requests. Here that would mean
   that the caller canceled the read. */
static int error_of(int r)
{
	return r == -ECANCELED ? -ENOTCONN : r;
}

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem) && errno == EINTR)
		;
}

/* Answers requests until the reader is closed. */
static void serve(struct file_reader *r)
{
	while (!atomic_load(&r->closing)) {
		if (atomic_load(&r->state) != REQUEST_ASKED) {
			wait_for(&r->asked);
			continue;
		}
		r->result = error_of(r->fn(r->path, &r->buffer, &r->size));
		atomic_store(&r->state, REQUEST_DONE);
		sem_post(&r->decided);
	}
}

/* The helper process ends with the thread that owns it. It closes its copies of
   this process's files, which would otherwise stay open with it. */
static int run_process(void *arg)
{
	struct file_reader *r = arg;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != r->pid)
		return 0;
	syscall(__NR_close_range, 0, ~0U, 0);
	serve(r);
	return 0;
}

static void put_reader(struct file_reader *r)
{
	if (atomic_fetch_sub(&r->refs, 1) != 1)
		return;
	buffer_fini(&r->buffer);
	sem_destroy(&r->asked);
	sem_destroy(&r->decided);
	free(r);
}

/* Starts the helper process. Without an exit signal the program does not notice
   its end: there is no SIGCHLD, and wait() does not return it. It uses the
   thread-local variables of this thread, which sleeps meanwhile. */
static pid_t start_process(struct file_reader *r)
{
	return HAS_PROCESS ? clone(run_process, r->stack + sizeof(r->stack),
				   CLONE_VM, r)
			   : -1;
}

static void *run_thread(void *arg)
{
	struct file_reader *r = arg;
	pid_t pid = start_process(r);

	while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	/* Without a helper process, or after it was killed, this thread reads.
	   The caller may have missed the helper's last message. */
	sem_post(&r->decided);
	serve(r);
	put_reader(r);
	return NULL;
}

/* --- interface --- */

int file_reader_open(struct file_reader **out)
{
	struct file_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	atomic_init(&r->refs, 1);
	sem_init(&r->asked, 0, 0);
	sem_init(&r->decided, 0, 0);
	*out = r;
	return 0;
}

static int need_thread(struct file_reader *r)
{
	int error;

	if (r->has_thread)
		return 0;
	r->pid = getpid();
	atomic_fetch_add(&r->refs, 1);
	error = thread_start(&r->thread, run_thread, r);
	if (error)
		atomic_fetch_sub(&r->refs, 1);
	r->has_thread = !error;
	return error;
}

static bool is_open(struct file_reader *r)
{
	return atomic_load(&r->state) == REQUEST_ASKED &&
	       !atomic_load(&r->canceled);
}

/* Waits until `state` or `canceled` may have changed. */
static void wait_decided(struct file_reader *r, struct cancel *interrupted)
{
	struct timespec end = clock_in_ms(ASK_MS);

	if (!interrupted) {
		wait_for(&r->decided);
		return;
	}
	if (sem_clockwait(&r->decided, CLOCK_MONOTONIC, &end) && is_open(r) &&
	    cancel_is_asked(interrupted))
		file_reader_cancel(r);
}

int file_reader_do(struct file_reader *r, file_reader_fn *fn, const char *path,
		   struct buffer *into, uint64_t *size,
		   struct cancel *interrupted)
{
	int error = need_thread(r);

	if (error)
		return error;
	if (atomic_load(&r->canceled))
		return -ECANCELED;
	if (snprintf(r->path, sizeof(r->path), "%s", path) >=
	    (int)sizeof(r->path))
		return -ENAMETOOLONG;
	r->fn = fn;
	r->buffer = *into;
	*into = (struct buffer){ .bytes = NULL };
	atomic_store(&r->state, REQUEST_ASKED);
	sem_post(&r->asked);
	while (is_open(r))
		wait_decided(r, interrupted);
	/* An interrupted call fails, even if its work was just done. */
	if (atomic_load(&r->state) != REQUEST_DONE || atomic_load(&r->canceled))
		return -ECANCELED;
	atomic_store(&r->state, REQUEST_NONE);
	*into = r->buffer;
	r->buffer = (struct buffer){ .bytes = NULL };
	*size = r->size;
	return r->result;
}

int file_reader_read(struct file_reader *r, const char *path,
		     struct buffer *into, uint64_t *size)
{
	return file_reader_do(r, file_reader_read_here, path, into, size, NULL);
}

void file_reader_cancel(struct file_reader *r)
{
	atomic_store(&r->canceled, true);
	sem_post(&r->decided);
}

/* Waits for the thread, or leaves it alone. */
static void end_thread(struct file_reader *r)
{
	atomic_store(&r->closing, true);
	sem_post(&r->asked);
	if (!thread_joins_in(r->thread, CLOSE_MS))
		pthread_detach(r->thread);
}

/* The thread waits for a request, so that it ends at once. */
void file_reader_rest(struct file_reader *r)
{
	if (!r->has_thread || atomic_load(&r->state) != REQUEST_NONE)
		return;
	atomic_store(&r->closing, true);
	sem_post(&r->asked);
	pthread_join(r->thread, NULL);
	atomic_store(&r->closing, false);
	r->has_thread = false;
}

void file_reader_close(struct file_reader *r)
{
	if (!r)
		return;
	if (r->has_thread)
		end_thread(r);
	put_reader(r);
}
