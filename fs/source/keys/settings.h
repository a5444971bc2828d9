/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables of object stores, read once: another thread of the
   program may change its environment later. */
#ifndef FS_SOURCE_KEYS_SETTINGS_H
#define FS_SOURCE_KEYS_SETTINGS_H

#include <stdbool.h>

#include "fs/source/keys/outside.h"

/* NULL: not set, or empty. */
struct keys_settings {
	char *id, *secret, *token;
	char *profile;
	char *config_file, *credentials_file;
	char *region, *default_region;
	char *endpoint_s3, *endpoint_sts, *endpoint, *ignore_endpoints;
	char *role_arn, *role_session, *token_file;
	char *container_path, *container_url;
	char *container_token, *container_token_file;
	char *imds_endpoint, *imds_mode, *imds_off, *imds_v1_off, *imds_timeout;
	char *google_host;
	char *azure_account, *azure_sas;
};

/* The caller calls settings_fini() in any case. -ENOMEM. */
int keys_settings_read(const struct outside *outside,
		       struct keys_settings *out);
void settings_fini(struct keys_settings *settings);

/* Whether a value is "true" in any case. */
bool settings_is_true(const char *value);

#endif
