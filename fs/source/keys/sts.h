/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of a role, from AWS's Security Token Service. */
#ifndef FS_SOURCE_KEYS_STS_H
#define FS_SOURCE_KEYS_STS_H

#include "fs/source/keys/session.h"

struct sts_role {
	const char *arn;
	const char *session_name; /* NULL: one that is made of the time */
	const char *external_id;  /* NULL: none */
	const char *duration;	  /* seconds, as text; NULL: the role's */
	const char *region;	  /* NULL: the global endpoint */
	const char *endpoint;	  /* URL; NULL: that of the region */
};

/* Assumes a role with the keys of another session. Results of a search. */
int sts_assume(struct search *search, const struct sts_role *role,
	       const struct session *keys, struct session *out);

/* Assumes a role with the token that a file contains at this moment. */
int sts_web_identity(struct search *search, const struct sts_role *role,
		     const char *token_file, struct session *out);

#endif
