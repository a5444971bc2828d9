/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/url/service.h"

#include <stdlib.h>
#include <strings.h>

#include "fs/base/util/cleanup.h"
#include "fs/source/url/host_path.h"
#include "fs/source/url/percent.h"

enum { REGION_MAX = 64 };

/* The part of a URL in front of the key. */
struct base {
	bool tls;
	bool is_own; /* the service's own endpoint */
	char *host;  /* with the port */
	char *path;  /* without a slash at its end */
};

static void base_fini(struct base *base)
{
	free(base->host);
	free(base->path);
}

static int parse_endpoint(const char *text, struct base *base,
			  char why[URL_WHY_SIZE])
{
	bool tls = !strncasecmp(text, "https://", 8);
	struct url url = { .tls = tls };
	char reason[URL_WHY_SIZE] = "";
	size_t size;
	int r;

	if (!tls && strncasecmp(text, "http://", 7) != 0)
		return url_refuse(why, "endpoint: expected http://HOST or "
				       "https://HOST");
	r = url_http_check(text, reason);
	r = r ? r : url_http_parse(&url, text + (tls ? 8 : 7), reason);
	if (r == -EINVAL)
		snprintf(why, URL_WHY_SIZE, "endpoint: %.180s", reason);
	else if (!r && (url.query || url.userinfo))
		r = url_refuse(why, "endpoint: expected http:// or https:// "
				    "with neither user nor query");
	r = r ? r : url_http_host(&url, &base->host);
	if (!r) {
		base->tls = tls;
		size = strlen(url.path);
		while (size && url.path[size - 1] == '/')
			size--;
		r = url_copy(url.path, size, &base->path);
	}
	url_http_fini(&url);
	return r;
}

/* Domains of the partitions of AWS; the last row is all other regions. */
static const struct {
	const char *prefix;
	const char *domain;
} partitions[] = {
	{ "cn-", "amazonaws.com.cn" },	  { "us-iso-", "c2s.ic.gov" },
	{ "us-isob-", "sc2s.sgov.gov" },  { "us-isof-", "csp.hci.ic.gov" },
	{ "eu-isoe-", "cloud.adc-e.uk" }, { "eusc-", "amazonaws.eu" },
	{ "", "amazonaws.com" },
};

int url_aws_host(const char *service, const char *region, char **out)
{
	size_t size = strlen(region), i = 0;

	*out = NULL;
	if (!size || size > REGION_MAX ||
	    region[strspn(region, URL_LOWER URL_DIGITS "-")])
		return -EINVAL;
	while (strncmp(region, partitions[i].prefix,
		       strlen(partitions[i].prefix)) != 0)
		i++;
	if (asprintf(out, "%s.%s.%s", service, region, partitions[i].domain) <
	    0) {
		*out = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int find_base(const struct url *url, const struct url_place *place,
		     struct base *base, char why[URL_WHY_SIZE])
{
	int r;

	if (place->endpoint && *place->endpoint)
		return parse_endpoint(place->endpoint, base, why);
	base->tls = true;
	base->is_own = true;
	r = url->scheme->host(url, place, &base->host, why);
	return r ? r : url_copy("", 0, &base->path);
}

/* Whether the bucket can be the first label of a host name. A certificate of
 *.s3.REGION.amazonaws.com covers no dot. */
static bool is_label(const char *bucket, bool tls)
{
	const char *allowed =
		tls ? URL_LOWER URL_DIGITS "-" : URL_LOWER URL_DIGITS "-.";
	size_t size = strlen(bucket);

	return size >= 3 && size <= URL_LABEL_MAX &&
	       !bucket[strspn(bucket, allowed)] && bucket[size - 1] != '-' &&
	       bucket[size - 1] != '.' && !strstr(bucket, "..");
}

static bool is_address(const char *host)
{
	return *host == '[' || !host[strspn(host, "0123456789.:")];
}

static int choose_style(const struct url *url, const struct url_place *place,
			const struct base *base, bool *is_virtual,
			char why[URL_WHY_SIZE])
{
	*is_virtual = false;
	if (url->scheme->style == URL_STYLE_PATH ||
	    place->style == URL_STYLE_PATH)
		return 0;
	if (place->style == URL_STYLE_AUTO) {
		*is_virtual = base->is_own &&
			      url->scheme->style == URL_STYLE_AUTO &&
			      is_label(url->bucket, base->tls);
		return 0;
	}
	if (is_address(base->host))
		return url_refuse(why,
				  "addressing style virtual: the endpoint is "
				  "an address, which cannot carry a bucket");
	if (!is_label(url->bucket, false))
		return url_refuse(why,
				  "addressing style virtual: the bucket's name "
				  "cannot be part of a host name");
	*is_virtual = true;
	return 0;
}

/* Joins base, bucket and key. */
static int place_key(const struct url *url, const struct base *base,
		     bool is_virtual, struct url_request *out)
{
	cleanup_free char *key = NULL, *bucket = NULL;
	int r = url_encode(url->key, false, &key);

	r = r ? r : url_encode(url->bucket, true, &bucket);
	if (r)
		return r;
	if (asprintf(&out->host, "%s%s%s", is_virtual ? url->bucket : "",
		     is_virtual ? "." : "", base->host) < 0) {
		out->host = NULL;
		return -ENOMEM;
	}
	if (asprintf(&out->path, "%s/%s%s%s", base->path,
		     is_virtual ? "" : bucket, is_virtual ? "" : "/",
		     key) < 0) {
		out->path = NULL;
		return -ENOMEM;
	}
	out->tls = base->tls;
	return 0;
}

int url_service_request(const struct url *url, const struct url_place *place,
			struct url_request *out, char why[URL_WHY_SIZE])
{
	struct base base = { 0 };
	bool is_virtual = false;
	int r = find_base(url, place, &base, why);

	r = r ? r : choose_style(url, place, &base, &is_virtual, why);
	r = r ? r : place_key(url, &base, is_virtual, out);
	base_fini(&base);
	return r;
}
