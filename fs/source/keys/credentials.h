/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credentials of one object, and their renewal. A thread of their own
 * searches, and ends: readers never wait for a renewal while the session is
 * valid, and credentials_sign() never blocks, so that the thread of a net may
 * call it. Sessions are renewed five minutes before they expire, those of less
 * than a quarter of an hour when a third of their time is left. A renewal that
 * fails is tried again, with longer and longer pauses.
 *
 * No message contains a secret.
 */
#ifndef FS_SOURCE_KEYS_CREDENTIALS_H
#define FS_SOURCE_KEYS_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "fs/base/util/log.h"
#include "fs/source/keys/outside.h"
#include "fs/source/keys/refusal.h"
#include "fs/source/url/url.h"

struct credentials;

/* NULL, or false: the default of struct source_options. */
struct credentials_options {
	const struct url_scheme *scheme;
	const char *name; /* for messages: struct url.visible */
	const char *profile;
	const char *region;
	const char *endpoint;
	/* A file of header lines, "Name: value", or of one bearer token. It is
	   read again once a minute, and after a refusal. */
	const char *header;
	bool no_sign;
	/* An attempt to get a session ended; on the thread of the renewal,
	   and it must not call these functions. May be NULL. */
	void (*changed)(void *arg);
	void *arg;
};

/*
 * Reads configuration, but asks no server. `outside` and the log must
 * outlive the credentials. Failures are logged: -EACCES: the configuration
 * is wrong, -EINVAL: the header file is, or another -errno.
 */
int credentials_open(const struct credentials_options *options,
		     const struct outside *outside, struct log *log,
		     struct credentials **out);
/* Waits for a request that the renewal has begun. Takes NULL. */
void credentials_close(struct credentials *c);

/* Ends the thread of a renewal, which begins again with the next call. */
void credentials_pause(struct credentials *c);

/* Waits until there is a session. -EACCES: there is none, which is logged,
   -ETIMEDOUT. */
int credentials_wait(struct credentials *c, unsigned ms);

/* Whether the renewal of the session starts a program, which a sandbox
   forbids. */
bool credentials_need_program(struct credentials *c);

/* As url_request(), with the region and the endpoint of the credentials. The
   answer changes if credentials_refused() learns another region. */
int credentials_url(struct credentials *c, const struct url *url,
		    struct url_request *out, char why[URL_WHY_SIZE]);

enum { CREDENTIALS_LINES_MAX = 16 };

/* A request to sign: see struct sign_request. */
struct credentials_request {
	const char *method;
	const struct url_request *url;
	const char *const *lines;
	size_t num_lines;
	const char *payload;
};

/* Header lines to send, "Name: value". They are secrets. */
struct credentials_lines {
	char *at[CREDENTIALS_LINES_MAX];
	size_t num;
	uint64_t version; /* of the session */
};

/*
 * Makes the header lines that a request needs; there may be none. Does not
 * block. The caller calls credentials_lines_fini() in any case. -EAGAIN: a
 * renewal is under way, and `changed` is called when it ends; -EACCES: there is
 * no session, which is logged.
 */
int credentials_sign(struct credentials *c,
		     const struct credentials_request *request,
		     struct credentials_lines *out);
void credentials_lines_fini(struct credentials_lines *lines);

/* --- refusals --- */

/*
 * Reports an answer to a request that was signed with `version`. Returns true
 * if another attempt, whose URL and lines are made again, may succeed: the
 * session is renewed, the bucket is in another region, or the clock was wrong.
 */
bool credentials_refused(struct credentials *c, uint64_t version,
			 const struct refusal *refusal);

#endif
