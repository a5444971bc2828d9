/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/feed/mounted.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "loader/run/feed/description.h"
#include "loader/run/feed/file_reader.h"

enum {
	ENTRIES_SIZE = 4096, /* of a directory, read at a time */
	/* Between two looks at a mount that is gone. */
	PAUSE_MS = 50,
	WAIT_MIN_MS = 2000,
	WAIT_MAX_MS = 60000,
	/* The wait is this part of the time since the dataset was opened. */
	WAIT_PART = 10,
};

struct mounted {
	const struct feed *feed;
	struct file_reader *reader;
	struct buffer text; /* of the last text; `reader` may hold it */
	int64_t opened_ns;
	bool has_waited; /* in vain, and there has been no mount since */
	/* The dataset that was refused last, or empty. */
	char refused[2 * BETON_FINGERPRINT_SIZE + 1];
	pthread_mutex_t lock; /* guards canceled */
	pthread_cond_t cond;  /* canceled has changed */
	bool canceled;
};

int mounted_open(const struct feed *feed, struct mounted **out)
{
	struct mounted *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->feed = feed;
	m->opened_ns = clock_ns();
	pthread_mutex_init(&m->lock, NULL);
	clock_cond_init(&m->cond);
	r = file_reader_open(&m->reader);
	if (r)
		mounted_close(m);
	else
		*out = m;
	return r;
}

void mounted_close(struct mounted *m)
{
	if (!m)
		return;
	file_reader_close(m->reader);
	buffer_fini(&m->text);
	pthread_cond_destroy(&m->cond);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

void mounted_cancel(struct mounted *m)
{
	file_reader_cancel(m->reader);
	scoped_lock(&m->lock);
	m->canceled = true;
	pthread_cond_signal(&m->cond);
}

void mounted_rest(struct mounted *m)
{
	file_reader_rest(m->reader);
}

/* --- for the reader: see file_reader_fn --- */

/* *size is 1 for a directory with a description, else 0. */
static int find_description(const char *path, struct buffer *into,
			    uint64_t *size)
{
	char name[PATH_MAX];
	struct stat st;

	(void)into;
	*size = !stat(path, &st) && S_ISDIR(st.st_mode) &&
		snprintf(name, sizeof(name), "%s/dataset.json", path) <
			(int)sizeof(name) &&
		!access(name, F_OK);
	return 0;
}

static int read_text(const char *path, struct buffer *into, uint64_t *size)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size > DESCRIPTION_MAX)
		return -EFBIG;
	return file_reader_read_here(path, into, size);
}

static int read_link(const char *path, struct buffer *into, uint64_t *size)
{
	int r = buffer_reserve(into, PATH_MAX);
	ssize_t n = r ? 0 : readlink(path, (char *)into->bytes, PATH_MAX);

	*size = (uint64_t)n;
	if (r)
		return r;
	return n < 0 ? -errno : 0;
}

/* The first name in the entries that begins with no dot, or NULL. */
static const char *pick_name(const uint8_t *entries, ssize_t size)
{
	const struct dirent64 *entry;

	for (ssize_t at = 0; at < size; at += entry->d_reclen) {
		entry = (const void *)(entries + at);
		if (entry->d_name[0] != '.')
			return entry->d_name;
	}
	return NULL;
}

/* opendir() would allocate. */
static int read_first_name(const char *path, struct buffer *into,
			   uint64_t *size)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : buffer_reserve(into, ENTRIES_SIZE);
	const char *name = NULL;
	ssize_t n;

	if (r)
		return r;
	do {
		n = getdents64(fd, into->bytes, ENTRIES_SIZE);
		name = pick_name(into->bytes, n);
	} while (n > 0 && !name);
	if (!name)
		return n < 0 ? -errno : -ENOENT;
	*size = strlen(name);
	memmove(into->bytes, name, *size);
	return 0;
}

/* --- reading --- */

static int read_by(struct mounted *m, file_reader_fn *fn, const char *name,
		   struct buffer *into, uint64_t *size)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", m->feed->path, name) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	return file_reader_do(m->reader, fn, path, into, size,
			      m->feed->interrupted);
}

int mounted_is_there(struct mounted *m, bool *out)
{
	uint64_t found;
	int r = file_reader_do(m->reader, find_description, m->feed->path,
			       &m->text, &found, m->feed->interrupted);

	if (!r)
		*out = found;
	/* The feed of files reports such a path. */
	if (r != -ENAMETOOLONG)
		return r;
	*out = false;
	return 0;
}

int mounted_read(struct mounted *m, const char *name, struct buffer *into,
		 uint64_t *size)
{
	return read_by(m, file_reader_read_here, name, into, size);
}

