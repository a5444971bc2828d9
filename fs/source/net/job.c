/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/net/job.h"

#ifdef HAVE_CURL

#	include <errno.h>
#	include <stdio.h>
#	include <stdlib.h>
#	include <string.h>
#	include <strings.h>

#	include "fs/base/util/bytes.h"
#	include "fs/base/util/clock.h"

enum {
	REDIRECTS_MAX = 5,
	/* libcurl passes 16 KiB at most to a callback, but receives more. */
	BUFFER_SIZE = 128 << 10,
	CONNECT_MS = 5000,
	/* Fewer bytes of an answer do not count as progress, so that a server
	   cannot keep a read by a byte now and then. */
	PROGRESS_MIN = 256,
	TRAILERS_MAX = 16 << 10,
	/* CURLOPT_QUICK_EXIT, which libcurl has since 7.87. */
	QUICK_EXIT = 322,
};

struct net_job *job_new(const struct curl_api *curl)
{
	struct net_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->curl = curl;
	job->easy = curl->easy_init();
	if (job->easy)
		return job;
	free(job);
	return NULL;
}

void job_free(struct net_job *job)
{
	job->curl->easy_cleanup(job->easy);
	free(job);
}

/* --- callbacks of libcurl --- */

static bool has_ended(const struct net_job *job)
{
	return job->canceled || job->stopped;
}

static int64_t sent_at(struct net_job *job)
{
	struct net_transfer *t = job->transfer;
	curl_off_t us = 0;

	if (!t->sent_ns &&
	    !job->curl->easy_getinfo(job->easy, CURLINFO_PRETRANSFER_TIME_T,
				     &us) &&
	    us > 0)
		t->sent_ns = t->begin_ns + us * 1000;
	return t->sent_ns;
}

static void note_progress(struct net_job *job)
{
	job->transfer->last_ns = clock_ns();
	job->unnoted = 0;
}

static void note_wire(struct net_job *job, size_t size)
{
	struct net_transfer *t = job->transfer;

	t->wire_bytes += size;
	if (t->first_ns)
		return;
	note_progress(job);
	t->first_ns = t->last_ns;
	sent_at(job);
}

/* A store that composes an upload sends single bytes meanwhile. */
static void note_body(struct net_job *job, size_t size)
{
	note_wire(job, size);
	job->unnoted += size;
	if (job->transfer->method > NET_HEAD || job->unnoted >= PROGRESS_MIN)
		note_progress(job);
}

static bool is_redirect(const struct net_transfer *t)
{
	const struct http_answer *a = &t->answer;

	return t->method <= NET_HEAD && !t->no_redirects && a->has_location &&
	       (a->status == 301 || a->status == 302 || a->status == 303 ||
		a->status == 307 || a->status == 308);
}

/* An informational answer, or a redirect: its body is dropped. */
static bool is_passing(const struct net_transfer *t)
{
	return t->answer.status < 200 || is_redirect(t);
}

static bool is_end_of_head(const char *line, size_t size)
{
	return size && size <= 2 && (*line == '\r' || *line == '\n');
}

static void complete_head(struct net_job *job)
{
	struct net_transfer *t = job->transfer;

	if (job->head_is_complete || is_passing(t))
		return;
	job->head_is_complete = true;
	note_progress(job);
	if (t->head)
		job->stopped = t->head(t);
}

/* Trailers follow the body. libcurl keeps them all in memory. */
static size_t take_trailer(struct net_job *job, size_t size)
{
	job->trailers += size;
	return job->trailers > TRAILERS_MAX ? 0 : size;
}

static size_t take_line(char *line, size_t one, size_t size, void *arg)
{
	struct net_job *job = arg;
	struct net_transfer *t = job->transfer;

	(void)one;
	if (has_ended(job))
		return 0;
	note_wire(job, size);
	if (job->head_is_complete)
		return take_trailer(job, size);
	http_line(&t->answer, line, size);
	if (t->line)
		t->line(t, line, size);
	if (is_end_of_head(line, size))
		complete_head(job);
	return has_ended(job) ? 0 : size;
}

