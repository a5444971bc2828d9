/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles in AWS's files: ~/.aws/credentials, and ~/.aws/config for keys that
   are not there. */
#ifndef FS_SOURCE_KEYS_PROFILE_H
#define FS_SOURCE_KEYS_PROFILE_H

#include <stdbool.h>

#include "fs/source/keys/ini.h"
#include "fs/source/keys/session.h"
#include "fs/source/keys/settings.h"

struct profiles {
	struct ini credentials;
	struct ini config;
};

/* Reads both files. A file at its default path may be absent, or unreadable.
   The caller calls profiles_fini() in any case. Results of a search. */
int profiles_read(struct search *search, const struct keys_settings *settings,
		  struct profiles *out);
void profiles_fini(struct profiles *profiles);

bool profile_exists(const struct profiles *profiles, const char *profile);

/* The value of a key, such as "region" or "s3.addressing_style"; NULL: none, or
   an empty one. */
const char *profile_get(const struct profiles *profiles, const char *profile,
			const char *name);

/* The endpoint of a service, "s3" or "sts", in the profile or in the section of
   services that it names. NULL: none. */
const char *profile_endpoint(const struct profiles *profiles,
			     const char *profile, const char *service);

#endif
