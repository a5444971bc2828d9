/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/upload/store.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/name.h"
#include "fs/source/keys/credentials.h"
#include "fs/source/keys/net_outside.h"
#include "fs/source/net/exchange.h"
#include "fs/source/net/sha256.h"
#include "fs/source/net/sign.h"
#include "fs/source/net/xml.h"
#include "fs/source/pacing/retry.h"
#include "fs/source/url/url.h"

enum {
	STALL_MS = 60 * 1000,
	KEYS_MS = 100, /* between two polls while credentials are renewed */
};

struct store {
	struct net *net;
	struct log *log;
	struct url url;
	struct outside outside;
	struct credentials *keys;
	uint64_t retry_ms;
	bool is_aws;
	bool wants_equal_parts;
	atomic_ullong repeated;
	atomic_bool has_warned;
};

/* --- opening ------------------------------------------------------------- */

static int refuse(const struct store *s, const char *url, const char *why)
{
	cleanup_free char *visible = url_visible(url);

	log_error(s->log, "%s: %s", visible ? visible : "URL", why);
	return -EINVAL;
}

bool store_has_parts(const struct store *s)
{
	return s->url.scheme->has_parts;
}

static int open_url(struct store *s, const char *url)
{
	char why[URL_WHY_SIZE] = "";
	int r = url_parse(url, &s->url, why);

	if (r == -ENOMEM)
		log_error(s->log, "out of memory");
	else if (r)
		refuse(s, url, why);
	else if (s->url.query && store_has_parts(s))
		r = refuse(s, url, "a version of an object cannot be written");
	return r;
}

static bool ends_in(const char *host, const char *domain)
{
	size_t n = strcspn(host, ":"), m = strlen(domain);

	return n >= m && !strncasecmp(host + n - m, domain, m);
}

/* Finds out what is special about the server. */
static int look_at_host(struct store *s)
{
	struct url_request request = { 0 };
	char why[URL_WHY_SIZE] = "";
	int r = credentials_url(s->keys, &s->url, &request, why);

	if (r) {
		log_error(s->log, "%s: %s", s->url.visible,
			  *why ? why : "out of memory");
	} else {
		s->is_aws = s->url.scheme->keys == URL_KEYS_AWS &&
			    (ends_in(request.host, ".amazonaws.com") ||
			     ends_in(request.host, ".amazonaws.com.cn"));
		s->wants_equal_parts =
			ends_in(request.host, ".r2.cloudflarestorage.com");
	}
	url_request_fini(&request);
	return r;
}

static int open_keys(struct store *s, const struct store_options *o)
{
	const struct credentials_options options = {
		.scheme = s->url.scheme,
		.name = s->url.visible,
		.profile = o->profile,
		.region = o->region,
		.endpoint = o->endpoint,
		.header = o->header,
		.no_sign = o->no_sign,
	};
	int r;

	net_outside_init(&s->outside, &outside_own, s->net);
	r = credentials_open(&options, &s->outside, s->log, &s->keys);
	return r ? r : look_at_host(s);
}

int store_open(const char *url, const struct store_options *options,
	       struct log *log, struct store **out)
{
	static const struct store_options defaults;
	const struct store_options *o = options ? options : &defaults;
	struct store *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return log_no_memory(log, NULL);
	s->log = log;
	s->retry_ms = o->retry_ms ? o->retry_ms : STORE_RETRY_MS;
	r = open_url(s, url);
	if (!r && o->net)
		s->net = net_ref(o->net);
	else if (!r)
		r = net_open(log, &s->net);
	r = r ? r : open_keys(s, o);
	if (r)
		store_close(s);
	else
		*out = s;
	return r;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	credentials_close(s->keys);
	net_unref(s->net);
	url_fini(&s->url);
	free(s);
}

const char *store_name(const struct store *s)
{
	return s->url.visible;
}

uint64_t store_repeated(const struct store *s)
{
	return atomic_load(&s->repeated);
}

bool store_has_equal_parts(const struct store *s)
{
	return s->wants_equal_parts;
}

/* Others may refuse fields that they do not know. */
bool store_has_checksums(const struct store *s)
{
	return s->is_aws;
}

