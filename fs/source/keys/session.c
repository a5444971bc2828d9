/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/keys/session.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/source/net/secret.h"

int search_fails(struct search *search, int r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(search->why, sizeof(search->why), format, args);
	va_end(args);
	return r;
}

/* Whether a header can carry the text. */
static bool is_plain(const char *text)
{
	for (; *text; text++) {
		if (*text <= ' ' || *text > '~')
			return false;
	}
	return true;
}

int session_set(struct session *session, const char *id, const char *secret,
		const char *token)
{
	*session = (struct session){ 0 };
	if (!*id || !*secret || !is_plain(id) || !is_plain(secret) ||
	    (token && !is_plain(token)))
		return -EINVAL;
	session->id = strdup(id);
	session->secret = strdup(secret);
	if (token && *token)
		session->token = strdup(token);
	if (!session->id || !session->secret ||
	    (token && *token && !session->token))
		return -ENOMEM;
	return 0;
}

void session_fini(struct session *session)
{
	secret_free(&session->id);
	secret_free(&session->secret);
	secret_free(&session->token);
	session->expires = 0;
}

/* --- times --- */

/* Takes `n` digits and the character behind them. */
static bool take_number(const char **p, size_t n, char after, int *out)
{
	*out = 0;
	for (; n; n--, (*p)++) {
		if (**p < '0' || **p > '9')
			return false;
		*out = *out * 10 + (**p - '0');
	}
	return !after || *(*p)++ == after;
}

/* "Z", "+HH:MM", "+HHMM" or nothing. */
static bool take_zone(const char *p, int *seconds)
{
	int sign = *p == '-' ? -1 : 1, hours, minutes;

	*seconds = 0;
	if (!*p || !strcmp(p, "Z"))
		return true;
	if (*p != '+' && *p != '-')
		return false;
	p++;
	if (!take_number(&p, 2, '\0', &hours))
		return false;
	p += *p == ':';
	if (!take_number(&p, 2, '\0', &minutes) || *p)
		return false;
	*seconds = sign * (hours * 3600 + minutes * 60);
	return true;
}

bool session_parse_time(const char *text, time_t *out)
{
	struct tm tm = { 0 };
	int zone;

	if (!take_number(&text, 4, '-', &tm.tm_year) ||
	    !take_number(&text, 2, '-', &tm.tm_mon) ||
	    !take_number(&text, 2, 'T', &tm.tm_mday) ||
	    !take_number(&text, 2, ':', &tm.tm_hour) ||
	    !take_number(&text, 2, ':', &tm.tm_min) ||
	    !take_number(&text, 2, '\0', &tm.tm_sec))
		return false;
	if (*text == '.')
		text += 1 + strspn(text + 1, "0123456789");
	if (!take_zone(text, &zone) || tm.tm_year < 1970 || tm.tm_mon < 1 ||
	    tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31 ||
	    tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	*out = timegm(&tm) - zone;
	return true;
}

/* --- JSON --- */

/* Clears all strings, since jansson does not. */
static void clear_strings(json_t *object)
{
	const char *name;
	json_t *value;

	json_object_foreach(object, name, value)
	{
		if (json_is_string(value))
			explicit_bzero(
				(void *)(uintptr_t)json_string_value(value),
				json_string_length(value));
	}
}

static const char *string_of(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_string(value) ? json_string_value(value) : NULL;
}

/* Takes the keys out of an object. */
static int take_keys(struct search *search, const char *place,
		     const json_t *object, bool is_process, struct session *out)
{
	const char *id = string_of(object, "AccessKeyId");
	const char *secret = string_of(object, "SecretAccessKey");
	const char *expires = string_of(object, "Expiration");
	const char *token =
		string_of(object, is_process ? "SessionToken" : "Token");
	int r;

	if (!id || !secret)
		return search_fails(search, is_process ? -EACCES : -EAGAIN,
				    "%s: the answer lacks AccessKeyId or "
				    "SecretAccessKey",
				    place);
	r = session_set(out, id, secret, token);
	if (r == -EINVAL)
		return search_fails(search, -EACCES,
				    "%s: a key has characters that keys cannot "
				    "have",
				    place);
	if (!r && expires && !session_parse_time(expires, &out->expires))
		return search_fails(search, -EACCES,
				    "%s: Expiration is no time such as "
				    "2026-01-31T23:59:59Z",
				    place);
	return r;
}

static int take_object(struct search *search, const char *place,
		       const json_t *object, bool is_process,
		       struct session *out)
{
	const char *code = string_of(object, "Code");
	json_int_t version =
		json_integer_value(json_object_get(object, "Version"));

	if (is_process && version != 1)
		return search_fails(search, -EACCES,
				    "%s: Version in the output is not 1",
				    place);
	if (!is_process && code && strcmp(code, "Success") != 0)
		return search_fails(search, -EAGAIN, "%s: %.40s", place,
				    is_plain(code) ? code : "failed");
	return take_keys(search, place, object, is_process, out);
}

int session_parse(struct search *search, const char *place, const char *text,
		  size_t size, bool is_process, struct session *out)
{
	json_error_t error;
	json_t *object = json_loadb(text, size, 0, &error);
	int r;

	*out = (struct session){ 0 };
	if (json_is_object(object))
		r = take_object(search, place, object, is_process, out);
	else
		r = search_fails(search, is_process ? -EACCES : -EAGAIN,
				 "%s: the answer is no JSON object", place);
	clear_strings(object);
	json_decref(object);
	if (r)
		session_fini(out);
	return r;
}

static int take_bearer(struct search *search, const char *place,
		       const json_t *object, struct session *out)
{
	const char *token = string_of(object, "access_token");
	json_int_t seconds =
		json_integer_value(json_object_get(object, "expires_in"));

	if (!token || !*token || !is_plain(token))
		return search_fails(search, -EAGAIN,
				    "%s: the answer lacks access_token", place);
	out->token = strdup(token);
	if (seconds > 0 && seconds < INT32_MAX)
		out->expires =
			search->outside->now(search->outside->arg) + seconds;
	return out->token ? 0 : -ENOMEM;
}

int session_parse_bearer(struct search *search, const char *place,
			 const char *text, size_t size, struct session *out)
{
	json_error_t error;
	json_t *object = json_loadb(text, size, 0, &error);
	int r;

	*out = (struct session){ 0 };
	r = take_bearer(search, place, object, out);
	clear_strings(object);
	json_decref(object);
	return r;
}
