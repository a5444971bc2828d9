/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/upload/multipart.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/crc32c.h"
#include "fs/base/util/name.h"
#include "fs/base/util/thread.h"
#include "fs/source/net/xml.h"
#include "fs/source/upload/parts.h"
#include "fs/source/url/percent.h"
#include "fs/source/url/url.h"

enum {
	SENDERS_MAX = 8,
	POLL_MS = 100,
	/* A larger front goes in parts, even if the rest is small. */
	WHOLE_MAX = 64 << 20,
	/* A server may take minutes to join the parts. */
	COMPLETE_STALL_MS = 600 * 1000,
	ABORT_RETRY_MS = 5000,
	TOKEN_SIZE = 17,
	LINE_SIZE = HTTP_TAG_MAX + 64,
	CHECKSUM_SIZE = 9, /* base64 of 4 bytes */
	ID_SIZE = 2048,	   /* of a multipart upload */
};

#define TOKEN_FIELD "x-amz-meta-betonfs-upload"

/* A part that is complete at the server, if `etag` is not NULL. */
struct multipart_part {
	char *etag;
	uint32_t crc;
};

/* Bytes on their way. */
struct multipart_job {
	unsigned number; /* 0: none */
	bool taken;	 /* by a sender */
	const uint8_t *bytes;
	uint64_t size;
	uint8_t *owned; /* the same bytes, if they are to be freed */
};

struct multipart {
	struct store *store;
	struct log *log;
	store_poll *poll;
	void *arg;
	bool is_new;
	bool equal;
	char *etag;
	char token[TOKEN_SIZE]; /* marks the object as ours */

	char *id; /* of the multipart upload; NULL: not begun */
	char *id_query;
	bool complete;
	unsigned front_parts;
	uint64_t front_max;

	/* The first appended bytes, which follow the front. */
	uint8_t *lead;
	uint64_t lead_size;
	/* The part that is being filled. */
	uint8_t *bytes;
	uint64_t filled;
	unsigned num_filled; /* parts before it */
	uint64_t appended;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* The lock guards the members below. */
	struct multipart_part *parts; /* PARTS_MAX of them */
	struct multipart_job jobs[SENDERS_MAX];
	unsigned num_jobs;
	int error; /* the first failure */
	bool ends; /* the senders end */

	pthread_t senders[SENDERS_MAX];
	unsigned num_senders;
};

/* --- opening and closing ------------------------------------------------- */

static void make_token(char token[TOKEN_SIZE])
{
	uint64_t noise = 0;

	if (getrandom(&noise, sizeof(noise), GRND_NONBLOCK) < 0)
		noise = (uint64_t)clock_ns() ^ (uint64_t)getpid() << 40;
	snprintf(token, TOKEN_SIZE, "%016llx", (unsigned long long)noise);
}

int multipart_open(const struct multipart_setup *setup, struct multipart **out)
{
	struct multipart *u = calloc(1, sizeof(*u));

	if (!u)
		return log_no_memory(setup->log, store_name(setup->store));
	u->store = setup->store;
	u->log = setup->log;
	u->poll = setup->poll;
	u->arg = setup->arg;
	u->equal = setup->equal;
	u->front_max = setup->front;
	u->front_parts = parts_of_front(setup->front);
	make_token(u->token);
	pthread_mutex_init(&u->lock, NULL);
	clock_cond_init(&u->changed);
	u->parts = calloc(PARTS_MAX + 1, sizeof(*u->parts));
	u->lead = u->equal ? NULL : malloc(PARTS_FIRST);
	if (!u->parts || (!u->lead && !u->equal)) {
		multipart_close(u);
		log_error(setup->log, "%s: out of memory",
			  store_name(setup->store));
		return -ENOMEM;
	}
	*out = u;
	return 0;
}

int multipart_expect(struct multipart *u, bool is_new, const char *etag)
{
	u->is_new = is_new;
	free(u->etag);
	u->etag = etag ? strdup(etag) : NULL;
	return etag && !u->etag ? log_no_memory(u->log, store_name(u->store))
				: 0;
}

static void end_senders(struct multipart *u, int error)
{
	pthread_mutex_lock(&u->lock);
	u->ends = true;
	if (!u->error)
		u->error = error;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
	for (unsigned i = 0; i < u->num_senders; i++)
		pthread_join(u->senders[i], NULL);
	u->num_senders = 0;
}

