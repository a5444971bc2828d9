/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/keys/metadata.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/name.h"
#include "fs/source/net/secret.h"
#include "fs/source/url/percent.h"
#include "fs/source/url/url.h"

enum {
	ANSWER_MAX = 65536,
	INSTANCE_TIMEOUT_MS = 1000,
	CONTAINER_TIMEOUT_MS = 5000,
	/* Sessions that the service could not renew still work for a while. */
	EXPIRED_SECONDS = 600,
};

#define ROLES "/latest/meta-data/iam/security-credentials/"

/* A request and its answer. */
struct metadata_answer {
	struct outside_fetch fetch;
	char bytes[ANSWER_MAX + 1];
};

/* Sends a request. The caller frees the answer in any case. */
static int ask(struct search *search, const struct outside_fetch *request,
	       struct metadata_answer **out)
{
	const struct outside *outside = search->outside;
	struct metadata_answer *a = malloc(sizeof(*a));
	int r;

	*out = a;
	if (!a)
		return -ENOMEM;
	a->fetch = *request;
	a->fetch.direct = true;
	a->fetch.buf = a->bytes;
	a->fetch.size = ANSWER_MAX;
	r = outside->fetch(outside->fetch_arg, &a->fetch);
	a->bytes[r ? 0 : a->fetch.got] = '\0';
	return r;
}

static void answer_free(struct metadata_answer **answer)
{
	secret_free_bytes(*answer, sizeof(**answer));
	*answer = NULL;
}

#define cleanup_answer __attribute__((cleanup(answer_free)))

/* The result of a search for an answer that is of no use. */
static int fails(struct search *search, const char *place, int r,
		 const struct metadata_answer *answer)
{
	if (r == -ENOMEM || r == -ECANCELED)
		return r;
	if (r)
		return search_fails(search, -EAGAIN, "%s: %.200s", place,
				    answer->fetch.why[0] ? answer->fetch.why
							 : strerror(-r));
	return search_fails(search, -EAGAIN, "%s: HTTP status %d", place,
			    answer->fetch.status);
}

static bool is_text(const char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			return false;
	}
	return true;
}

static void trim_end(char *text)
{
	size_t size = strlen(text);

	while (size && strchr(" \t\r\n", text[size - 1]))
		text[--size] = '\0';
}

/* --- instances --- */

static const char instance[] = "EC2 instance metadata";

struct imds {
	struct search *search;
	const struct keys_settings *settings;
	char *base;
	char *token_line; /* NULL: version 1 */
	unsigned timeout_ms;
};

static int find_base(struct imds *imds)
{
	const struct keys_settings *s = imds->settings;
	const char *base = s->imds_endpoint;
	size_t size;

	if (!base)
		base = s->imds_mode && !strcasecmp(s->imds_mode, "IPv6")
			       ? "http://[fd00:ec2::254]"
			       : "http://169.254.169.254";
	size = strlen(base);
	while (size && base[size - 1] == '/')
		size--;
	imds->base = strndup(base, size);
	imds->timeout_ms = INSTANCE_TIMEOUT_MS;
	if (s->imds_timeout && atoi(s->imds_timeout) > 0 &&
	    atoi(s->imds_timeout) <= 60)
		imds->timeout_ms = 1000 * (unsigned)atoi(s->imds_timeout);
	return imds->base ? 0 : -ENOMEM;
}

static int imds_ask(struct imds *imds, const char *method, const char *path,
		    const char *line, struct metadata_answer **out)
{
	cleanup_free char *url = NULL;
	struct outside_fetch request = {
		.method = method,
		.lines = &line,
		.num_lines = line ? 1 : 0,
		.timeout_ms = imds->timeout_ms,
	};

	*out = NULL;
	if (text_print(&url, "%s%s", imds->base, path))
		return -ENOMEM;
	request.url = url;
	return ask(imds->search, &request, out);
}

/* The service does not exist, or not for this machine. */
static bool is_absent(int r)
{
	return r == -ECONNREFUSED || r == -EHOSTUNREACH || r == -ENETUNREACH ||
	       r == -ENXIO;
}

/* Returns whether a status means that this machine has no such service: a proxy
   or a router answers in its place, and will again. */
