/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/keys/finder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fs/base/util/bytes.h"
#include "fs/source/keys/metadata.h"
#include "fs/source/keys/sts.h"
#include "fs/source/net/secret.h"

enum {
	DEPTH_MAX = 8, /* roles that are assumed by roles */
	PROGRAM_MAX = 64,
	PLACE_SIZE = 192,
};

/* One search. */
struct finder_look {
	struct finder *finder;
	struct search *search;
	struct profiles profiles;
};

/* --- profiles --- */

static int by_profile(struct finder_look *look, const char *profile,
		      unsigned depth, struct session *out);

static const char *get(const struct finder_look *look, const char *profile,
		       const char *name)
{
	return profile_get(&look->profiles, profile, name);
}

/* The keys in a profile. */
static int by_keys(struct finder_look *look, const char *profile,
		   struct session *out)
{
	const char *id = get(look, profile, "aws_access_key_id");
	const char *secret = get(look, profile, "aws_secret_access_key");
	int r;

	if (!id && !secret)
		return -ENOENT;
	if (!id || !secret)
		return search_fails(look->search, -EACCES,
				    "profile %.64s: it has one of "
				    "aws_access_key_id and "
				    "aws_secret_access_key",
				    profile);
	r = session_set(out, id, secret,
			get(look, profile, "aws_session_token"));
	return r == -EINVAL ? search_fails(look->search, -EACCES,
					   "profile %.64s: a key has "
					   "characters that keys cannot have",
					   profile)
			    : r;
}

/* Refuses a session that is of no use, which would be asked for again at once.
   An agent may be about to renew it. */
static int check_expiry(struct search *search, const char *place,
			struct session *session)
{
	time_t now = search->outside->now(search->outside->arg);
	time_t ago = now - session->expires;
	char time[64] = "";
	struct tm tm;

	if (!session->expires || ago < 0)
		return 0;
	strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%SZ",
		 gmtime_r(&session->expires, &tm));
	session_fini(session);
	return search_fails(search, search->had_session ? -EAGAIN : -EACCES,
			    "%s: its credentials have expired: Expiration is "
			    "%s, %lld s ago",
			    place, time, (long long)ago);
}

/* Names the program, without its arguments, which may be secret. */
static void name_program(const char *profile, const char *command,
			 char out[PLACE_SIZE])
{
	size_t quote = strspn(command, "'\"");
	size_t size = strcspn(command + quote, quote ? "'\"" : " \t");

	snprintf(out, PLACE_SIZE, "credential_process of profile %.64s (%.*s)",
		 profile, (int)min_u64(size, PROGRAM_MAX), command + quote);
}

static int by_program(struct finder_look *look, const char *profile,
		      struct session *out)
{
	const char *command = get(look, profile, "credential_process");
	const struct outside *outside = look->search->outside;
	char place[PLACE_SIZE], *text = NULL;
	size_t size = 0;
	int r;

	if (!command)
		return -ENOENT;
	name_program(profile, command, place);
	if (!outside->run)
		return search_fails(look->search, -EACCES,
				    "%s: this process cannot run programs",
				    place);
	look->finder->has_run = true;
	r = outside->run(outside->arg, command, look->search->stop, &text,
			 &size);
	if (r == -ENOMEM || r == -ECANCELED)
		return r;
	if (r)
		return search_fails(
			look->search, r == -ENOENT ? -EACCES : -EAGAIN,
			"%s: %s", place,
			r == -EIO ? "the program failed" : strerror(-r));
	r = session_parse(look->search, place, text, size, true, out);
	secret_free_bytes(text, size);
	return r ? r : check_expiry(look->search, place, out);
}

/* The keys with which the role of a profile is assumed. */
static int find_source(struct finder_look *look, const char *profile,
		       unsigned depth, struct session *out)
{
	const char *source = get(look, profile, "source_profile");
	const char *kind = get(look, profile, "credential_source");
	struct keys_settings *s = &look->finder->settings;

	if (source && !strcmp(source, profile))
		return by_keys(look, profile, out);
	if (source)
		return by_profile(look, source, depth + 1, out);
	if (kind && !strcasecmp(kind, "Environment"))
		return s->id && s->secret
			       ? session_set(out, s->id, s->secret, s->token)
			       : -ENOENT;
	if (kind && !strcasecmp(kind, "Ec2InstanceMetadata"))
		return metadata_instance(look->search, s, out);
	if (kind && !strcasecmp(kind, "EcsContainer"))
		return metadata_container(look->search, s, out);
	return -ENOENT;
}