/* Removes the parts at the server. */
static void abort_parts(struct multipart *u)
{
	struct store_request r = {
		.method = NET_DELETE,
		.query = u->id_query,
		.retry_ms = ABORT_RETRY_MS,
		.stall_ms = ABORT_RETRY_MS,
	};
	int error = store_send(u->store, &r);

	if (error && error != -ENOENT)
		log_warning(u->log,
			    "%s: its unfinished upload %s stays on the server "
			    "and takes space: %s; remove it with "
			    "AbortMultipartUpload, or by a lifecycle rule",
			    store_name(u->store), u->id, r.why);
	store_request_fini(&r);
}

void multipart_close(struct multipart *u)
{
	if (!u)
		return;
	end_senders(u, -ECANCELED);
	if (u->id && !u->complete)
		abort_parts(u);
	for (size_t i = 0; u->parts && i <= PARTS_MAX; i++)
		free(u->parts[i].etag);
	for (size_t i = 0; i < SENDERS_MAX; i++)
		free(u->jobs[i].owned);
	pthread_cond_destroy(&u->changed);
	pthread_mutex_destroy(&u->lock);
	free(u->parts);
	free(u->lead);
	free(u->bytes);
	free(u->etag);
	free(u->id);
	free(u->id_query);
	free(u);
}

/* --- headers ------------------------------------------------------------- */

/* CRC-32C as S3 wants it: base64 of the bytes in network order. */
static void write_checksum(uint32_t crc, char out[CHECKSUM_SIZE])
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	/* 32 bits in digits of 6 bits, with 4 zeros at the end. */
	uint64_t bits = (uint64_t)crc << 4;

	for (int i = 0; i < 6; i++)
		out[i] = digits[bits >> (30 - 6 * i) & 63];
	memcpy(out + 6, "==", 3);
}

/* The condition of the request that makes the object visible. */
static const char *condition_of(const struct multipart *u, char line[LINE_SIZE])
{
	if (u->is_new)
		return "if-none-match: *";
	if (!u->etag)
		return NULL;
	snprintf(line, LINE_SIZE, "if-match: %s", u->etag);
	return line;
}

/* --- the senders --------------------------------------------------------- */

static int poll_sender(void *arg)
{
	struct multipart *u = arg;
	int r;

	pthread_mutex_lock(&u->lock);
	r = u->error;
	pthread_mutex_unlock(&u->lock);
	return r;
}

static int keep_part(struct multipart *u, const struct multipart_job *job,
		     const struct store_request *r, uint32_t crc)
{
	char *etag = *r->answer.etag ? strdup(r->answer.etag) : NULL;

	if (!*r->answer.etag) {
		log_error(u->log, "%s: the server named no ETag for part %u",
			  store_name(u->store), job->number);
		return -EPROTO;
	}
	if (!etag)
		return log_no_memory(u->log, store_name(u->store));
	pthread_mutex_lock(&u->lock);
	free(u->parts[job->number].etag);
	u->parts[job->number] = (struct multipart_part){ etag, crc };
	pthread_mutex_unlock(&u->lock);
	return 0;
}

static int send_part(struct multipart *u, const struct multipart_job *job)
{
	char line[64], sum[CHECKSUM_SIZE];
	cleanup_free char *query = NULL;
	bool checks = store_has_checksums(u->store);
	uint32_t crc = checks ? crc32c(0, job->bytes, job->size) : 0;
	struct store_request r = {
		.method = NET_PUT,
		.body = job->bytes,
		.body_size = job->size,
		.poll = poll_sender,
		.arg = u,
	};
	int error;

	if (text_print(&query, "partNumber=%u&%s", job->number, u->id_query))
		return log_no_memory(u->log, store_name(u->store));
	r.query = query;
	if (checks) {
		write_checksum(crc, sum);
		snprintf(line, sizeof(line), "x-amz-checksum-crc32c: %s", sum);
		r.headers[0] = line;
	}
	error = store_send(u->store, &r);
	if (!error)
		error = keep_part(u, job, &r, crc);
	else if (!poll_sender(u))
		store_failed(u->store, &r, "cannot upload a part", error);
	store_request_fini(&r);
	return error;
}

/* Returns a part that no sender has taken, or NULL. */
static struct multipart_job *find_job(struct multipart *u)
{
	for (size_t i = 0; i < SENDERS_MAX; i++) {
		if (u->jobs[i].number && !u->jobs[i].taken)
			return &u->jobs[i];
	}
	return NULL;
}

static void end_job(struct multipart *u, struct multipart_job *job, int error)
{
	free(job->owned);
	*job = (struct multipart_job){ 0 };
	u->num_jobs--;
	if (!u->error)
		u->error = error;
	pthread_cond_broadcast(&u->changed);
}

