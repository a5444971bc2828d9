/* SPDX-License-Identifier: Apache-2.0 */
/* One line when a server stops to answer and one when it answers again, however
   many requests wait for it. One thread uses it. */
#ifndef FS_SOURCE_PACING_OUTAGE_H
#define FS_SOURCE_PACING_OUTAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/base/util/log.h"

struct outage {
	struct log *log;
	const char *name;  /* for messages */
	unsigned failures; /* since the last byte */
	int64_t since_ns;
	bool is_logged;
	/* A request has waited in vain since the last byte: others do not wait.
	 */
	bool is_hopeless;
	bool has_given_up; /* which is logged */
	bool is_refused;   /* which is logged */
};

/* An attempt failed after so long without a byte, and others follow for
   `retry_ms`. */
void outage_fails(struct outage *outage, int64_t now, int64_t silent_ns,
		  const char *why, uint64_t retry_ms);
/* A request was refused, so that no other attempt is made. Logs the first of
   a series as a warning, because a loader shows its own error instead of that
   of a read. */
void outage_refuses(struct outage *outage, const char *why);
/* Bytes arrive. */
void outage_ends(struct outage *outage, int64_t now);
/* A request fails for good after `failures` of its own. Logs it, once an
   outage. */
void outage_gives_up(struct outage *outage, int64_t now, uint64_t off,
		     uint64_t size, const char *why);

#endif