/* The region of STS: of the profile that has the role, or the finder's. */
static struct sts_role make_role(const struct finder_look *look,
				 const char *profile)
{
	const struct finder *finder = look->finder;
	const struct keys_settings *s = &finder->settings;
	const char *region = get(look, profile, "region");
	const char *endpoint = s->endpoint_sts ? s->endpoint_sts : s->endpoint;

	if (!endpoint && !settings_is_true(s->ignore_endpoints))
		endpoint = profile_endpoint(&look->profiles, profile, "sts");
	return (struct sts_role){
		.session_name = get(look, profile, "role_session_name"),
		.external_id = get(look, profile, "external_id"),
		.duration = get(look, profile, "duration_seconds"),
		.region = region ? region : finder->region,
		.endpoint = endpoint,
	};
}

/* The role of a profile. */
static int by_role(struct finder_look *look, const char *profile,
		   unsigned depth, struct session *out)
{
	struct sts_role role = make_role(look, profile);
	const char *token = get(look, profile, "web_identity_token_file");
	struct session source = { 0 };
	int r;

	role.arn = get(look, profile, "role_arn");
	if (!role.arn)
		return -ENOENT;
	if (token)
		return sts_web_identity(look->search, &role, token, out);
	if (get(look, profile, "mfa_serial"))
		return search_fails(look->search, -EACCES,
				    "profile %.64s: mfa_serial asks for a "
				    "code; use credential_process instead",
				    profile);
	if (depth >= DEPTH_MAX)
		return search_fails(look->search, -EACCES,
				    "profile %.64s: source_profile leads in a "
				    "circle, or through over %d profiles",
				    profile, (int)DEPTH_MAX);
	r = find_source(look, profile, depth, &source);
	if (!r)
		r = sts_assume(look->search, &role, &source, out);
	else if (r == -ENOENT || r == -EINVAL)
		r = search_fails(look->search, -EACCES,
				 "profile %.64s: role_arn needs a "
				 "source_profile or credential_source that has "
				 "keys",
				 profile);
	session_fini(&source);
	return r;
}

static int by_files(struct finder_look *look, const char *profile,
		    struct session *out)
{
	int r = by_keys(look, profile, out);

	if (r == -ENOENT)
		r = by_program(look, profile, out);
	if (r == -ENOENT && (get(look, profile, "sso_session") ||
			     get(look, profile, "sso_start_url")))
		r = search_fails(look->search, -EACCES,
				 "profile %.64s uses SSO; write a profile with "
				 "credential_process = aws configure "
				 "export-credentials --format process "
				 "--profile %.64s",
				 profile, profile);
	return r;
}

static int by_profile(struct finder_look *look, const char *profile,
		      unsigned depth, struct session *out)
{
	int r = by_role(look, profile, depth, out);

	return r == -ENOENT ? by_files(look, profile, out) : r;
}

/* --- the order --- */

static int by_variables(struct finder_look *look, struct session *out)
{
	const struct keys_settings *s = &look->finder->settings;
	int r;

	if (look->finder->is_named || (!s->id && !s->secret))
		return -ENOENT;
	if (!s->id || !s->secret)
		return search_fails(look->search, -EACCES,
				    "one of AWS_ACCESS_KEY_ID and "
				    "AWS_SECRET_ACCESS_KEY is not set");
	r = session_set(out, s->id, s->secret, s->token);
	if (r == -EINVAL)
		r = search_fails(look->search, -EACCES,
				 "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or "
				 "AWS_SESSION_TOKEN has characters that keys "
				 "cannot have");
	look->finder->is_static = !r;
	return r;
}

static int by_profile_role(struct finder_look *look, struct session *out)
{
	return by_role(look, look->finder->profile, 0, out);
}

static int by_web_identity(struct finder_look *look, struct session *out)
{
	const struct finder *finder = look->finder;
	struct sts_role role = make_role(look, finder->profile);

	if (finder->is_named || !finder->settings.token_file)
		return -ENOENT;
	role.arn = finder->settings.role_arn;
	role.session_name = finder->settings.role_session;
	role.external_id = NULL;
	role.duration = NULL;
	if (finder->region)
		role.region = finder->region;
	if (!role.arn)
		return search_fails(look->search, -EACCES,
				    "AWS_WEB_IDENTITY_TOKEN_FILE is set, but "
				    "AWS_ROLE_ARN is not");
	return sts_web_identity(look->search, &role,
				finder->settings.token_file, out);
}

static int by_profile_files(struct finder_look *look, struct session *out)
{
	return by_files(look, look->finder->profile, out);
}

static int by_container(struct finder_look *look, struct session *out)
{
	return metadata_container(look->search, &look->finder->settings, out);
}

static int by_instance(struct finder_look *look, struct session *out)
{
	struct finder *finder = look->finder;

	if (finder->is_google)
		return metadata_google(look->search, &finder->settings, out);
	return metadata_instance(look->search, &finder->settings, out);
}

static const struct {
	const char *name;
	int (*find)(struct finder_look *look, struct session *out);
} places[] = {
	{ "variables", by_variables },
	{ "the role of the profile", by_profile_role },
	{ "AWS_WEB_IDENTITY_TOKEN_FILE", by_web_identity },
	{ "the profile", by_profile_files },
	{ "container credentials", by_container },
	{ "the metadata service", by_instance },
};

