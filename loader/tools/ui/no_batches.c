/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/no_batches.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int no_batches_text(const struct beton_loader_info *info,
		    char out[NO_BATCHES_SIZE])
{
	const unsigned long long n = info->samples;

	/* Without the dataset's subsets, the number of samples cannot be
	   computed here. */
	if (!n)
		snprintf(out, NO_BATCHES_SIZE,
			 "%.300s has no batches: the dataset has no samples",
			 info->spec);
	else if (strstr(info->spec, "subset=") ||
		 strstr(info->spec, "num_samples="))
		snprintf(
			out, NO_BATCHES_SIZE,
			"%.300s has no batches: set a smaller batch= in --spec, or drop_last=0 to keep a short last batch",
			info->spec);
	else
		snprintf(
			out, NO_BATCHES_SIZE,
			"%.300s has no batches, because the dataset has %llu samples: set --spec=batch=%llu",
			info->spec, n, n);
	return -ENODATA;
}
