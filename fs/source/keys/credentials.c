/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/keys/credentials.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/name.h"
#include "fs/base/util/thread.h"
#include "fs/source/keys/finder.h"
#include "fs/source/keys/header_file.h"
#include "fs/source/net/secret.h"
#include "fs/source/net/sign.h"
#include "fs/source/url/service.h"
#include "fs/source/url/url.h"

enum {
	AHEAD_SECONDS = 300,
	SHORT_SECONDS = 900,
	HEADER_SECONDS = 60,
	/* After a failure that is final, until the places are asked again. */
	HOLD_OFF_MS = 5000,
	/* A second refusal in this time is not about an expired session. */
	FORCED_MS = 30000,
	PAUSE_MAX_MS = 30 * 1000,
	/* Attempts to find a first session: they take 7 s. */
	FIRST_ATTEMPTS = 4,
	REGIONS_MAX = 4,
	SKEW_SECONDS = 60,
};

struct credentials {
	const struct outside *outside;
	struct log *log;
	const struct url_scheme *scheme;
	char *name;
	char *header; /* the path; NULL: none */
	bool is_signed;
	void (*changed)(void *arg);
	void *arg;
	struct finder finder; /* only of the thread that searches, once open */
	bool had_session;     /* as `finder` */

	pthread_mutex_t lock; /* guards all members below */
	pthread_cond_t wake;  /* to end a pause, or that an attempt ended */
	pthread_t thread;
	bool has_thread; /* to join */
	bool is_running;
	bool stop; /* also read without the lock */

	char *region;
	unsigned num_regions;
	bool has_session;
	bool is_renewable;
	bool needs_program; /* to renew the session */
	struct session session;
	struct header_file lines;
	time_t renew_at; /* 0: never */
	time_t offset;	 /* of the server's clock */
	uint64_t version;
	bool is_refused;   /* the session is of no more use */
	int64_t forced_ms; /* when it became so; 0: not yet */
	int error;	   /* of the last attempt */
	int64_t error_ms;
	bool is_logged; /* the present series of failures */
};

static time_t now_of(const struct credentials *c)
{
	return c->outside->now(c->outside->arg) +
	       __atomic_load_n(&c->offset, __ATOMIC_RELAXED);
}

/* --- one attempt, on the thread that searches --- */

/* The results of an attempt. */
struct credentials_attempt {
	struct session session;
	struct header_file lines;
	char why[2 * OUTSIDE_WHY_SIZE];
};

static void attempt_fini(struct credentials_attempt *a)
{
	session_fini(&a->session);
	header_file_fini(&a->lines);
}

static int try_once(struct credentials *c, unsigned number,
		    struct credentials_attempt *a)
{
	struct search search = { .outside = c->outside,
				 .stop = &c->stop,
				 .attempt = number,
				 .had_session = c->had_session };
	int r = 0;

	*a = (struct credentials_attempt){ 0 };
	if (c->header)
		r = header_file_read(&search, c->header, &a->lines);
	if (!r && c->is_signed && !a->lines.has_authorization)
		r = finder_find(&c->finder, &search, &a->session);
	/* A place that had a session will have one again. */
	if (r == -ENOENT)
		r = c->had_session ? -EAGAIN : -EACCES;
	if (r == -EAGAIN && !c->had_session && number + 1 >= FIRST_ATTEMPTS)
		r = -EACCES;
	memcpy(a->why, search.why, sizeof(a->why));
	return r;
}

/* The time at which a session is renewed. */
static time_t renewal_of(const struct session *session, time_t now)
{
	time_t left = session->expires - now;

	if (!session->expires)
		return 0;
	return session->expires -
	       (left < SHORT_SECONDS ? left / 3 : AHEAD_SECONDS);
}

/* Takes over the results of an attempt, under the lock. */
static void install(struct credentials *c, struct credentials_attempt *a)
{
	time_t now = now_of(c);
	time_t again = c->header ? now + HEADER_SECONDS : 0;

	session_fini(&c->session);
	header_file_fini(&c->lines);
	c->session = a->session;
	c->lines = a->lines;
	*a = (struct credentials_attempt){ 0 };
	c->renew_at = renewal_of(&c->session, now);
	if (again && (!c->renew_at || again < c->renew_at))
		c->renew_at = again;
	c->is_renewable = c->header || !c->finder.is_static;
	c->needs_program = c->finder.has_run && c->session.expires;
	c->has_session = true;
	c->had_session = true;
	c->is_refused = false;
	c->version++;
	c->error = 0;
	if (c->is_logged)
		log_info(c->log, "%s: the credentials are renewed", c->name);
	c->is_logged = false;
}

