/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/feed/mounted.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/util/cleanup.h"
#include "fs/util/clock.h"
#include "loader/feed/description.h"
#include "loader/feed/file_reader.h"

enum {
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

/* --- reading --- */

int mounted_read(struct mounted *m, const char *name, struct buffer *into,
		 uint64_t *size)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", m->feed->path, name) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	return file_reader_read(m->reader, path, into, size);
}

int mounted_read_text(struct mounted *m, const char *name, char **out)
{
	uint64_t size;
	int r = mounted_read(m, name, &m->text, &size);

	if (r)
		return r;
	if (size > DESCRIPTION_MAX)
		return -EFBIG;
	*out = strndup((const char *)m->text.bytes, size);
	return *out ? 0 : -ENOMEM;
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

static int compare(struct mounted *m, const char *text)
{
	char print[sizeof(m->refused)], why[DESCRIPTION_WHY_SIZE];
	int r = description_compare(m->feed, text, strlen(text), print, why);

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
	int r = mounted_read_text(m, "dataset.json", &text);

	if (mounted_is_gone(r) || r == -ECANCELED)
		return r;
	m->has_waited = false;
	if (!r)
		return compare(m, text);
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
