/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a source should have in flight: a multiple of the measured
 * bandwidth-delay product. It begins with some MiB, and follows the rate. A
 * server that throttles halves it. Pure functions of the times that the caller
 * passes; one thread changes it.
 */
#ifndef FS_SOURCE_PACING_DEPTH_H
#define FS_SOURCE_PACING_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

enum {
	DEPTH_START = 4 << 20, /* bytes in flight, also the least */
	/* Joined reads are that large, or larger on fast or distant
	   links. Many requests should be in flight: a lost packet
	   stops one of them, and each begins with a burst. Sequential reads
	   over 400 Mbit/s at 50 ms, with 60 ms of buffer, filled 0.93 of the
	   link with 1 MiB, where 2 to 3 % of the packets were lost, and 1.00
	   with 256 KiB, where 0.1 to 0.3 % were. */
	DEPTH_READ_MIN = 256 << 10,
	DEPTH_READ_MAX = 8 << 20,
};

struct depth {
	uint64_t target; /* bytes in flight */
	uint64_t most;	 /* bytes in flight, at most */
	unsigned connections;
	double refusals;      /* of recent answers */
	double request_bytes; /* average of recent requests */
	/* The lowest average time to the first byte; 0: unknown. */
	int64_t latency_ns;
	bool doubts;	  /* the latency is measured again */
	bool has_latency; /* it is an average of now, not of before a probe */
	int64_t free_ns;  /* the last time that first bytes did not wait */
	unsigned probes;  /* intervals until the latency is known again */
	uint64_t kept;	  /* the target after them */
	/* The current interval. */
	int64_t since_ns;
	uint64_t bytes;
	int64_t latencies_ns; /* sum of times to first bytes */
	unsigned num_latencies;
	bool was_full; /* requests waited for others to end */
	bool first_bytes_wait;
	double rate;	  /* average of the last full intervals, in bytes/s */
	double best_rate; /* the highest average */
	unsigned num_rates;
	int64_t throttled_ns; /* the last time; 0: never */
	uint64_t ceiling;     /* bytes; found by throttling; 0: none */
};

void depth_init(struct depth *depth, uint64_t most, unsigned connections);

/* Reports of the caller: a request begins, a first byte arrives so long after
   its request, bytes arrive, requests wait because the depth is reached, the
   server throttles. */
void depth_begin(struct depth *depth, uint64_t size);
void depth_first_byte(struct depth *depth, int64_t latency);
void depth_bytes(struct depth *depth, int64_t now, uint64_t size);
void depth_full(struct depth *depth);
/* A refused request. Returns false if there were few, or if it has reacted to
   the same overload already. */
bool depth_throttled(struct depth *depth, int64_t now);

/* Requests that should be in flight. */
unsigned depth_requests(const struct depth *depth);
/* The same, for requests that a reader waits for. */
unsigned depth_urgent(const struct depth *depth);
/* Bytes of a request that reads adjacent bytes. */
uint64_t depth_best_read(const struct depth *depth);
/* The recent rate in bytes/s; 0: unknown. */
double depth_rate(const struct depth *depth);

#endif
