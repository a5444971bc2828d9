/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places of AWS credentials, in order. The first one that is configured
 * counts, and its failure is final.
 *
 *	1. the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
 *	2. the role of the profile: role_arn
 *	3. the variables of web identity
 *	4. keys of the profile, and its credential_process
 *	5. the endpoint of a container or pod
 *	6. the metadata service of an EC2 instance; for Google's storage, that
 *	   of a Google machine
 *
 * If the caller names a profile, 1 and 3 are skipped. Once a place had a
 * session, no other one is searched, so that a file that is being written, or a
 * service that is down, changes no identity.
 */
#ifndef FS_SOURCE_KEYS_FINDER_H
#define FS_SOURCE_KEYS_FINDER_H

#include "fs/source/keys/profile.h"
#include "fs/source/keys/session.h"
#include "fs/source/keys/settings.h"
#include "fs/source/url/url.h"

struct finder {
	struct keys_settings settings;
	bool is_google;
	char *profile;	/* in use */
	bool is_named;	/* by the caller */
	size_t place;	/* 1 + that of the last session; 0: none yet */
	bool is_static; /* the last session came from variables */
	bool has_run;	/* a search started a program */
	char *region;	/* NULL: none is configured */
	char *endpoint; /* of S3; NULL: the service's own */
	enum url_style style;
};

struct finder_options {
	bool is_google;	      /* variables and profiles name no endpoint then */
	const char *profile;  /* NULL: $AWS_PROFILE, "default" */
	const char *region;   /* NULL: variables, and the profile's */
	const char *endpoint; /* NULL: variables, and the profile's */
};

/* Reads variables, and what the profile has about S3. The caller calls
   finder_fini() in any case. Results of a search. */
int finder_init(struct finder *finder, const struct finder_options *options,
		struct search *search);
void finder_fini(struct finder *finder);

/* Finds a session; it takes as long as the places take to answer. Reads files
   again in each call. -ENOENT: no place has one, with `why`. */
int finder_find(struct finder *finder, struct search *search,
		struct session *out);

#endif
