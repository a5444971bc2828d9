/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/upload/senders.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/crc32c.h"
#include "fs/base/util/name.h"
#include "fs/base/util/thread.h"
#include "fs/source/upload/parts.h"

enum { POLL_MS = 100 };

int senders_init(struct senders *s)
{
	pthread_mutex_init(&s->lock, NULL);
	clock_cond_init(&s->changed);
	s->parts = calloc(PARTS_MAX + 1, sizeof(*s->parts));
	return s->parts ? 0 : log_no_memory(s->log, store_name(s->store));
}

void senders_end(struct senders *s, int error)
{
	pthread_mutex_lock(&s->lock);
	s->ends = true;
	if (!s->error)
		s->error = error;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	for (unsigned i = 0; i < s->num_threads; i++)
		pthread_join(s->threads[i], NULL);
	s->num_threads = 0;
}

void senders_fini(struct senders *s)
{
	for (size_t i = 0; s->parts && i <= PARTS_MAX; i++)
		free(s->parts[i].etag);
	for (size_t i = 0; i < SENDERS_MAX; i++)
		free(s->jobs[i].owned);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s->parts);
}

void senders_checksum(uint32_t crc, char out[SENDERS_CHECKSUM_SIZE])
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	/* 32 bits in digits of 6 bits, with 4 zeros at the end. */
	uint64_t bits = (uint64_t)crc << 4;

	for (int i = 0; i < 6; i++)
		out[i] = digits[bits >> (30 - 6 * i) & 63];
	memcpy(out + 6, "==", 3);
}

/* --- the threads --- */

static int poll_sender(void *arg)
{
	struct senders *s = arg;
	int r;

	pthread_mutex_lock(&s->lock);
	r = s->error;
	pthread_mutex_unlock(&s->lock);
	return r;
}

static int keep_part(struct senders *s, const struct senders_job *job,
		     const struct store_request *r, uint32_t crc)
{
	char *etag = *r->answer.etag ? strdup(r->answer.etag) : NULL;

	if (!*r->answer.etag) {
		log_error(s->log, "%s: the server named no ETag for part %u",
			  store_name(s->store), job->number);
		return -EPROTO;
	}
	if (!etag)
		return log_no_memory(s->log, store_name(s->store));
	pthread_mutex_lock(&s->lock);
	free(s->parts[job->number].etag);
	s->parts[job->number] = (struct senders_part){ etag, crc };
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static int send_part(struct senders *s, const struct senders_job *job)
{
	char line[64], sum[SENDERS_CHECKSUM_SIZE];
	cleanup_free char *query = NULL;
	bool checks = store_has_checksums(s->store);
	uint32_t crc = checks ? crc32c(0, job->bytes, job->size) : 0;
	struct store_request r = {
		.method = NET_PUT,
		.body = job->bytes,
		.body_size = job->size,
		.poll = poll_sender,
		.arg = s,
	};
	int error;

	if (text_print(&query, "partNumber=%u&%s", job->number, s->id_query))
		return log_no_memory(s->log, store_name(s->store));
	r.query = query;
	if (checks) {
		senders_checksum(crc, sum);
		snprintf(line, sizeof(line), "x-amz-checksum-crc32c: %s", sum);
		r.headers[0] = line;
	}
	error = store_send(s->store, &r);
	if (!error)
		error = keep_part(s, job, &r, crc);
	else if (!poll_sender(s))
		store_failed(s->store, &r, "cannot upload a part", error);
	store_request_fini(&r);
	return error;
}

/* Returns a part that no sender has taken, or NULL. */
static struct senders_job *find_job(struct senders *s)
{
	for (size_t i = 0; i < SENDERS_MAX; i++) {
		if (s->jobs[i].number && !s->jobs[i].taken)
			return &s->jobs[i];
	}
	return NULL;
}

static void end_job(struct senders *s, struct senders_job *job, int error)
{
	free(job->owned);
	*job = (struct senders_job){ 0 };
	s->num_jobs--;
	if (!s->error)
		s->error = error;
	pthread_cond_broadcast(&s->changed);
}

static void *run_sender(void *arg)
{
	struct senders *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->error) {
		struct senders_job *job = find_job(s);
		int r;

		if (!job && s->ends)
			break;
		if (!job) {
			pthread_cond_wait(&s->changed, &s->lock);
			continue;
		}
		job->taken = true;
		pthread_mutex_unlock(&s->lock);
		r = send_part(s, job);
		pthread_mutex_lock(&s->lock);
		end_job(s, job, r);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* --- the owner's side --- */

/* Waits a little for a change. The caller holds the lock. */
static void wait_for_change(struct senders *s)
{
	struct timespec end = clock_in_ms(POLL_MS);

	pthread_cond_timedwait(&s->changed, &s->lock, &end);
}

int senders_wait(struct senders *s, unsigned most)
{
	scoped_lock(&s->lock);

	while (!s->error && s->num_jobs > most) {
		int r;

		wait_for_change(s);
		pthread_mutex_unlock(&s->lock);
		r = s->poll ? s->poll(s->arg) : 0;
		pthread_mutex_lock(&s->lock);
		if (!s->error)
			s->error = r;
	}
	return s->error;
}

/* Starts a sender unless there is one for each part. */
static int need_sender(struct senders *s)
{
	int r;

	if (s->num_threads >= s->num_jobs)
		return 0;
	r = thread_start(&s->threads[s->num_threads], run_sender, s);
	if (!r)
		s->num_threads++;
	else if (!s->num_threads)
		log_error(s->log, "cannot start a thread: %s", strerror(-r));
	return s->num_threads ? 0 : r;
}

int senders_push(struct senders *s, unsigned number, const uint8_t *bytes,
		 uint64_t size, uint8_t *owned)
{
	unsigned most = (unsigned)min_u64(parts_window(size), SENDERS_MAX) - 1;
	int r = 0;

	if (number > PARTS_MAX) {
		log_error(s->log,
			  "%s: it would have over %u parts: write a file, and "
			  "copy that to the server",
			  store_name(s->store), PARTS_MAX);
		r = -EFBIG;
	}
	r = r ? r : senders_wait(s, most);
	if (r) {
		free(owned);
		return r;
	}
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < SENDERS_MAX; i++) {
		if (s->jobs[i].number)
			continue;
		s->jobs[i] = (struct senders_job){ number, false, bytes, size,
						   owned };
		s->num_jobs++;
		break;
	}
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return need_sender(s);
}
