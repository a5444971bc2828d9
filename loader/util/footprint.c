/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/util/footprint.h"

#include "fs/base/memory/memory.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/log.h"

static double mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

void footprint_check(const struct footprint *f, const char *root,
		     struct log *log)
{
	uint64_t rows = ((uint64_t)f->complete + 1) * f->rows + f->head_rows;
	uint64_t all;
	struct memory m;

	if (!mul_ok(f->row_size, rows, &all))
		all = UINT64_MAX;
	if (memory_read(root, &m) || all <= m.available)
		return;
	log_warning(log,
		    "the batch in use and %u prefetched%s, of %u samples and "
		    "%.0f MiB each, need at least %.0f MiB, but %.0f MiB are "
		    "available (%s); use a smaller batch= or prefetch=, or "
		    "smaller outputs",
		    f->complete,
		    f->head_rows ? " with the beginning of another" : "",
		    f->rows, mib(all) / (double)rows * f->rows, mib(all),
		    mib(m.available), m.why);
}