int mounted_read_text(struct mounted *m, const char *name, char **out,
		      uint64_t *size)
{
	uint64_t n;
	int r = read_by(m, read_text, name, &m->text, &n);

	if (r)
		return r;
	if (n > DESCRIPTION_MAX)
		return -EFBIG;
	*out = malloc(n + 1);
	if (!*out)
		return -ENOMEM;
	memcpy(*out, m->text.bytes, n);
	(*out)[n] = '\0';
	*size = n;
	return 0;
}

/* Reads a name by `fn`, as a string. */
static int read_name(struct mounted *m, file_reader_fn *fn, const char *name,
		     char *out, size_t size)
{
	uint64_t n;
	int r = read_by(m, fn, name, &m->text, &n);

	if (r)
		return r;
	if (n >= size)
		return -ENAMETOOLONG;
	memcpy(out, m->text.bytes, n);
	out[n] = '\0';
	return 0;
}

int mounted_read_link(struct mounted *m, const char *name, char *out,
		      size_t size)
{
	return read_name(m, read_link, name, out, size);
}

int mounted_first_name(struct mounted *m, const char *directory,
		       char out[NAME_MAX + 1])
{
	return read_name(m, read_first_name, directory, out, NAME_MAX + 1);
}

/* --- the dataset --- */

static void log_refusal(struct mounted *m, const char *print)
{
	if (!strcmp(m->refused, print))
		return;
	strcpy(m->refused, print);
	log_error(m->feed->log,
		  "%s: another dataset is mounted there now, with fingerprint "
		  "%s instead of %s; mount the dataset of before, or open "
		  "another loader",
		  m->feed->path, print, m->feed->fingerprint);
}

static int compare(struct mounted *m, const char *text, uint64_t size)
{
	char print[sizeof(m->refused)], why[DESCRIPTION_WHY_SIZE];
	int r = description_compare(m->feed, text, size, print, why);

	if (!r)
		*m->refused = '\0';
	else if (r == -ESTALE)
		log_refusal(m, print);
	else
		log_error(m->feed->log,
			  "%s/dataset.json: not the description of a dataset: "
			  "%s",
			  m->feed->path, why);
	return r;
}

/* A mount that ends has this error for requests under way, or for later ones.
   After it was unmounted, its files are not there. */
bool mounted_is_gone(int error)
{
	return error == -ENOTCONN || error == -ECONNABORTED ||
	       error == -ECONNREFUSED || error == -ENOENT || error == -ENOTDIR;
}

int mounted_check(struct mounted *m)
{
	cleanup_free char *text = NULL;
	uint64_t size;
	int r = mounted_read_text(m, "dataset.json", &text, &size);

	if (mounted_is_gone(r) || r == -ECANCELED)
		return r;
	m->has_waited = false;
	if (!r)
		return compare(m, text, size);
	log_error(m->feed->log, "%s/dataset.json: %s", m->feed->path,
		  strerror(-r));
	return r;
}

/* --- waiting --- */

static int pause_or_cancel(struct mounted *m)
{
	const struct timespec end = clock_in_ms(PAUSE_MS);
	int r = 0;

	scoped_lock(&m->lock);
	while (!m->canceled && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&m->cond, &m->lock, &end);
	return m->canceled ? -ECANCELED : 0;
}

static int64_t limit_ms(const struct mounted *m)
{
	int64_t ms = (clock_ns() - m->opened_ns) / 1000000 / WAIT_PART;

	if (ms < WAIT_MIN_MS)
		return WAIT_MIN_MS;
	return ms < WAIT_MAX_MS ? ms : WAIT_MAX_MS;
}

static int check_until(struct mounted *m, int64_t end)
{
	int r, canceled = 0;

	do {
		r = mounted_check(m);
		if (mounted_is_gone(r))
			canceled = pause_or_cancel(m);
	} while (mounted_is_gone(r) && !canceled && clock_ns() < end);
	return canceled ? canceled : r;
}

int mounted_wait(struct mounted *m)
{
	int64_t begin = clock_ns(), limit = limit_ms(m);
	int r = mounted_check(m);

	if (!mounted_is_gone(r) || m->has_waited)
		return r;
	log_warning(m->feed->log,
		    "%s: the mount is gone: %s; waiting up to %lld s until it "
		    "is mounted again",
		    m->feed->path, strerror(-r), (long long)limit / 1000);
	r = check_until(m, begin + limit * 1000000);
	m->has_waited = mounted_is_gone(r);
	if (m->has_waited)
		log_error(m->feed->log, "%s: not mounted again after %lld s",
			  m->feed->path, (long long)limit / 1000);
	else if (!r)
		log_info(m->feed->log, "%s: mounted again after %.1f s",
			 m->feed->path, (double)(clock_ns() - begin) / 1e9);
	return r;
}
