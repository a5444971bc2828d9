/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a source that reads over a network: source_net_stats() of
   source.h. */
#ifndef FS_SOURCE_LOCAL_NET_STATS_H
#define FS_SOURCE_LOCAL_NET_STATS_H

#include <stdbool.h>
#include <stdint.h>

struct source_net_stats {
	uint64_t rate;	     /* bytes/s, the highest of recent intervals */
	uint64_t latency_ns; /* lowest recent time to the first byte */
	uint64_t latency_p50_ns;
	uint64_t latency_p99_ns;
	unsigned in_flight;    /* requests */
	unsigned waiting;      /* requests that have not begun */
	unsigned depth;	       /* requests wanted in flight */
	uint64_t target_bytes; /* bytes wanted in flight */
	uint64_t requests;     /* attempts that were sent */
	uint64_t connections;  /* opened */
	uint64_t retries;
	uint64_t stalls; /* attempts that ended because no byte came */
	uint64_t hedges;
	uint64_t hedge_bytes;
	uint64_t throttled;	/* answers 429 and 503 */
	uint64_t wire_bytes;	/* received, with heads */
	uint64_t payload_bytes; /* delivered */
	uint64_t failures;	/* requests that failed for good */
	bool is_stale;		/* the object was replaced */
	bool is_out;		/* the server does not answer now */
	int last_error;		/* errno of the last failed attempt; 0: none */
};

#endif
