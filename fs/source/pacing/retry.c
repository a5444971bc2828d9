/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/pacing/retry.h"

#include <errno.h>
#include <stddef.h>

#include "fs/base/util/bytes.h"

static const struct {
	int status;
	enum retry_kind kind;
	int error;
} rows[] = {
	{ 200, RETRY_NONE, 0 },
	{ 206, RETRY_NONE, 0 },
	{ 401, RETRY_CREDENTIALS, EACCES },
	{ 403, RETRY_CREDENTIALS, EACCES },
	{ 404, RETRY_FINAL, ENOENT },
	{ 408, RETRY_AGAIN, ETIMEDOUT },
	{ 410, RETRY_FINAL, ENOENT },
	{ 412, RETRY_REPLACED, ESTALE },
	{ 416, RETRY_FINAL, EIO },
	{ 425, RETRY_AGAIN, EIO },
	{ 429, RETRY_THROTTLED, EBUSY },
	{ 501, RETRY_FINAL, EOPNOTSUPP },
	{ 503, RETRY_THROTTLED, EBUSY },
	{ 504, RETRY_AGAIN, ETIMEDOUT },
	{ 505, RETRY_FINAL, EOPNOTSUPP },
};

enum retry_kind retry_of_status(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].status == status)
			return rows[i].kind;
	}
	return status >= 500 ? RETRY_AGAIN : RETRY_FINAL;
}

int retry_errno(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].status == status)
			return -rows[i].error;
	}
	return -EIO;
}

int64_t retry_delay_ns(unsigned failures, uint64_t after_s, struct rng *rng)
{
	uint64_t ms = RETRY_FIRST_MS,
		 least = min_u64(after_s, RETRY_AFTER_MAX_S);

	for (unsigned i = 1; i < failures && ms < RETRY_LAST_MS; i++)
		ms *= 2;
	ms = min_u64(ms, RETRY_LAST_MS);
	return (int64_t)least * 1000000000 +
	       (int64_t)(rng_uniform(rng) * (double)ms * 1e6);
}