const char *store_whole_header(const struct store *s)
{
	if (s->url.host && ends_in(s->url.host, ".blob.core.windows.net"))
		return URL_PUT_AZURE;
	return s->url.scheme->put;
}

/* --- one attempt --------------------------------------------------------- */

/* An attempt: the request and its answer. */
struct store_attempt {
	struct store_request *request;
	struct url_request url;
	char *full;  /* URL and query */
	char *query; /* of both */
	struct credentials_lines secrets;
	const char *lines[STORE_LINES_MAX];
	size_t num_lines;
	struct exchange exchange;
	struct refusal refusal;
	char value[STORE_FIELD_MAX];
};

static void attempt_fini(struct store_attempt *a)
{
	url_request_fini(&a->url);
	credentials_lines_fini(&a->secrets);
	free(a->full);
	free(a->query);
	free(a->exchange.text);
}

static const char *const method_names[] = {
	[NET_GET] = "GET",   [NET_HEAD] = "HEAD",     [NET_PUT] = "PUT",
	[NET_POST] = "POST", [NET_DELETE] = "DELETE",
};

/* Adds the query of the request to that of the URL. */
static int add_query(struct store_attempt *a, const char *query)
{
	const char *own = a->url.query;

	if (!query)
		return 0;
	if (text_print(&a->full, "%s%s%s", a->url.url, own ? "&" : "?", query))
		return -ENOMEM;
	if (text_print(&a->query, "%s%s%s", own ? own : "", own ? "&" : "",
		       query))
		return -ENOMEM;
	free(a->url.url);
	free(a->url.query);
	a->url.url = steal(a->full);
	a->url.query = steal(a->query);
	return 0;
}

static int poll_owner(struct store_request *r)
{
	int ends = r->poll ? r->poll(r->arg) : 0;

	r->was_ended = ends != 0;
	return ends;
}

/* Signs the request, and waits for a renewal of the credentials. Over TLS the
   body is not hashed, because TLS detects changes. */
static int sign(struct store *s, struct store_attempt *a)
{
	struct store_request *r = a->request;
	char hash[SHA256_HEX_SIZE];
	struct credentials_request request = {
		.method = method_names[r->method],
		.url = &a->url,
		.lines = a->lines,
		.num_lines = a->num_lines,
	};
	int error;

	if (r->body && a->url.tls) {
		request.payload = SIGN_UNSIGNED;
	} else if (r->body && store_has_parts(s)) {
		sha256_hex(r->body, r->body_size, hash);
		request.payload = hash;
	}
	do {
		error = credentials_sign(s->keys, &request, &a->secrets);
		if (error != -EAGAIN)
			break;
		credentials_lines_fini(&a->secrets);
		a->secrets = (struct credentials_lines){ 0 };
		credentials_wait(s->keys, KEYS_MS);
		error = poll_owner(r);
	} while (!error);
	return error;
}

static int make_attempt(struct store *s, struct store_attempt *a)
{
	struct store_request *r = a->request;
	char why[URL_WHY_SIZE] = "";
	int error = credentials_url(s->keys, &s->url, &a->url, why);

	error = error ? error : add_query(a, r->query);
	for (size_t i = 0; i < STORE_LINES_MAX; i++) {
		if (r->headers[i])
			a->lines[a->num_lines++] = r->headers[i];
	}
	error = error ? error : sign(s, a);
	if (error == -EACCES)
		snprintf(r->why, sizeof(r->why), "there are no credentials");
	else if (error)
		snprintf(r->why, sizeof(r->why), "%s",
			 *why ? why : strerror(-error));
	return error;
}

/* Keeps the value of the field that the caller wants, without outer spaces. */
static void take_value(struct store_attempt *a, const char *line, size_t size)
{
	const char *field = a->request->field;
	size_t n = field ? strlen(field) : 0;

	if (!n || size <= n || strncasecmp(line, field, n) || line[n] != ':')
		return;
	line += n + 1;
	size -= n + 1;
	for (; size && strchr(" \t", *line); line++)
		size--;
	while (size && strchr(" \t\r\n", line[size - 1]))
		size--;
	if (size >= sizeof(a->value))
		return;
	memcpy(a->value, line, size);
	a->value[size] = '\0';
}

