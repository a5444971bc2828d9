/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/keys/settings.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "fs/base/util/bytes.h"
#include "fs/source/net/secret.h"

#define ROW(member, name)                                                      \
	{                                                                      \
		offsetof(struct keys_settings, member), name                   \
	}

static const struct {
	size_t at;
	const char *name;
} rows[] = {
	ROW(id, "AWS_ACCESS_KEY_ID"),
	ROW(secret, "AWS_SECRET_ACCESS_KEY"),
	ROW(token, "AWS_SESSION_TOKEN"),
	ROW(profile, "AWS_PROFILE"),
	ROW(config_file, "AWS_CONFIG_FILE"),
	ROW(credentials_file, "AWS_SHARED_CREDENTIALS_FILE"),
	ROW(region, "AWS_REGION"),
	ROW(default_region, "AWS_DEFAULT_REGION"),
	ROW(endpoint_s3, "AWS_ENDPOINT_URL_S3"),
	ROW(endpoint_sts, "AWS_ENDPOINT_URL_STS"),
	ROW(endpoint, "AWS_ENDPOINT_URL"),
	ROW(ignore_endpoints, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"),
	ROW(role_arn, "AWS_ROLE_ARN"),
	ROW(role_session, "AWS_ROLE_SESSION_NAME"),
	ROW(token_file, "AWS_WEB_IDENTITY_TOKEN_FILE"),
	ROW(container_path, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
	ROW(container_url, "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
	ROW(container_token, "AWS_CONTAINER_AUTHORIZATION_TOKEN"),
	ROW(container_token_file, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
	ROW(imds_endpoint, "AWS_EC2_METADATA_SERVICE_ENDPOINT"),
	ROW(imds_mode, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"),
	ROW(imds_off, "AWS_EC2_METADATA_DISABLED"),
	ROW(imds_v1_off, "AWS_EC2_METADATA_V1_DISABLED"),
	ROW(imds_timeout, "AWS_METADATA_SERVICE_TIMEOUT"),
	ROW(google_host, "GCE_METADATA_HOST"),
	ROW(azure_account, "AZURE_STORAGE_ACCOUNT"),
	ROW(azure_sas, "AZURE_STORAGE_SAS_TOKEN"),
};

static char **member_at(struct keys_settings *settings, size_t i)
{
	return (char **)((char *)settings + rows[i].at);
}

int keys_settings_read(const struct outside *outside, struct keys_settings *out)
{
	const char *value;

	*out = (struct keys_settings){ 0 };
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		value = outside_environment(outside, rows[i].name);
		if (!value)
			continue;
		*member_at(out, i) = strdup(value);
		if (!*member_at(out, i))
			return -ENOMEM;
	}
	return 0;
}

void settings_fini(struct keys_settings *settings)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		secret_free(member_at(settings, i));
}

bool settings_is_true(const char *value)
{
	return value && !strcasecmp(value, "true");
}