static void *run_sender(void *arg)
{
	struct multipart *u = arg;

	pthread_mutex_lock(&u->lock);
	while (!u->error) {
		struct multipart_job *job = find_job(u);
		int r;

		if (!job && u->ends)
			break;
		if (!job) {
			pthread_cond_wait(&u->changed, &u->lock);
			continue;
		}
		job->taken = true;
		pthread_mutex_unlock(&u->lock);
		r = send_part(u, job);
		pthread_mutex_lock(&u->lock);
		end_job(u, job, r);
	}
	pthread_mutex_unlock(&u->lock);
	return NULL;
}

/* --- the owner's side ---------------------------------------------------- */

/* Waits a little for a change. The caller holds the lock. */
static void wait_for_change(struct multipart *u)
{
	struct timespec end = clock_in_ms(POLL_MS);

	pthread_cond_timedwait(&u->changed, &u->lock, &end);
}

/* Waits until at most `most` parts are on their way. */
static int wait_for_jobs(struct multipart *u, unsigned most)
{
	scoped_lock(&u->lock);

	while (!u->error && u->num_jobs > most) {
		int r;

		wait_for_change(u);
		pthread_mutex_unlock(&u->lock);
		r = u->poll ? u->poll(u->arg) : 0;
		pthread_mutex_lock(&u->lock);
		if (!u->error)
			u->error = r;
	}
	return u->error;
}

/* Starts a sender unless there is one for each part. */
static int need_sender(struct multipart *u)
{
	int r;

	if (u->num_senders >= u->num_jobs)
		return 0;
	r = thread_start(&u->senders[u->num_senders], run_sender, u);
	if (!r)
		u->num_senders++;
	else if (!u->num_senders)
		log_error(u->log, "cannot start a thread: %s", strerror(-r));
	return u->num_senders ? 0 : r;
}

static int begin(struct multipart *u);

/* Sends a part as soon as there is room. Takes `owned`, also on failure. */
static int push(struct multipart *u, unsigned number, const uint8_t *bytes,
		uint64_t size, uint8_t *owned)
{
	unsigned most = (unsigned)min_u64(parts_window(size), SENDERS_MAX) - 1;
	int r = begin(u);

	if (!r && number > PARTS_MAX) {
		log_error(u->log,
			  "%s: it would have over %u parts: write a file, and "
			  "copy that to the server",
			  store_name(u->store), PARTS_MAX);
		r = -EFBIG;
	}
	r = r ? r : wait_for_jobs(u, most);
	if (r) {
		free(owned);
		return r;
	}
	pthread_mutex_lock(&u->lock);
	for (size_t i = 0; i < SENDERS_MAX; i++) {
		if (u->jobs[i].number)
			continue;
		u->jobs[i] = (struct multipart_job){ number, false, bytes, size,
						     owned };
		u->num_jobs++;
		break;
	}
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
	return need_sender(u);
}

static int send_filled(struct multipart *u)
{
	uint8_t *bytes = steal(u->bytes);
	uint64_t size = u->filled;

	u->filled = 0;
	return push(u, u->front_parts + ++u->num_filled, bytes, size, bytes);
}

/* Copies the beginning of `size` bytes into memory. Returns how many. */
static uint64_t take(uint8_t *to, uint64_t have, uint64_t room,
		     const uint8_t *bytes, uint64_t size)
{
	uint64_t n = min_u64(size, room - have);

	if (bytes)
		memcpy(to + have, bytes, n);
	else
		memset(to + have, 0, n);
	return n;
}

static int append_some(struct multipart *u, const uint8_t *bytes, uint64_t size,
		       uint64_t *taken)
{
	uint64_t room = parts_size(u->num_filled);

	if (u->lead_size < PARTS_FIRST) {
		*taken = take(u->lead, u->lead_size, PARTS_FIRST, bytes, size);
		u->lead_size += *taken;
		return 0;
	}
	if (u->filled == room)
		return send_filled(u);
	if (!u->bytes)
		u->bytes = malloc(room);
	if (!u->bytes)
		return log_no_memory(u->log, store_name(u->store));
	*taken = take(u->bytes, u->filled, room, bytes, size);
	u->filled += *taken;
	return 0;
}

int multipart_append(struct multipart *u, const void *bytes, uint64_t size)
{
	const uint8_t *from = bytes;
	int r = 0;

	u->appended += size;
	while (size && !r) {
		uint64_t n = 0;

		r = append_some(u, from, size, &n);
		from = from ? from + n : NULL;
		size -= n;
	}
	return r;
}

/* --- requests of the whole object ---------------------------------------- */