static size_t take_bytes(char *data, size_t one, size_t size, void *arg)
{
	struct net_job *job = arg;
	struct net_transfer *t = job->transfer;

	(void)one;
	if (has_ended(job))
		return 0;
	note_body(job, size);
	if (!is_passing(t) && t->sink)
		job->stopped = t->sink(t, data, size);
	return has_ended(job) ? 0 : size;
}

static size_t give_bytes(char *to, size_t one, size_t room, void *arg)
{
	struct net_job *job = arg;
	struct net_transfer *t = job->transfer;
	size_t n = min_u64(room * one, t->body_size - job->sent);

	if (has_ended(job))
		return CURL_READFUNC_ABORT;
	t->last_ns = clock_ns();
	if (n)
		memcpy(to, (const char *)t->body + job->sent, n);
	job->sent += n;
	return n;
}

static int seek_body(void *arg, curl_off_t off, int origin)
{
	struct net_job *job = arg;

	if (origin != SEEK_SET || off < 0 ||
	    (uint64_t)off > job->transfer->body_size)
		return CURL_SEEKFUNC_FAIL;
	job->sent = (size_t)off;
	return CURL_SEEKFUNC_OK;
}

/* --- options --- */

#	define SET(job, option, value)                                        \
		(job)->curl->easy_setopt((job)->easy, CURLOPT_##option, value)

static size_t append(struct net_job *job, size_t n, const char *line)
{
	/* libcurl reads the text, and takes a writable pointer. */
	job->lines[n].data = (char *)(uintptr_t)line;
	job->lines[n].next = NULL;
	if (n)
		job->lines[n - 1].next = &job->lines[n];
	return n + 1;
}

static size_t append_all(struct net_job *job, size_t n,
			 const struct net_lines *lines)
{
	for (size_t i = 0; i < lines->num; i++)
		n = append(job, n, lines->at[i]);
	return n;
}

static void set_lines(struct net_job *job, bool with_secrets)
{
	const struct net_transfer *t = job->transfer;
	size_t n = append_all(job, 0, &t->headers);

	if (with_secrets)
		n = append_all(job, n, &t->secrets);
	SET(job, USERPWD, with_secrets ? t->userinfo : NULL);
	/* An entry "default" would go to the target of a redirect. */
	SET(job, NETRC,
	    (long)(with_secrets && t->netrc ? CURL_NETRC_OPTIONAL
					    : CURL_NETRC_IGNORED));
	/* An upload waits for no answer before its body. */
	n = append(job, n, "Expect:");
	append(job, n, "Accept-Encoding: identity");
	SET(job, HTTPHEADER, job->lines);
}

static void set_callbacks(struct net_job *job)
{
	SET(job, ERRORBUFFER, job->error);
	SET(job, PRIVATE, job);
	SET(job, HEADERFUNCTION, take_line);
	SET(job, HEADERDATA, job);
	SET(job, WRITEFUNCTION, take_bytes);
	SET(job, WRITEDATA, job);
	SET(job, READFUNCTION, give_bytes);
	SET(job, READDATA, job);
	SET(job, SEEKFUNCTION, seek_body);
	SET(job, SEEKDATA, job);
}

static void set_method(struct net_job *job)
{
	const struct net_transfer *t = job->transfer;

	switch (t->method) {
	case NET_GET:
		SET(job, HTTPGET, 1L);
		break;
	case NET_HEAD:
		SET(job, NOBODY, 1L);
		break;
	case NET_PUT:
		SET(job, UPLOAD, 1L);
		SET(job, INFILESIZE_LARGE, (curl_off_t)t->body_size);
		break;
	case NET_POST:
		SET(job, POST, 1L);
		SET(job, POSTFIELDSIZE_LARGE, (curl_off_t)t->body_size);
		SET(job, POSTFIELDS, t->body ? t->body : "");
		break;
	case NET_DELETE:
		SET(job, CUSTOMREQUEST, "DELETE");
		break;
	}
}

static void set_connection(struct net_job *job)
{
	const struct net_transfer *t = job->transfer;
	char agent[64];

	SET(job, NOSIGNAL, 1L);
	/* Keys of objects may contain "..". */
	SET(job, PATH_AS_IS, 1L);
	SET(job, HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(job, PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
	SET(job, FOLLOWLOCATION, 0L);
	SET(job, BUFFERSIZE, (long)BUFFER_SIZE);
	SET(job, TCP_KEEPALIVE, 1L);
	if (t->direct)
		SET(job, PROXY, "");
	SET(job, CONNECTTIMEOUT_MS,
	    (long)(t->connect_ms ? t->connect_ms : CONNECT_MS));
	SET(job, FRESH_CONNECT, (long)t->fresh);
	SET(job, DNS_CACHE_TIMEOUT, t->fresh ? 0L : 60L);
	/* Otherwise, the end of a transfer waits for its name, and all others
	   wait with it. An older libcurl does not know this option. */
	job->curl->easy_setopt(job->easy, (CURLoption)QUICK_EXIT, 1L);
	snprintf(agent, sizeof(agent), "betonfs/%s", beton_version());
	SET(job, USERAGENT, agent);
}

static void set_certificates(struct net_job *job)
{
	const char *bundle = secure_getenv("CURL_CA_BUNDLE");
	const char *dir = secure_getenv("SSL_CERT_DIR");

	if (!bundle || !*bundle)
		bundle = secure_getenv("SSL_CERT_FILE");
	if (bundle && *bundle)
		SET(job, CAINFO, bundle);
	if (dir && *dir)
		SET(job, CAPATH, dir);
}

int job_begin(struct net_job *job, struct net_transfer *t)
{
	if (t->headers.num + t->secrets.num > NET_LINES_MAX)
		return -E2BIG;
	job->curl->easy_reset(job->easy);
	job->transfer = t;
	job->sent = 0;
	job->unnoted = job->trailers = 0;
	job->redirects = 0;
	job->stopped = 0;
	job->canceled = job->head_is_complete = false;
	job->error[0] = '\0';
	t->job = job;
	t->answer = (struct http_answer){ 0 };
	t->why[0] = '\0';
	t->is_final = false;
	t->begin_ns = t->last_ns = clock_ns();
	t->sent_ns = t->first_ns = 0;
	t->wire_bytes = t->new_connections = 0;
	set_callbacks(job);
	set_connection(job);
	set_certificates(job);
	set_method(job);
	set_lines(job, true);
	return SET(job, URL, t->url) ? -ENOMEM : 0;
}

/* --- redirects --- */

/* The part of a URL up to the end of its host and port. */
static size_t origin_size(const char *url)
{
	const char *host = strstr(url, "://");

	return host ? (size_t)(host - url) + 3 + strcspn(host + 3, "/?#") : 0;
}

static bool has_same_origin(const char *a, const char *b)
{
	size_t n = origin_size(a);

	return n && n == origin_size(b) && !strncasecmp(a, b, n);
}

static bool is_secure(const char *url)
{
	return !strncasecmp(url, "https:", 6);
}

static void count_connections(struct net_job *job)
{
	long num = 0;

	job->curl->easy_getinfo(job->easy, CURLINFO_NUM_CONNECTS, &num);
	job->transfer->new_connections += (uint64_t)num;
}

static bool refuse_redirect(struct net_job *job, const char *why)
{
	struct net_transfer *t = job->transfer;

	snprintf(t->why, sizeof(t->why), "%s", why);
	t->is_final = true;
	job->stopped = -ELOOP;
	return false;
}

bool job_redirects(struct net_job *job)
{
	struct net_transfer *t = job->transfer;
	char *url = NULL;

	if (has_ended(job) || !is_redirect(t) ||
	    job->curl->easy_getinfo(job->easy, CURLINFO_REDIRECT_URL, &url) ||
	    !url)
		return false;
	if (job->redirects++ == REDIRECTS_MAX)
		return refuse_redirect(job, "more than 5 redirects in a row");
	if (is_secure(t->url) && !is_secure(url))
		return refuse_redirect(
			job, "a redirect from https to http is not followed");
	if (!is_secure(url) && strncasecmp(url, "http:", 5))
		return refuse_redirect(job, "a redirect to another protocol");
	count_connections(job);
	note_progress(job);
	t->answer = (struct http_answer){ 0 };
	set_lines(job, has_same_origin(t->url, url));
	if (t->moved)
		t->moved(t, url, has_same_origin(t->url, url));
	return !SET(job, URL, url);
}

/* --- results --- */

/* Errors that no other attempt will change. */
static const struct {
	CURLcode code;
	int error;
	bool is_final;
} errors[] = {
	{ CURLE_COULDNT_RESOLVE_HOST, EHOSTUNREACH, false },
	{ CURLE_COULDNT_RESOLVE_PROXY, EHOSTUNREACH, false },
	{ CURLE_COULDNT_CONNECT, ECONNREFUSED, false },
	{ CURLE_OPERATION_TIMEDOUT, ETIMEDOUT, false },
	{ CURLE_OUT_OF_MEMORY, ENOMEM, false },
	{ CURLE_SSL_CONNECT_ERROR, EPROTO, false },
	{ CURLE_PEER_FAILED_VERIFICATION, EKEYREJECTED, true },
	{ CURLE_SSL_CACERT_BADFILE, EKEYREJECTED, true },
	/* No HTTP. */
	{ CURLE_UNSUPPORTED_PROTOCOL, EPROTO, false },
	{ CURLE_URL_MALFORMAT, EINVAL, true },
	{ CURLE_WEIRD_SERVER_REPLY, EPROTO, false },
};

static int error_of(CURLcode code, bool *is_final)
{
	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		if (errors[i].code != code)
			continue;
		*is_final = errors[i].is_final;
		return -errors[i].error;
	}
	return -ECONNRESET;
}

int job_result(struct net_job *job, CURLcode code)
{
	struct net_transfer *t = job->transfer;

	count_connections(job);
	if (job->canceled)
		return -ECANCELED;
	if (job->stopped)
		return job->stopped;
	if (!code)
		return 0;
	snprintf(t->why, sizeof(t->why), "%s",
		 *job->error ? job->error : job->curl->easy_strerror(code));
	return error_of(code, &t->is_final);
}

/* --- limits --- */

static int exceed(struct net_job *job, const char *what, unsigned ms)
{
	struct net_transfer *t = job->transfer;

	snprintf(t->why, sizeof(t->why), "%s within %u ms", what, ms);
	return -ETIMEDOUT;
}

/* libcurl itself limits the time of the connection. */
int job_check(struct net_job *job, int64_t now, int64_t *next)
{
	const struct net_transfer *t = job->transfer;
	const char *what = "no byte";
	unsigned ms = t->stall_ms;
	int64_t since = t->last_ns;

	*next = INT64_MAX;
	if (!t->first_ns && t->first_byte_ms) {
		since = max_u64((uint64_t)sent_at(job), (uint64_t)t->last_ns);
		ms = t->first_byte_ms;
		what = "no answer";
		/* Still connecting. */
		if (!t->sent_ns) {
			*next = now + (int64_t)ms * 1000000;
			return 0;
		}
	}
	if (!ms)
		return 0;
	*next = since + (int64_t)ms * 1000000;
	return *next <= now ? exceed(job, what, ms) : 0;
}

#endif