static bool is_valid(const struct credentials *c)
{
	return c->has_session && !c->is_refused &&
	       (!c->session.expires || now_of(c) < c->session.expires);
}

/* Logs a failure, once for a series of them. */
static void report(struct credentials *c, int r, const char *why)
{
	long long left = c->session.expires - now_of(c);

	if (c->is_logged || r == -ECANCELED)
		return;
	c->is_logged = true;
	if (!*why)
		why = strerror(-r);
	if (!is_valid(c) && r != -EAGAIN)
		log_error(c->log, "%s: %s", c->name, why);
	else if (!is_valid(c))
		log_warning(c->log,
			    "%s: no credentials yet: %s: beton-remote(7) lists "
			    "where they may come from",
			    c->name, why);
	else if (c->session.expires)
		log_warning(c->log,
			    "%s: cannot renew the credentials, which are valid "
			    "for %lld more seconds: %s",
			    c->name, left, why);
	else
		log_warning(c->log, "%s: cannot read the credentials again: %s",
			    c->name, why);
}

/* Waits before another attempt, under the lock. */
static void pause_for(struct credentials *c, unsigned ms)
{
	struct timespec end = clock_in_ms(ms);
	int r = 0;

	while (!c->stop && !r)
		r = pthread_cond_timedwait(&c->wake, &c->lock, &end);
}

/* Ends an attempt, under the lock. Returns whether another one follows. */
static bool end_attempt(struct credentials *c, struct credentials_attempt *a,
			int r)
{
	if (!r) {
		install(c, a);
		return false;
	}
	report(c, r, a->why);
	c->error = r == -ECANCELED ? 0 : r;
	c->error_ms = clock_coarse_ms();
	if (r == -EAGAIN)
		return !c->stop;
	/* The session stays; the places are asked again after a while. */
	if (is_valid(c))
		c->renew_at = now_of(c) + HEADER_SECONDS;
	return false;
}

static void *renew(void *arg)
{
	struct credentials *c = arg;
	unsigned pause =
		c->outside->pause_ms ? c->outside->pause_ms : OUTSIDE_PAUSE_MS;
	struct credentials_attempt a;
	unsigned number = 0;
	bool again = true;
	int r;

	while (again) {
		r = try_once(c, number++, &a);
		pthread_mutex_lock(&c->lock);
		again = end_attempt(c, &a, r);
		if (!again)
			c->is_running = false;
		pthread_cond_broadcast(&c->wake);
		pthread_mutex_unlock(&c->lock);
		attempt_fini(&a);
		if (c->changed)
			c->changed(c->arg);
		if (!again)
			break;
		pthread_mutex_lock(&c->lock);
		pause_for(c, pause);
		again = !c->stop;
		if (!again)
			c->is_running = false;
		pthread_mutex_unlock(&c->lock);
		pause = (unsigned)min_u64(2 * pause, PAUSE_MAX_MS);
	}
	return NULL;
}

/* --- the state --- */

/* Joins a thread that has ended, or is about to, under the lock. */
static void join(struct credentials *c)
{
	if (c->has_thread)
		pthread_join(c->thread, NULL);
	c->has_thread = false;
}

/* Starts a renewal if none runs, under the lock. */
static int start(struct credentials *c)
{
	int r;

	if (c->is_running)
		return 0;
	join(c);
	c->is_running = true;
	r = thread_start(&c->thread, renew, c);
	c->is_running = !r;
	c->has_thread = !r;
	return r;
}

static bool is_due(const struct credentials *c)
{
	return !c->has_session || c->is_refused ||
	       (c->session.expires && now_of(c) >= c->session.expires) ||
	       (c->renew_at && now_of(c) >= c->renew_at);
}

/* Starts a renewal when it is time, under the lock. 0: the session is valid. */
static int look_at(struct credentials *c)
{
	bool holds_off = c->error && c->error != -EAGAIN &&
			 clock_coarse_ms() - c->error_ms < HOLD_OFF_MS;
	int r = 0;

	if (!c->is_signed && !c->header)
		return 0;
	if (is_due(c) && !holds_off)
		r = start(c);
	if (is_valid(c))
		return 0;
	if (r)
		return r;
	return c->is_running ? -EAGAIN : c->error;
}