static int set_id(struct multipart *u, const struct store_request *r)
{
	char id[ID_SIZE];
	cleanup_free char *encoded = NULL;

	if (!r->text ||
	    !xml_text(r->text, r->text_size, "UploadId", id, sizeof(id)) ||
	    !*id) {
		log_error(u->log,
			  "%s: the answer to CreateMultipartUpload has no "
			  "UploadId",
			  store_name(u->store));
		return -EPROTO;
	}
	if (url_encode(id, true, &encoded))
		return log_no_memory(u->log, store_name(u->store));
	text_print(&u->id_query, "uploadId=%s", encoded);
	u->id = u->id_query ? strdup(id) : NULL;
	return u->id ? 0 : log_no_memory(u->log, store_name(u->store));
}

/* Begins a multipart upload unless there is one. */
static int begin(struct multipart *u)
{
	char token[64];
	struct store_request r = {
		.method = NET_POST,
		.query = "uploads=",
		.headers = { token, "content-type: application/octet-stream" },
		.poll = u->poll,
		.arg = u->arg,
	};
	int error;

	if (u->id)
		return 0;
	snprintf(token, sizeof(token), TOKEN_FIELD ": %s", u->token);
	if (store_has_checksums(u->store))
		r.headers[2] = "x-amz-checksum-algorithm: CRC32C";
	error = store_send(u->store, &r);
	if (!error)
		error = set_id(u, &r);
	else
		store_failed(u->store, &r, "cannot begin an upload", error);
	store_request_fini(&r);
	return error;
}

/* Returns whether the name has our object, after a request whose answer did not
   arrive. Some servers do not keep the token. */
static bool is_stored(struct multipart *u, uint64_t size, char *etag)
{
	struct store_request r = {
		.method = NET_HEAD,
		.field = TOKEN_FIELD,
		.poll = u->poll,
		.arg = u->arg,
	};
	bool is = !store_send(u->store, &r) && r.answer.has_length &&
		  r.answer.length == size;

	if (is && *r.value)
		is = !strcmp(r.value, u->token);
	else if (is && u->etag)
		is = strcmp(r.answer.etag, u->etag) != 0;
	if (is)
		snprintf(etag, HTTP_TAG_MAX, "%s", r.answer.etag);
	store_request_fini(&r);
	return is;
}

static int refuse_other(struct multipart *u, int r)
{
	log_error(u->log,
		  "%s: another program wrote it meanwhile: nothing was "
		  "uploaded; try again",
		  store_name(u->store));
	return u->is_new ? -EEXIST : r;
}

/* Sends the request that makes the object visible. Its first header is the
   condition; a server that does not know it gets the request without. */
static int store_object(struct multipart *u, struct store_request *r,
			uint64_t size, char *etag)
{
	char line[LINE_SIZE];
	int error;

	r->headers[0] = condition_of(u, line);
	error = store_send(u->store, r);
	if (error == -ENOTSUP && r->headers[0]) {
		store_request_fini(r);
		r->headers[0] = NULL;
		error = store_send(u->store, r);
	}
	if (error && r->may_be_done && is_stored(u, size, etag))
		return 0;
	if (!error)
		snprintf(etag, HTTP_TAG_MAX, "%s", r->answer.etag);
	else if (error == -ESTALE)
		return refuse_other(u, error);
	else
		store_failed(u->store, r, "cannot upload it", error);
	return error;
}

/* Stores the object by one request. */
static int put_whole(struct multipart *u, const uint8_t *bytes, uint64_t size,
		     struct multipart_result *result)
{
	char token[64];
	struct store_request r = {
		.method = NET_PUT,
		.headers = { NULL, token,
			     "content-type: application/octet-stream" },
		.body = bytes,
		.body_size = size,
		.poll = u->poll,
		.arg = u->arg,
	};
	int error;

	snprintf(token, sizeof(token), TOKEN_FIELD ": %s", u->token);
	if (!store_has_parts(u->store))
		r.headers[1] = store_whole_header(u->store);
	error = store_object(u, &r, size, result->etag);
	store_request_fini(&r);
	return error;
}

static void print_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("<>&\"", *text))
			fprintf(out, "&#%d;", *text);
		else
			fputc(*text, out);
	}
}