static bool is_refused(const struct search *search, int status)
{
	return !search->had_session && status >= 300 && status < 500 &&
	       status != 408 && status != 429;
}

/* Returns whether the service does not answer a second time. */
static bool is_silent(const struct search *search, int r)
{
	return r == -ETIMEDOUT && search->attempt && !search->had_session;
}

/* Gets the token of version 2. */
static int begin(struct imds *imds)
{
	static const char lifetime[] =
		"X-aws-ec2-metadata-token-ttl-seconds: 21600";
	cleanup_answer struct metadata_answer *a = NULL;
	int r = imds_ask(imds, "PUT", "/latest/api/token", lifetime, &a);
	int status;

	if (is_absent(r))
		return -ENOENT;
	/* In a container the answer may not come: it passes one router only. */
	if (r == -ETIMEDOUT && imds->search->attempt &&
	    !settings_is_true(imds->settings->imds_v1_off))
		return 0;
	if (r)
		return fails(imds->search, instance, r, a);
	status = a->fetch.status;
	if ((status == 403 || status == 404 || status == 405) &&
	    !settings_is_true(imds->settings->imds_v1_off))
		return 0;
	if (is_refused(imds->search, status))
		return -ENOENT;
	if (status != 200)
		return fails(imds->search, instance, 0, a);
	trim_end(a->bytes);
	if (!*a->bytes || !is_text(a->bytes))
		return search_fails(imds->search, -EAGAIN,
				    "%s: the token is no text", instance);
	return text_print(&imds->token_line, "X-aws-ec2-metadata-token: %s",
			  a->bytes);
}

/* Sets *path to that of the credentials of the instance's role. */
static int find_role(struct imds *imds, char **path)
{
	cleanup_answer struct metadata_answer *a = NULL;
	cleanup_free char *role = NULL;
	int r = imds_ask(imds, "GET", ROLES, imds->token_line, &a);

	if (!r && a->fetch.status == 404)
		return search_fails(imds->search, -ENOENT,
				    "%s: the instance has no role", instance);
	/* This machine is no instance. */
	if (is_silent(imds->search, r) ||
	    (!r && is_refused(imds->search, a->fetch.status)))
		return -ENOENT;
	if (r || a->fetch.status != 200)
		return fails(imds->search, instance, r, a);
	a->bytes[strcspn(a->bytes, "\r\n")] = '\0';
	if (!*a->bytes || !is_text(a->bytes))
		return search_fails(imds->search, -ENOENT,
				    "%s: the instance has no role", instance);
	r = url_encode(a->bytes, true, &role);
	if (r)
		return r;
	return text_print(path, ROLES "%s", role);
}

/* The service returns old keys while it cannot get new ones. */
static void extend(const struct search *search, struct session *session)
{
	time_t now = search->outside->now(search->outside->arg);

	if (session->expires && session->expires <= now)
		session->expires = now + EXPIRED_SECONDS;
}

static int get_session(struct imds *imds, struct session *out)
{
	cleanup_answer struct metadata_answer *a = NULL;
	cleanup_free char *path = NULL;
	int r = begin(imds);

	r = r ? r : find_role(imds, &path);
	if (r)
		return r;
	r = imds_ask(imds, "GET", path, imds->token_line, &a);
	if (r || a->fetch.status != 200)
		return fails(imds->search, instance, r, a);
	r = session_parse(imds->search, instance, a->bytes, a->fetch.got, false,
			  out);
	if (!r)
		extend(imds->search, out);
	return r;
}

int metadata_instance(struct search *search,
		      const struct keys_settings *settings, struct session *out)
{
	struct imds imds = { .search = search, .settings = settings };
	int r;

	if (!search->outside->fetch || settings_is_true(settings->imds_off))
		return -ENOENT;
	r = find_base(&imds);
	r = r ? r : get_session(&imds, out);
	free(imds.base);
	secret_free(&imds.token_line);
	return r;
}

/* --- Google --- */

int metadata_google(struct search *search, const struct keys_settings *settings,
		    struct session *out)
{
	static const char place[] = "Google's metadata service";
	static const char *const lines[] = { "Metadata-Flavor: Google" };
	cleanup_answer struct metadata_answer *a = NULL;
	cleanup_free char *url = NULL;
	struct outside_fetch request = {
		.method = "GET",
		.lines = lines,
		.num_lines = 1,
		.timeout_ms = INSTANCE_TIMEOUT_MS,
	};
	int r;

