/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether another attempt follows a failed one, and when. Pure
   functions. */
#ifndef FS_SOURCE_PACING_RETRY_H
#define FS_SOURCE_PACING_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/base/util/rng.h"

enum retry_kind {
	RETRY_NONE,	   /* the status is that of an answer with bytes */
	RETRY_AGAIN,	   /* a fault that passes */
	RETRY_THROTTLED,   /* the server asks for fewer requests */
	RETRY_CREDENTIALS, /* once, with new credentials */
	RETRY_REPLACED,	   /* a condition on the version failed */
	RETRY_FINAL,
};

enum {
	RETRY_FIRST_MS = 50,
	RETRY_LAST_MS = 5000,
	RETRY_AFTER_MAX_S = 60,
};

enum retry_kind retry_of_status(int status);
/* The -errno of a request that ends with a status. */
int retry_errno(int status);

/* The nanoseconds to wait after the n-th failure in a row, from 1 on: random,
   up to 50 ms, 100 ms, 200 ms ... 5 s. `after_s` seconds, as the server asks,
   are the least. */
int64_t retry_delay_ns(unsigned failures, uint64_t after_s, struct rng *rng);

#endif
