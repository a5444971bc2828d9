/* SPDX-License-Identifier: Apache-2.0 */
/* Reads that are abandoned. A FIFO that nothing writes to stands for a file of
   a daemon that does not answer: opening it for reading blocks. */
#include "loader/run/feed/file_reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader/util/cancel.h"
#include "tests/unit/t.h"

enum { DEADLINE_S = 30, SIZE = 5 << 20 };

static char folder[] = "/tmp/reader.XXXXXX";
static char file[64], fifo[64], nothing[64];
static atomic_bool is_read;

static void make_files(void)
{
	FILE *f;

	CHECK(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/file", folder);
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	snprintf(nothing, sizeof(nothing), "%s/nothing", folder);
	CHECK(!mkfifo(fifo, 0600));
	f = fopen(file, "w");
	CHECK(f);
	for (unsigned i = 0; i < SIZE; i++)
		putc((int)(i % 251), f);
	CHECK(!fclose(f));
}

static void check_bytes(const struct buffer *b, uint64_t size)
{
	CHECK(size == SIZE);
	for (unsigned i = 0; i < SIZE; i++)
		CHECK(b->bytes[i] == i % 251);
}

static struct file_reader *open_reader(void)
{
	struct file_reader *r;

	CHECK(!file_reader_open(&r));
	return r;
}

static unsigned count_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void wait_for_threads(unsigned n)
{
	while (count_threads() > n)
		sched_yield();
}

/* The child of any thread, or 0. */
static pid_t find_child(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *entry;
	int pid = 0;

	CHECK(d);
	while (!pid && (entry = readdir(d))) {
		char name[300];
		FILE *f;

		snprintf(name, sizeof(name), "/proc/self/task/%s/children",
			 entry->d_name);
		f = fopen(name, "r");
		if (f && fscanf(f, "%d", &pid) != 1)
			pid = 0;
		if (f)
			fclose(f);
	}
	closedir(d);
	return pid;
}

static void read_files(void)
{
	struct file_reader *r = open_reader();
	struct buffer b = { .bytes = NULL };
	uint64_t size;

	for (int i = 0; i < 3; i++) {
		CHECK(!file_reader_read(r, file, &b, &size));
		check_bytes(&b, size);
		CHECK(file_reader_read(r, nothing, &b, &size) == -ENOENT);
		CHECK(file_reader_read(r, folder, &b, &size) < 0);
	}
	CHECK(!file_reader_read_here(file, &b, &size));
	check_bytes(&b, size);
	file_reader_close(r);
	buffer_fini(&b);
}

static void nothing_is_left_of_a_reader(void)
{
	unsigned threads;

	read_files();
	/* Sanitizers keep a thread that they started with the first one. */
	threads = count_threads();
	read_files();
	wait_for_threads(threads);
	CHECK(!find_child());
	CHECK(waitpid(-1, NULL, __WALL) < 0 && errno == ECHILD);
	file_reader_close(NULL);
	file_reader_close(open_reader());
}

/* Unblocks all threads that open the FIFO for reading, with an empty file. */
static void answer_fifo(void)
{
	close(open(fifo, O_WRONLY | O_NONBLOCK));
	sched_yield();
}

static void *cancel_soon(void *arg)
{
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	file_reader_cancel(arg);
	return NULL;
}

static bool is_third_question(void *asked)
{
	return ++*(int *)asked == 3;
}

/* The caller gives up, in the thread that waits. */
static void a_read_can_be_interrupted(void)
{
	int asked = 0;
	struct cancel cancel = { .fd = -1,
				 .asked = is_third_question,
				 .arg = &asked };
	struct file_reader *r = open_reader();
	struct buffer b = { .bytes = NULL };
	unsigned threads = count_threads();
	uint64_t size;

	CHECK(!file_reader_do(r, file_reader_read_here, file, &b, &size,
			      &cancel));
	check_bytes(&b, size);
	CHECK(file_reader_do(r, file_reader_read_here, fifo, &b, &size,
			     &cancel) == -ECANCELED);
	CHECK(asked >= 3);
	file_reader_rest(r);
	file_reader_close(r);
	while (count_threads() > threads)
		answer_fifo();
	buffer_fini(&b);
}

/* The next read starts another helper process. */
static void a_reader_rests(void)
{
	struct file_reader *r = open_reader();
	struct buffer b = { .bytes = NULL };
	unsigned threads = count_threads();
	uint64_t size;

	for (int i = 0; i < 3; i++) {
		CHECK(!file_reader_read(r, file, &b, &size));
		check_bytes(&b, size);
		file_reader_rest(r);
		wait_for_threads(threads);
		CHECK(!find_child());
	}
	file_reader_rest(r);
	file_reader_close(r);
	buffer_fini(&b);
}

static void a_read_can_be_abandoned(void)
{
	struct file_reader *r = open_reader();
	struct buffer b = { .bytes = NULL };
	unsigned threads = count_threads();
	pthread_t thread;
	uint64_t size;

	CHECK(!file_reader_read(r, file, &b, &size));
	CHECK(!pthread_create(&thread, NULL, cancel_soon, r));
	CHECK(file_reader_read(r, fifo, &b, &size) == -ECANCELED);
	CHECK(file_reader_read(r, file, &b, &size) == -ECANCELED);
	pthread_join(thread, NULL);
	CHECK(!b.bytes);
	file_reader_close(r);
	/* Once the file answers, the thread and the helper process end. */
	CHECK(count_threads() == threads + 1);
	while (count_threads() > threads)
		answer_fifo();
	CHECK(!find_child());
}

static void a_canceled_reader_does_not_begin(void)
{
	struct file_reader *r = open_reader();
	struct buffer b = { .bytes = NULL };
	uint64_t size;

	file_reader_cancel(r);
	CHECK(file_reader_read(r, file, &b, &size) == -ECANCELED);
	file_reader_close(r);
}

/* Then the thread reads, and opens the FIFO again. */
static void *kill_helper(void *arg)
{
	const pid_t *pid = arg;

	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	CHECK(!kill(*pid, SIGKILL));
	while (find_child())
		sched_yield();
	while (!atomic_load(&is_read))
		answer_fifo();
	return NULL;
}

/* A user may find the helper process and kill it, at any moment. */
static void a_killed_helper_is_replaced(void)
{
	struct file_reader *r = open_reader();
	struct buffer b = { .bytes = NULL };
	pthread_t thread;
	uint64_t size;
	pid_t pid;

	CHECK(!file_reader_read(r, file, &b, &size));
	pid = find_child();
	if (!pid) {
		printf("skip: this build has no helper process\n");
		file_reader_close(r);
		buffer_fini(&b);
		return;
	}
	CHECK(!pthread_create(&thread, NULL, kill_helper, &pid));
	/* It was opened, after all. */
	CHECK(file_reader_read(r, fifo, &b, &size) == -ESPIPE);
	atomic_store(&is_read, true);
	pthread_join(thread, NULL);
	CHECK(!find_child());
	CHECK(!file_reader_read(r, file, &b, &size));
	check_bytes(&b, size);
	file_reader_close(r);
	buffer_fini(&b);
}

int main(void)
{
	alarm(DEADLINE_S);
	make_files();
	nothing_is_left_of_a_reader();
	a_read_can_be_interrupted();
	a_reader_rests();
	a_read_can_be_abandoned();
	a_canceled_reader_does_not_begin();
	a_killed_helper_is_replaced();
	CHECK(!unlink(file) && !unlink(fifo) && !rmdir(folder));
	return 0;
}
