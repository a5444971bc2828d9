/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/pacing/outage.h"

enum {
	/* Single failures are common, and no news. */
	FAILURES_MIN = 3,
	LOG_AFTER_MS = 500,
	/* A single failure is news if it took so long. */
	LOG_SILENT_MS = 5000,
};

static double seconds_since(const struct outage *o, int64_t now)
{
	return (double)(now - o->since_ns) * 1e-9;
}

static bool is_news(const struct outage *o, int64_t now, int64_t silent_ns)
{
	return silent_ns >= LOG_SILENT_MS * 1000000LL ||
	       (o->failures >= FAILURES_MIN &&
		now - o->since_ns >= LOG_AFTER_MS * 1000000LL);
}

void outage_fails(struct outage *o, int64_t now, int64_t silent_ns,
		  const char *why, uint64_t retry_ms)
{
	if (!o->failures++)
		o->since_ns = now;
	if (o->is_logged || !is_news(o, now, silent_ns))
		return;
	o->is_logged = true;
	log_warning(o->log, "%s: %s: trying again for %llu s", o->name, why,
		    (unsigned long long)retry_ms / 1000);
}

void outage_refuses(struct outage *o, const char *why)
{
	if (!o->is_refused)
		log_warning(o->log,
			    "%s: %s: reads fail until a request succeeds",
			    o->name, why);
	o->is_refused = true;
}

void outage_ends(struct outage *o, int64_t now)
{
	if (o->is_logged)
		log_warning(o->log, "%s: the server answers again after %.1f s",
			    o->name, seconds_since(o, now));
	o->failures = 0;
	o->is_logged = o->has_given_up = o->is_hopeless = o->is_refused = false;
}

void outage_gives_up(struct outage *o, int64_t now, uint64_t off, uint64_t size,
		     const char *why)
{
	if (o->has_given_up)
		return;
	o->has_given_up = o->is_logged;
	if (!o->is_logged)
		log_error(o->log, "%s: read of %llu bytes at %llu: %s", o->name,
			  (unsigned long long)size, (unsigned long long)off,
			  why);
	else
		log_error(
			o->log,
			"%s: %s: failed for %.1f s: reads fail until a request succeeds",
			o->name, why, seconds_since(o, now));
}