static void take_line(void *arg, const char *line, size_t size)
{
	struct store_attempt *a = arg;

	refusal_line(&a->refusal, line, size);
	take_value(a, line, size);
}

/* Sends the request once. Returns 0, whatever the status is. */
static int send_attempt(struct store *s, struct store_attempt *a)
{
	const struct store_request *r = a->request;
	bool has_keys = store_has_parts(s) || s->url.userinfo || a->secrets.num;

	a->exchange = (struct exchange){
		.method = r->method,
		.url = a->url.url,
		.headers = { a->lines, a->num_lines },
		.secrets = { (const char *const *)a->secrets.at,
			     a->secrets.num },
		.body = r->body,
		.body_size = r->body_size,
		.userinfo = s->url.userinfo,
		.netrc = !has_keys,
		.fresh = r->attempts > 0,
		.stall_ms = r->stall_ms ? r->stall_ms : STALL_MS,
		.begins = r->begins,
		.line = take_line,
		.line_arg = a,
		.poll = r->poll,
		.arg = r->arg,
	};
	return exchange_run(s->net, &a->exchange);
}

/* --- answers ------------------------------------------------------------- */

static bool is_good(const struct store_request *r)
{
	return r->answer.status >= 200 && r->answer.status < 300 && !*r->code;
}

/* Returns whether the root element of an answer is Error. S3 writes spaces
   first while it joins the parts of an object. */
static bool is_error(const char *xml)
{
	static const char error[] = "<Error";
	const char *at = xml + strspn(xml, " \t\r\n");

	if (!strncmp(at, "<?", 2)) {
		at = strstr(at, "?>");
		if (!at)
			return false;
		at += 2;
		at += strspn(at, " \t\r\n");
	}
	return !strncmp(at, error, strlen(error)) &&
	       strchr(" \t\r\n/>", at[strlen(error)]);
}

/* Takes the answer, and the code and message of an error. S3 also reports
   errors with the status 200. */
static void take_answer(struct store_attempt *a)
{
	struct store_request *r = a->request;
	char message[STORE_WHY_MAX / 2] = "";

	store_request_fini(r);
	r->answer = a->exchange.answer;
	r->text = steal(a->exchange.text);
	r->text_size = a->exchange.text_size;
	memcpy(r->value, a->value, sizeof(r->value));
	r->code[0] = '\0';
	a->refusal.status = r->answer.status;
	if (r->text && is_error(r->text)) {
		refusal_body(&a->refusal, r->text, r->text_size);
		snprintf(r->code, sizeof(r->code), "%s",
			 *a->refusal.code ? a->refusal.code : "Error");
		xml_text(r->text, r->text_size, "Message", message,
			 sizeof(message));
	}
	snprintf(r->why, sizeof(r->why), "status %d%s%s%s%s", r->answer.status,
		 *r->code ? " " : "", r->code, *message ? ": " : "", message);
}

static bool has_code(const struct store_request *r, const char *const *codes,
		     size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(r->code, codes[i]))
			return true;
	}
	return false;
}

/* Returns whether a failure may pass: by its status, or by its code. */
static bool is_passing(const struct store_request *r)
{
	static const char *const codes[] = { "InternalError",
					     "OperationAborted",
					     "RequestTimeout",
					     "ServiceUnavailable", "SlowDown" };
	enum retry_kind kind = retry_of_status(r->answer.status);

	return (kind == RETRY_AGAIN && r->answer.status != 507) ||
	       kind == RETRY_THROTTLED || has_code(r, codes, ARRAY_LEN(codes));
}

/* Meanings of statuses, and remedies. */
static const struct status_row {
	int status;
	int error;
	const char *advice; /* or "" */
} statuses[] = {
	{ 301, EIO, ": the bucket is in another region: set AWS_REGION" },
	{ 401, EACCES, ": the server wants a user and a password" },
	{ 403, EACCES, "" },
	{ 404, ENOENT, "" },
	{ 405, ENOTSUP, ": the server takes no objects at this URL" },
	{ 409, ESTALE, "" },
	{ 412, ESTALE, "" },
	{ 413, EFBIG, ": the server limits the size of an object" },
	{ 501, ENOTSUP, "" },
	{ 507, ENOSPC, ": the server has no space left" },
};