/* Returns the list of parts as XML, which the caller frees, or NULL. */
static char *list_parts(struct multipart *u, size_t *size, unsigned *num)
{
	char *text = NULL, sum[CHECKSUM_SIZE];
	FILE *out = open_memstream(&text, size);

	if (!out)
		return NULL;
	fputs("<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/"
	      "2006-03-01/\">",
	      out);
	for (unsigned i = 1; i <= PARTS_MAX; i++) {
		const struct multipart_part *p = &u->parts[i];

		if (!p->etag)
			continue;
		(*num)++;
		fputs("<Part><ETag>", out);
		print_text(out, p->etag);
		fputs("</ETag>", out);
		if (store_has_checksums(u->store)) {
			write_checksum(p->crc, sum);
			fprintf(out, "<ChecksumCRC32C>%s</ChecksumCRC32C>",
				sum);
		}
		fprintf(out, "<PartNumber>%u</PartNumber></Part>", i);
	}
	fputs("</CompleteMultipartUpload>", out);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static int complete(struct multipart *u, uint64_t size,
		    struct multipart_result *result)
{
	size_t list_size = 0;
	cleanup_free char *list = list_parts(u, &list_size, &result->parts);
	struct store_request r = {
		.method = NET_POST,
		.query = u->id_query,
		.headers = { NULL, "content-type: application/xml" },
		.body = list,
		.body_size = list_size,
		.poll = u->poll,
		.arg = u->arg,
		.stall_ms = COMPLETE_STALL_MS,
	};
	char etag[HTTP_TAG_MAX];
	int error;

	if (!list)
		return log_no_memory(u->log, store_name(u->store));
	error = store_object(u, &r, size, result->etag);
	/* The head has the ETag of the answer, if any. */
	if (!error && r.text &&
	    xml_text(r.text, r.text_size, "ETag", etag, sizeof(etag)) && *etag)
		memcpy(result->etag, etag, sizeof(etag));
	store_request_fini(&r);
	return error;
}

/* --- the end ------------------------------------------------------------- */

static int write_behind(struct multipart *u, int fd, const uint8_t *bytes,
			uint64_t size, uint64_t off)
{
	while (size) {
		ssize_t n = pwrite(fd, bytes, size, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			n = -errno;
			log_error(u->log, "%s: temporary file: %s",
				  store_name(u->store), strerror(errno));
			return (int)n;
		}
		bytes += n;
		off += (uint64_t)n;
		size -= (uint64_t)n;
	}
	return 0;
}

/* Sends mapped bytes as parts 1 to `num`, of about one size. */
static int push_front(struct multipart *u, const uint8_t *bytes, uint64_t size,
		      unsigned num)
{
	uint64_t each, at = 0;
	int r = 0;

	/* If the front is much smaller than it could have been, fewer parts. */
	num = (unsigned)max_u64(min_u64(num, size / PARTS_SMALLEST), 1);
	each = size / num;
	for (unsigned i = 1; i <= num && !r; i++) {
		uint64_t n = i == num ? size - at : each;

		r = push(u, i, bytes + at, n, NULL);
		at += n;
	}
	return r;
}

static int push_equal(struct multipart *u, const uint8_t *bytes, uint64_t size)
{
	uint64_t each = parts_equal(size), n;
	int r = 0;

	for (uint64_t at = 0; at < size && !r; at += n) {
		n = min_u64(each, size - at);
		r = push(u, (unsigned)(at / each) + 1, bytes + at, n, NULL);
	}
	return r;
}

/* `bytes` is the beginning of the object: the front, and what of the appended
   bytes is not sent as a part. */
static int send_rest(struct multipart *u, const uint8_t *bytes, uint64_t size,
		     struct multipart_result *result)
{
	int r;

	if (!u->id && (size <= WHOLE_MAX || !store_has_parts(u->store)))
		return put_whole(u, bytes, size, result);
	if (u->equal || !u->id)
		r = push_equal(u, bytes, size);
	else
		r = push_front(u, bytes, size, u->front_parts);
	r = r ? r : wait_for_jobs(u, 0);
	return r ? r : complete(u, result->size, result);
}

int multipart_finish(struct multipart *u, int fd, uint64_t front,
		     struct multipart_result *result)
{
	uint64_t size = front + u->lead_size;
	void *bytes = NULL;
	int r = write_behind(u, fd, u->lead, u->lead_size, front);

	*result = (struct multipart_result){ .size = front + u->appended };
	if (!r && u->filled && u->id) {
		r = send_filled(u);
	} else if (!r && u->filled) {
		r = write_behind(u, fd, u->bytes, u->filled, size);
		size += u->filled;
	}
	if (!r && size) {
		bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
		if (bytes == MAP_FAILED)
			return log_no_memory(u->log, store_name(u->store));
	}
	r = r ? r : send_rest(u, bytes, size, result);
	u->complete = !r;
	/* The senders read the mapped bytes. */
	end_senders(u, r);
	if (bytes)
		munmap(bytes, size);
	result->repeated = store_repeated(u->store);
	return r;
}
