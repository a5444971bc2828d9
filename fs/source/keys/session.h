/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of AWS, with the time at which they expire, and the texts that contain
   them. */
#ifndef FS_SOURCE_KEYS_SESSION_H
#define FS_SOURCE_KEYS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "fs/source/keys/outside.h"

struct session {
	char *id; /* NULL: `token` is a bearer token */
	char *secret;
	char *token;	/* NULL: none */
	time_t expires; /* 0: never */
};

/*
 * The search for a session, on one thread. Functions that search return 0,
 * -ENOENT: nothing is configured in this place; -EACCES: an attempt will fail
 * again; -EAGAIN: another attempt may succeed; -ECANCELED, -ENOMEM. If it is
 * -EACCES or -EAGAIN, `why` has the place and the reason.
 */
struct search {
	const struct outside *outside;
	const bool *stop; /* the search shall end */
	unsigned attempt; /* attempts before this one, in a series */
	bool had_session; /* an earlier search found one */
	char why[2 * OUTSIDE_WHY_SIZE];
};

int search_fails(struct search *search, int r, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Copies keys. The caller calls session_fini() in any case. -EINVAL: a key has
   characters that no header can have. */
int session_set(struct session *session, const char *id, const char *secret,
		const char *token);
void session_fini(struct session *session);

/*
 * Parses the JSON of a metadata service, or with `is_process` that of a
 * credential_process. Returns a result of a search; `place` begins its reason.
 */
int session_parse(struct search *search, const char *place, const char *text,
		  size_t size, bool is_process, struct session *out);

/* Parses the JSON of a bearer token, as session_parse(). */
int session_parse_bearer(struct search *search, const char *place,
			 const char *text, size_t size, struct session *out);

/* Parses a time as "2026-11-24T09:00:00Z", with a fraction or a time zone. */
bool session_parse_time(const char *text, time_t *out);

#endif
