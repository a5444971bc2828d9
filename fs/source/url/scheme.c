/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/url/scheme.h"

#include <strings.h>

#include "fs/base/util/bytes.h"
#include "fs/source/url/bucket_key.h"
#include "fs/source/url/host_path.h"
#include "fs/source/url/percent.h"
#include "fs/source/url/service.h"

/* --- hosts of services --- */

static int host_of_s3(const struct url *url, const struct url_place *place,
		      char **host, char why[URL_WHY_SIZE])
{
	const char *region = place->region;
	int r = url_aws_host("s3", region ? region : url->scheme->region, host);

	if (r == -EINVAL)
		return url_refuse(why, "the region has other characters than "
				       "lower-case letters, digits and -");
	return r;
}

static int host_of_gs(const struct url *url, const struct url_place *place,
		      char **host, char why[URL_WHY_SIZE])
{
	(void)url;
	(void)place;
	(void)why;
	return url_copy("storage.googleapis.com", 22, host);
}

static int host_of_az(const struct url *url, const struct url_place *place,
		      char **host, char why[URL_WHY_SIZE])
{
	const char *account = url->account ? url->account : place->account;

	if (!account || !*account)
		return url_refuse(why, "the account is not known; set "
				       "AZURE_STORAGE_ACCOUNT");
	if (strlen(account) > URL_LABEL_MAX ||
	    account[strspn(account, URL_LOWER URL_DIGITS)])
		return url_refuse(why, "the account has other characters than "
				       "lower-case letters and digits");
	if (asprintf(host, "%s.blob.core.windows.net", account) >= 0)
		return 0;
	*host = NULL;
	return -ENOMEM;
}

/* --- rows --- */

#define HTTP_FORM .parse = url_http_parse, .request = url_http_request
#define BUCKET_FORM                                                            \
	.tls = true, .parse = url_bucket_parse, .request = url_service_request

static const struct url_scheme rows[] = {
	{ "http", HTTP_FORM },
	{ "https", HTTP_FORM, .tls = true },
	{ "s3", BUCKET_FORM, .keys = URL_KEYS_AWS,
	  .bucket = URL_LETTERS URL_DIGITS "-._", .refused = "--x-s3",
	  .host = host_of_s3, .region = "us-east-1", .style = URL_STYLE_AUTO,
	  .version = "versionId", .keeps_versions = true, .has_parts = true },
	{ "gs", BUCKET_FORM, .keys = URL_KEYS_GOOGLE,
	  .bucket = URL_LETTERS URL_DIGITS "-._", .host = host_of_gs,
	  .region = "auto", .style = URL_STYLE_VIRTUAL, .version = "generation",
	  .has_parts = true },
	{ "az", BUCKET_FORM, .keys = URL_KEYS_AZURE,
	  .bucket = URL_LOWER URL_DIGITS "-$", .host = host_of_az,
	  .style = URL_STYLE_PATH, .has_account = true, .put = URL_PUT_AZURE },
};

const struct url_scheme *url_scheme_of(const char *text, const char **rest)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t size = strlen(rows[i].name);

		if (!strncasecmp(text, rows[i].name, size) &&
		    !strncmp(text + size, "://", 3)) {
			*rest = text + size + 3;
			return &rows[i];
		}
	}
	return NULL;
}

const char *url_scheme_names(char out[URL_SCHEMES_SIZE])
{
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows) && used < URL_SCHEMES_SIZE; i++)
		used += (size_t)snprintf(out + used, URL_SCHEMES_SIZE - used,
					 "%s%s", i ? ", " : "", rows[i].name);
	return out;
}