int credentials_wait(struct credentials *c, unsigned ms)
{
	struct timespec end = clock_in_ms(ms);
	int r, late = 0;

	scoped_lock(&c->lock);
	for (;;) {
		r = look_at(c);
		if (r != -EAGAIN)
			return r;
		if (late)
			return -ETIMEDOUT;
		late = pthread_cond_timedwait(&c->wake, &c->lock, &end);
	}
}

/* --- opening and closing --- */

static int fill_in(struct credentials *c,
		   const struct credentials_options *options)
{
	c->name = strdup(options->name ? options->name : "credentials");
	if (options->header && *options->header) {
		c->header = strdup(options->header);
		if (!c->header)
			return -ENOMEM;
	}
	return c->name ? 0 : -ENOMEM;
}

/* Reads the configuration of a scheme that has one. */
static int configure(struct credentials *c,
		     const struct credentials_options *options,
		     struct search *search)
{
	const struct finder_options finder = {
		.is_google = options->scheme->keys == URL_KEYS_GOOGLE,
		.profile = options->profile,
		.region = options->region,
		.endpoint = options->endpoint,
	};
	const char *region;
	int r;

	if (options->scheme->keys == URL_KEYS_NONE)
		return 0;
	if (options->scheme->keys == URL_KEYS_AZURE) {
		r = keys_settings_read(search->outside, &c->finder.settings);
		if (!r && options->endpoint) {
			c->finder.endpoint = strdup(options->endpoint);
			r = c->finder.endpoint ? 0 : -ENOMEM;
		}
		return r;
	}
	c->is_signed = !options->no_sign;
	r = finder_init(&c->finder, &finder, search);
	if (r)
		return r;
	region = c->finder.region;
	c->region = strdup(region ? region : options->scheme->region);
	return c->region ? 0 : -ENOMEM;
}

int credentials_open(const struct credentials_options *options,
		     const struct outside *outside, struct log *log,
		     struct credentials **out)
{
	struct credentials *c = calloc(1, sizeof(*c));
	struct search search = { .outside = outside };
	int r;

	if (!c)
		return -ENOMEM;
	c->outside = outside;
	c->log = log;
	c->scheme = options->scheme;
	c->changed = options->changed;
	c->arg = options->arg;
	pthread_mutex_init(&c->lock, NULL);
	clock_cond_init(&c->wake);
	r = fill_in(c, options);
	r = r ? r : configure(c, options, &search);
	if (r) {
		log_error(log, "%s: %s", c->name ? c->name : "credentials",
			  search.why[0] ? search.why : strerror(-r));
		credentials_close(c);
		return r;
	}
	*out = c;
	return 0;
}

bool credentials_need_program(struct credentials *c)
{
	scoped_lock(&c->lock);
	return c->needs_program;
}

void credentials_pause(struct credentials *c)
{
	pthread_mutex_lock(&c->lock);
	__atomic_store_n(&c->stop, true, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->lock);
	join(c);
	pthread_mutex_lock(&c->lock);
	__atomic_store_n(&c->stop, false, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&c->lock);
}