static const struct status_row *row_of(int status)
{
	static const struct status_row client = { 400, EINVAL, "" };
	static const struct status_row server = { 500, EIO, "" };

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		if (statuses[i].status == status)
			return &statuses[i];
	}
	return status >= 400 && status < 500 ? &client : &server;
}

/* --- attempts ------------------------------------------------------------ */

static void wait_a_while(struct store *s, struct store_request *r,
			 struct rng *rng, uint64_t retry_ms)
{
	int64_t ns = retry_delay_ns(r->attempts, r->answer.retry_after, rng);

	if (!atomic_exchange(&s->has_warned, true))
		log_warning(s->log,
			    "%s: %s; trying again for up to %llu seconds, here "
			    "and for later requests",
			    store_name(s), r->why,
			    (unsigned long long)retry_ms / 1000);
	exchange_sleep((uint64_t)ns / 1000000, r->poll, r->arg);
}

/* The next step after an attempt. */
enum next { NEXT_NONE, NEXT_LATER, NEXT_NOW };

static enum next after_failure(struct store_request *r,
			       const struct exchange *e, int error)
{
	if (*e->why)
		snprintf(r->why, sizeof(r->why), "%s", e->why);
	else
		snprintf(r->why, sizeof(r->why), "%s", strerror(-error));
	r->answer = (struct http_answer){ 0 };
	r->may_be_done |= e->was_sent;
	return e->is_final ? NEXT_NONE : NEXT_LATER;
}

static int after_answer(struct store *s, struct store_attempt *a,
			enum next *next)
{
	struct store_request *r = a->request;
	const struct status_row *row;

	take_answer(a);
	if (is_good(r))
		return 0;
	row = row_of(r->answer.status);
	if (!*r->code && strlen(r->why) + strlen(row->advice) < sizeof(r->why))
		strcat(r->why, row->advice);
	if (is_passing(r)) {
		*next = NEXT_LATER;
		r->may_be_done = true;
	} else if (credentials_refused(s->keys, a->secrets.version,
				       &a->refusal)) {
		*next = NEXT_NOW;
	}
	return -row->error;
}

static int try_once(struct store *s, struct store_request *r, enum next *next)
{
	struct store_attempt a = { .request = r };
	int error = make_attempt(s, &a);

	*next = NEXT_NONE;
	if (!error) {
		error = send_attempt(s, &a);
		if (error)
			*next = after_failure(r, &a.exchange, error);
		else
			error = after_answer(s, &a, next);
	}
	r->attempts++;
	attempt_fini(&a);
	return error;
}

static struct rng noise(void)
{
	struct rng rng = { .position = 0 };

	if (getrandom(&rng.key, sizeof(rng.key), GRND_NONBLOCK) < 0)
		rng.key = (uint64_t)clock_ns();
	return rng;
}

int store_send(struct store *s, struct store_request *r)
{
	uint64_t retry_ms = r->retry_ms ? r->retry_ms : s->retry_ms;
	int64_t end_ns = clock_ns() + (int64_t)retry_ms * 1000000;
	struct rng rng = noise();
	enum next next;
	int error, ends;

	r->attempts = 0;
	r->may_be_done = false;
	for (;;) {
		error = try_once(s, r, &next);
		if (!error)
			return 0;
		ends = poll_owner(r);
		if (ends)
			return ends;
		if (next == NEXT_NONE || clock_ns() >= end_ns)
			return error;
		atomic_fetch_add(&s->repeated, 1);
		if (next == NEXT_LATER)
			wait_a_while(s, r, &rng, retry_ms);
		ends = poll_owner(r);
		if (ends)
			return ends;
	}
}

int store_failed(struct store *s, const struct store_request *r,
		 const char *what, int error)
{
	if (!r->was_ended)
		log_error(s->log, "%s: %s: %s", store_name(s), what, r->why);
	return error;
}

void store_request_fini(struct store_request *r)
{
	free(r->text);
	r->text = NULL;
	r->text_size = 0;
}
