/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/keys/profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/source/net/secret.h"

enum { KEY_MAX = 64 };

/* --- reading --- */

static int read_file(struct search *search, const char *path, bool is_default,
		     struct ini *out)
{
	char *text = NULL;
	size_t size = 0;
	int r = outside_read(search->outside, path, &text, &size);

	*out = (struct ini){ 0 };
	if (r && is_default)
		return 0;
	if (!r)
		r = ini_parse(text, size, out);
	secret_free_bytes(text, size);
	if (r && r != -ENOMEM)
		return search_fails(search, -EACCES, "%.300s: %s", path,
				    outside_why(r));
	return r;
}

int profiles_read(struct search *search, const struct keys_settings *settings,
		  struct profiles *out)
{
	const char *credentials = settings->credentials_file;
	const char *config = settings->config_file;
	int r;

	*out = (struct profiles){ 0 };
	r = read_file(search, credentials ? credentials : "~/.aws/credentials",
		      !credentials, &out->credentials);
	return r ? r
		 : read_file(search, config ? config : "~/.aws/config", !config,
			     &out->config);
}

void profiles_fini(struct profiles *profiles)
{
	ini_fini(&profiles->credentials);
	ini_fini(&profiles->config);
}

/* --- sections --- */

/* Returns whether a section of the config file has this kind and name, as in
   [profile NAME] and [services "NAME"]. */
static bool is_section(const char *section, const char *kind, const char *name)
{
	size_t size = strlen(kind), length = strlen(name);

	if (strncmp(section, kind, size) != 0 || !strchr(" \t", section[size]))
		return false;
	section += size;
	section += strspn(section, " \t");
	if (*section == '"' || *section == '\'')
		return !strncmp(section + 1, name, length) &&
		       section[length + 1] == *section && !section[length + 2];
	return !strcmp(section, name);
}

static const char *config_get(const struct ini *config, const char *kind,
			      const char *section, const char *name)
{
	const struct ini_key *key;

	for (size_t i = config->num; i--;) {
		key = &config->at[i];
		if (!strcmp(key->name, name) &&
		    is_section(key->section, kind, section))
			return key->value;
	}
	return NULL;
}

bool profile_exists(const struct profiles *profiles, const char *profile)
{
	const struct ini *config = &profiles->config;

	for (size_t i = 0; i < config->num; i++) {
		if (is_section(config->at[i].section, "profile", profile))
			return true;
	}
	for (size_t i = 0; i < profiles->credentials.num; i++) {
		if (!strcmp(profiles->credentials.at[i].section, profile))
			return true;
	}
	for (size_t i = 0; i < config->num; i++) {
		if (!strcmp(profile, "default") &&
		    !strcmp(config->at[i].section, profile))
			return true;
	}
	return false;
}

const char *profile_get(const struct profiles *profiles, const char *profile,
			const char *name)
{
	const char *value = ini_get(&profiles->credentials, profile, name);

	if (!value)
		value = config_get(&profiles->config, "profile", profile, name);
	if (!value && !strcmp(profile, "default"))
		value = ini_get(&profiles->config, profile, name);
	return value && *value ? value : NULL;
}

const char *profile_endpoint(const struct profiles *profiles,
			     const char *profile, const char *service)
{
	const char *services = profile_get(profiles, profile, "services");
	const char *url = NULL;
	char name[KEY_MAX];

	snprintf(name, sizeof(name), "%s.endpoint_url", service);
	if (services)
		url = config_get(&profiles->config, "services", services, name);
	return url && *url ? url
			   : profile_get(profiles, profile, "endpoint_url");
}
