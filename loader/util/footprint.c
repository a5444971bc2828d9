/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/util/footprint.h"

#include "fs/memory/memory.h"
#include "fs/util/bytes.h"
#include "fs/util/log.h"

static double mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

void footprint_check(const struct footprint *f, const char *root,
		     struct log *log)
{
	uint64_t batches = (uint64_t)f->prefetch + 1, batch, all;
	struct memory m;

	if (!mul_ok(f->row_size, f->rows, &batch))
		batch = UINT64_MAX;
	if (!mul_ok(batch, batches, &all))
		all = UINT64_MAX;
	if (memory_read(root, &m) || all <= m.available)
		return;
	log_warning(log,
		    "prefetch=%u and the batch in use are %llu batches of %u "
		    "samples, %.0f MiB each: at least %.0f MiB, but %.0f MiB "
		    "are available (%s); use a smaller batch= or prefetch=, "
		    "or smaller outputs",
		    f->prefetch, (unsigned long long)batches, f->rows,
		    mib(batch), mib(all), mib(m.available), m.why);
}