static int try_place(struct finder_look *look, size_t i, struct session *out)
{
	struct finder *finder = look->finder;
	int r;

	if (finder->place && finder->place != i + 1)
		return -ENOENT;
	r = places[i].find(look, out);
	r = r ? r : check_expiry(look->search, places[i].name, out);
	if (!r)
		finder->place = i + 1;
	return r;
}

static int check_profile(struct finder_look *look)
{
	const struct finder *finder = look->finder;

	if ((!finder->is_named && !finder->settings.profile) ||
	    profile_exists(&look->profiles, finder->profile))
		return 0;
	return search_fails(look->search, -EACCES,
			    "profile %.64s is neither in the config nor in the "
			    "credentials file of AWS",
			    finder->profile);
}

int finder_find(struct finder *finder, struct search *search,
		struct session *out)
{
	struct finder_look look = { .finder = finder, .search = search };
	int r = profiles_read(search, &finder->settings, &look.profiles);

	*out = (struct session){ 0 };
	finder->is_static = false;
	r = r ? r : check_profile(&look);
	if (!r) {
		r = -ENOENT;
		for (size_t i = 0; i < ARRAY_LEN(places) && r == -ENOENT; i++)
			r = try_place(&look, i, out);
	}
	if (r == -ENOENT)
		search_fails(search, r,
			     "there are no credentials: neither in variables "
			     "(AWS_ACCESS_KEY_ID), nor in profile %.64s, nor "
			     "from a container or the machine; use no_sign "
			     "for public objects, and see beton-remote(7)",
			     finder->profile);
	if (r)
		session_fini(out);
	profiles_fini(&look.profiles);
	return r;
}

/* --- S3 --- */

static const char *first(const char *a, const char *b)
{
	return a && *a ? a : b;
}

static const char *find_region(const struct finder_look *look,
			       const struct finder_options *options)
{
	const struct keys_settings *s = &look->finder->settings;
	const char *region =
		first(options->region, first(s->region, s->default_region));

	return region ? region : get(look, look->finder->profile, "region");
}

/* It is a part of each signature, and so of a header. */
static int check_region(struct finder_look *look)
{
	static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "abcdefghijklmnopqrstuvwxyz0123456789-._";
	const char *region = look->finder->region;

	if (!region || !region[strspn(region, good)])
		return 0;
	return search_fails(look->search, -EINVAL,
			    "the region has other characters than letters, "
			    "digits, and . - _");
}

static const char *find_endpoint(const struct finder_look *look,
				 const struct finder_options *options)
{
	const struct keys_settings *s = &look->finder->settings;
	const char *url =
		first(options->endpoint, first(s->endpoint_s3, s->endpoint));

	if (look->finder->is_google)
		return options->endpoint;
	if (url || settings_is_true(s->ignore_endpoints))
		return url;
	return profile_endpoint(&look->profiles, look->finder->profile, "s3");
}

static int find_style(struct finder_look *look)
{
	const char *style =
		get(look, look->finder->profile, "s3.addressing_style");
	enum url_style *out = &look->finder->style;

	*out = URL_STYLE_AUTO;
	if (!style || !strcmp(style, "auto"))
		return 0;
	*out = strcmp(style, "path") ? URL_STYLE_VIRTUAL : URL_STYLE_PATH;
	if (*out == URL_STYLE_PATH || !strcmp(style, "virtual"))
		return 0;
	return search_fails(look->search, -EACCES,
			    "profile %.64s: s3.addressing_style is none of "
			    "auto, path, virtual",
			    look->finder->profile);
}

static int copy(const char *text, char **out)
{
	*out = text ? strdup(text) : NULL;
	return text && !*out ? -ENOMEM : 0;
}

int finder_init(struct finder *finder, const struct finder_options *options,
		struct search *search)
{
	struct finder_look look = { .finder = finder, .search = search };
	struct keys_settings *s = &finder->settings;
	int r;

	*finder = (struct finder){ 0 };
	finder->is_google = options->is_google;
	r = keys_settings_read(search->outside, s);
	finder->is_named = options->profile && *options->profile;
	r = r ? r
	      : copy(first(options->profile, first(s->profile, "default")),
		     &finder->profile);
	r = r ? r : profiles_read(search, s, &look.profiles);
	r = r ? r : check_profile(&look);
	r = r ? r : find_style(&look);
	r = r ? r : copy(find_region(&look, options), &finder->region);
	r = r ? r : check_region(&look);
	r = r ? r : copy(find_endpoint(&look, options), &finder->endpoint);
	profiles_fini(&look.profiles);
	return r;
}

void finder_fini(struct finder *finder)
{
	settings_fini(&finder->settings);
	free(finder->profile);
	free(finder->region);
	free(finder->endpoint);
	*finder = (struct finder){ 0 };
}