	if (!search->outside->fetch)
		return -ENOENT;
	if (text_print(&url,
		       "http://%s/computeMetadata/v1/instance/service-accounts/"
		       "default/token",
		       settings->google_host ? settings->google_host
					     : "169.254.169.254"))
		return -ENOMEM;
	request.url = url;
	r = ask(search, &request, &a);
	if (is_absent(r) || is_silent(search, r) ||
	    (!r &&
	     (a->fetch.status == 404 || is_refused(search, a->fetch.status))))
		return -ENOENT;
	if (r || a->fetch.status != 200)
		return fails(search, place, r, a);
	return session_parse_bearer(search, place, a->bytes, a->fetch.got, out);
}

/* --- containers --- */

static const char container[] = "container credentials";

/* Hosts that may be asked without TLS; the path of the URL is secret enough
   only on this machine. */
static bool is_local(const char *host)
{
	static const char *const known[] = {
		"localhost",	  "169.254.170.2", "169.254.170.23",
		"[fd00:ec2::23]", "[::1]",
	};
	struct in_addr address;

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (!strcmp(host, known[i]))
			return true;
	}
	return inet_pton(AF_INET, host, &address) == 1 &&
	       ntohl(address.s_addr) >> 24 == 127;
}

static int find_url(struct search *search, const struct keys_settings *settings,
		    char **out)
{
	char why[URL_WHY_SIZE];
	struct url url;
	int r;

	if (settings->container_path) {
		return text_print(out, "http://169.254.170.2%s%s",
				  *settings->container_path == '/' ? "" : "/",
				  settings->container_path);
	}
	r = url_parse(settings->container_url, &url, why);
	if (r == -EINVAL)
		r = search_fails(search, -EACCES,
				 "AWS_CONTAINER_CREDENTIALS_FULL_URI: %s", why);
	else if (!r &&
		 (url.scheme->bucket || (!url.tls && !is_local(url.host))))
		r = search_fails(search, -EACCES,
				 "AWS_CONTAINER_CREDENTIALS_FULL_URI: expected "
				 "https, or an address of this machine");
	url_fini(&url);
	if (r)
		return r;
	*out = strdup(settings->container_url);
	return *out ? 0 : -ENOMEM;
}

/* Sets *out to the header of the token; NULL: there is no token. */
static int find_token(struct search *search,
		      const struct keys_settings *settings, char **out)
{
	cleanup_secret char *text = NULL;
	size_t size;
	int r = 0;

	if (settings->container_token_file)
		r = outside_read(search->outside,
				 settings->container_token_file, &text, &size);
	else if (settings->container_token)
		text = strdup(settings->container_token);
	else
		return 0;
	if (r)
		return search_fails(search, -EAGAIN, "%.200s: %s",
				    settings->container_token_file,
				    outside_why(r));
	if (!text)
		return -ENOMEM;
	trim_end(text);
	if (!is_text(text))
		return search_fails(search, -EACCES,
				    "%s: the token has control characters",
				    container);
	return text_print(out, "Authorization: %s", text);
}

int metadata_container(struct search *search,
		       const struct keys_settings *settings,
		       struct session *out)
{
	cleanup_secret char *url = NULL, *line = NULL;
	cleanup_answer struct metadata_answer *a = NULL;
	struct outside_fetch request = {
		.method = "GET",
		.timeout_ms = CONTAINER_TIMEOUT_MS,
	};
	int r;

	if (!settings->container_path && !settings->container_url)
		return -ENOENT;
	if (!search->outside->fetch)
		return search_fails(search, -EACCES, "%s: there is no network",
				    container);
	r = find_url(search, settings, &url);
	r = r ? r : find_token(search, settings, &line);
	if (r)
		return r;
	request.url = url;
	request.lines = (const char *const *)&line;
	request.num_lines = line ? 1 : 0;
	r = ask(search, &request, &a);
	if (r || a->fetch.status != 200)
		return fails(search, container, r, a);
	return session_parse(search, container, a->bytes, a->fetch.got, false,
			     out);
}
