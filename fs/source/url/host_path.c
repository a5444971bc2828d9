/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/url/host_path.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "fs/source/net/secret.h"
#include "fs/source/url/percent.h"

int url_http_check(const char *text, char why[URL_WHY_SIZE])
{
	if (strnlen(text, URL_SIZE_MAX + 1) > URL_SIZE_MAX)
		return url_refuse(why, "the URL is longer than 16384 bytes");
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return url_refuse(why,
					  "the URL has a control character");
	}
	return 0;
}

/* --- hosts and ports --- */

static int parse_port(const char *text, unsigned *out, char why[URL_WHY_SIZE])
{
	unsigned port = 0;

	if (!*text) /* "host:" has the default port */
		return 0;
	for (const char *p = text; *p; p++) {
		if (*p < '0' || *p > '9' || port > 65535)
			return url_refuse(why, "the port is no number");
		port = port * 10 + (unsigned)(*p - '0');
	}
	if (!port || port > 65535)
		return url_refuse(why, "the port is not between 1 and 65535");
	*out = port;
	return 0;
}

static int check_address(const char *text, size_t size, char why[URL_WHY_SIZE])
{
	char address[INET6_ADDRSTRLEN];
	struct in6_addr bytes;

	if (size < sizeof(address)) {
		memcpy(address, text, size);
		address[size] = '\0';
		if (inet_pton(AF_INET6, address, &bytes) == 1)
			return 0;
	}
	return url_refuse(why, "the text in brackets is no IPv6 address");
}

static int check_name(const char *text, char why[URL_WHY_SIZE])
{
	if (!*text)
		return url_refuse(why, "there is no host");
	if (strlen(text) > 253)
		return url_refuse(why,
				  "the host name is longer than 253 bytes");
	for (const char *p = text; *p; p++) {
		if (*p & 0x80)
			return url_refuse(why,
					  "the host name is not ASCII; write "
					  "it in its xn-- form");
	}
	if (text[strspn(text, URL_UNRESERVED)] || *text == '.')
		return url_refuse(why,
				  "the host name has a character that names "
				  "cannot have");
	return 0;
}

static void lower(char *text)
{
	for (; *text; text++) {
		if (*text >= 'A' && *text <= 'Z')
			*text = (char)(*text + 'a' - 'A');
	}
}

/* Splits HOST:PORT, and cuts the port off. */
static int parse_host(struct url *url, char why[URL_WHY_SIZE])
{
	char *host = url->host, *colon = strchr(host, ':'), *end;
	int r;

	if (*host == '[') {
		end = strchr(host, ']');
		if (!end || (end[1] && end[1] != ':'))
			return url_refuse(why,
					  "a bracket of the IPv6 address is "
					  "missing");
		r = check_address(host + 1, (size_t)(end - host - 1), why);
		if (r)
			return r;
		colon = end[1] ? end + 1 : NULL;
	}
	if (colon) {
		r = parse_port(colon + 1, &url->port, why);
		if (r)
			return r;
		*colon = '\0';
	}
	lower(host);
	if (url->port == (url->tls ? 443 : 80))
		url->port = 0;
	return *host == '[' ? 0 : check_name(host, why);
}

static int parse_userinfo(struct url *url, const char *text, size_t size,
			  char why[URL_WHY_SIZE])
{
	int r = url_copy(text, size, &url->userinfo);

	if (r)
		return r;
	if (!percent_decode(url->userinfo) || strpbrk(url->userinfo, "\r\n"))
		return url_refuse(why, "the user or the password has a control "
				       "character");
	return 0;
}

int url_http_parse(struct url *url, const char *rest, char why[URL_WHY_SIZE])
{
	size_t end = strcspn(rest, "/?#"), path, query;
	const char *at = memrchr(rest, '@', end);
	int r = 0;

	if (at) {
		r = parse_userinfo(url, rest, (size_t)(at - rest), why);
		end -= (size_t)(at + 1 - rest);
		rest = at + 1;
	}
	r = r ? r : url_copy(rest, end, &url->host);
	r = r ? r : parse_host(url, why);
	if (r)
		return r;
	rest += end;
	path = strcspn(rest, "?#");
	r = path ? percent_encode(rest, path, URL_KEEP_PATH, true, &url->path)
		 : url_copy("/", 1, &url->path);
	rest += path;
	if (r || *rest != '?')
		return r;
	query = strcspn(++rest, "#");
	return percent_encode(rest, query, URL_KEEP_QUERY, true, &url->query);
}

void url_http_fini(struct url *url)
{
	secret_free(&url->userinfo);
	secret_free(&url->query);
	free(url->host);
	free(url->path);
}

/* --- requests --- */

int url_http_host(const struct url *url, char **out)
{
	int n = url->port ? asprintf(out, "%s:%u", url->host, url->port)
			  : asprintf(out, "%s", url->host);

	if (n >= 0)
		return 0;
	*out = NULL;
	return -ENOMEM;
}

int url_http_request(const struct url *url, const struct url_place *place,
		     struct url_request *out, char why[URL_WHY_SIZE])
{
	int r = url_http_host(url, &out->host);

	(void)place;
	(void)why;
	out->tls = url->tls;
	return r ? r : url_copy(url->path, strlen(url->path), &out->path);
}
