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
#include "fs/base/util/name.h"
#include "fs/source/net/xml.h"
#include "fs/source/upload/parts.h"
#include "fs/source/upload/senders.h"
#include "fs/source/url/percent.h"
#include "fs/source/url/url.h"

enum {
	/* A larger front goes in parts, even if the rest is small. */
	WHOLE_MAX = 64 << 20,
	/* A server may take minutes to join the parts. */
	COMPLETE_STALL_MS = 600 * 1000,
	ABORT_RETRY_MS = 5000,
	TOKEN_SIZE = 17,
	LINE_SIZE = HTTP_TAG_MAX + 64,
	ID_SIZE = 2048, /* of a multipart upload */
};

#define TOKEN_FIELD "x-amz-meta-betonfs-upload"

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

	struct senders senders;
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
	int r;

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
	u->senders = (struct senders){
		.store = u->store, .log = u->log, .poll = u->poll, .arg = u->arg
	};
	r = senders_init(&u->senders);
	u->lead = u->equal ? NULL : malloc(PARTS_FIRST);
	if (!r && !u->lead && !u->equal)
		r = log_no_memory(u->log, store_name(u->store));
	if (r) {
		multipart_close(u);
		return r;
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
	senders_end(&u->senders, -ECANCELED);
	if (u->id && !u->complete)
		abort_parts(u);
	senders_fini(&u->senders);
	free(u->lead);
	free(u->bytes);
	free(u->etag);
	free(u->id);
	free(u->id_query);
	free(u);
}

/* --- headers ------------------------------------------------------------- */

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

/* --- the owner's side ---------------------------------------------------- */

static int begin(struct multipart *u);

/* Begins the upload, and sends a part of it. Takes `owned`, also on failure. */
static int push(struct multipart *u, unsigned number, const uint8_t *bytes,
		uint64_t size, uint8_t *owned)
{
	int r = begin(u);

	if (r)
		free(owned);
	else
		r = senders_push(&u->senders, number, bytes, size, owned);
	return r;
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
	u->senders.id_query = u->id_query;
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
	char *text = NULL, sum[SENDERS_CHECKSUM_SIZE];
	FILE *out = open_memstream(&text, size);

	if (!out)
		return NULL;
	fputs("<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/"
	      "2006-03-01/\">",
	      out);
	for (unsigned i = 1; i <= PARTS_MAX; i++) {
		const struct senders_part *p = &u->senders.parts[i];

		if (!p->etag)
			continue;
		(*num)++;
		fputs("<Part><ETag>", out);
		print_text(out, p->etag);
		fputs("</ETag>", out);
		if (store_has_checksums(u->store)) {
			senders_checksum(p->crc, sum);
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
	r = r ? r : senders_wait(&u->senders, 0);
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
	senders_end(&u->senders, r);
	if (bytes)
		munmap(bytes, size);
	result->repeated = store_repeated(u->store);
	return r;
}