void credentials_close(struct credentials *c)
{
	if (!c)
		return;
	credentials_pause(c);
	session_fini(&c->session);
	header_file_fini(&c->lines);
	finder_fini(&c->finder);
	free(c->region);
	free(c->name);
	free(c->header);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* --- requests --- */

int credentials_url(struct credentials *c, const struct url *url,
		    struct url_request *out, char why[URL_WHY_SIZE])
{
	struct url_place place = {
		.endpoint = c->finder.endpoint,
		.style = c->finder.style,
		.account = c->finder.settings.azure_account,
		.sas = c->finder.settings.azure_sas,
	};

	scoped_lock(&c->lock);
	place.region = c->region;
	return url_request(url, &place, out, why);
}

static int add_line(struct credentials_lines *out, char *line)
{
	if (out->num == CREDENTIALS_LINES_MAX) {
		secret_free(&line);
		return -E2BIG;
	}
	if (!line)
		return -ENOMEM;
	out->at[out->num++] = line;
	return 0;
}

static int add_bearer(const struct credentials *c,
		      struct credentials_lines *out)
{
	char *line;

	text_print(&line, "Authorization: Bearer %s", c->session.token);
	return add_line(out, line);
}

static int add_signature(const struct credentials *c,
			 const struct credentials_request *request,
			 struct credentials_lines *out)
{
	const struct sign_keys keys = { c->session.id, c->session.secret,
					c->session.token };
	const struct sign_request to_sign = {
		.method = request->method,
		.host = request->url->host,
		.path = request->url->path,
		.query = request->url->query,
		.lines = request->lines,
		.num_lines = request->num_lines,
		.payload = request->payload,
		.region = c->region,
		.service = "s3",
		.now = now_of(c),
	};
	struct sign_lines lines;
	int r = sign_request(&keys, &to_sign, &lines);

	for (size_t i = 0; i < lines.num && !r; i++)
		r = add_line(out, steal(lines.at[i]));
	sign_lines_fini(&lines);
	return r;
}

int credentials_sign(struct credentials *c,
		     const struct credentials_request *request,
		     struct credentials_lines *out)
{
	int r;

	*out = (struct credentials_lines){ 0 };
	scoped_lock(&c->lock);
	r = look_at(c);
	out->version = c->version;
	for (size_t i = 0; i < c->lines.num && !r; i++)
		r = add_line(out, strdup(c->lines.at[i]));
	if (r || !c->is_signed || c->lines.has_authorization)
		return r;
	return c->session.id ? add_signature(c, request, out)
			     : add_bearer(c, out);
}

void credentials_lines_fini(struct credentials_lines *lines)
{
	for (size_t i = 0; i < lines->num; i++)
		secret_free(&lines->at[i]);
	lines->num = 0;
}

/* --- refusals --- */

static bool is_one_of(const char *code, const char *const *list, size_t num)
{
	for (size_t i = 0; i < num; i++) {
		if (!strcmp(code, list[i]))
			return true;
	}
	return false;
}

/* The bucket is in another region: asks there from now on. */
static bool move(struct credentials *c, const struct refusal *refusal)
{
	static const char *const codes[] = {
		"", /* of a request that has no body */
		"PermanentRedirect",
		"TemporaryRedirect",
		"AuthorizationHeaderMalformed",
		"IllegalLocationConstraintException",
		"IncorrectEndpoint",
	};
	char *host, *region;

	if (c->scheme->keys != URL_KEYS_AWS || !refusal->region[0] ||
	    (refusal->status / 100 != 3 && refusal->status != 400) ||
	    !is_one_of(refusal->code, codes, ARRAY_LEN(codes)) ||
	    !strcmp(refusal->region, c->region) ||
	    c->num_regions == REGIONS_MAX)
		return false;
	if (url_aws_host("s3", refusal->region, &host))
		return false;
	free(host);
	region = strdup(refusal->region);
	if (!region)
		return false;
	free(c->region);
	c->region = region;
	c->num_regions++;
	log_info(c->log, "%s: the bucket is in region %s", c->name, region);
	return true;
}

/* The clock of this machine differs from the server's: signs by the latter. */
static bool set_clock(struct credentials *c, const struct refusal *refusal)
{
	time_t offset = refusal->date - c->outside->now(c->outside->arg);
	time_t change = offset - c->offset;

	if (!refusal->date || (change < SKEW_SECONDS && change > -SKEW_SECONDS))
		return false;
	__atomic_store_n(&c->offset, offset, __ATOMIC_RELAXED);
	log_warning(c->log,
		    "%s: the clock of this machine differs from the server's "
		    "by %lld seconds; requests carry the server's time",
		    c->name, (long long)offset);
	return true;
}

static bool is_about_session(const struct credentials *c,
			     const struct refusal *refusal)
{
	static const char *const codes[] = {
		"ExpiredToken",		"ExpiredTokenException",
		"InvalidToken",		"TokenRefreshRequired",
		"RequestExpired",	"InvalidAccessKeyId",
		"InvalidClientTokenId",
	};

	if (is_one_of(refusal->code, codes, ARRAY_LEN(codes)) ||
	    refusal->status == 401)
		return true;
	return refusal->status == 403 && c->header;
}

/* Renews a session at once that the server refuses. */
static bool force(struct credentials *c)
{
	int64_t now = clock_coarse_ms();

	if (!c->is_renewable ||
	    (c->forced_ms && now - c->forced_ms < FORCED_MS))
		return false;
	c->forced_ms = now;
	c->is_refused = true;
	return !start(c);
}

bool credentials_refused(struct credentials *c, uint64_t version,
			 const struct refusal *refusal)
{
	scoped_lock(&c->lock);
	if (!strcmp(refusal->code, "RequestTimeTooSkewed"))
		return set_clock(c, refusal);
	if (move(c, refusal))
		return true;
	if (!is_about_session(c, refusal))
		return false;
	return version != c->version || c->is_refused || force(c);
}
