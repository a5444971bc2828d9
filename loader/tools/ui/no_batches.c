/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/no_batches.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int no_batches_text(const struct beton_loader_info *info,
		    char out[NO_BATCHES_SIZE])
{
	const unsigned long long n = info->samples;

	/* Of a subset, the number of samples is not known here. */
	if (!n)
		snprintf(out, NO_BATCHES_SIZE,
			 "%.300s has no batches: the dataset has no samples",
			 info->spec);
	else if (strstr(info->spec, "subset=") || strstr(info->spec, "draws="))
		snprintf(
			out, NO_BATCHES_SIZE,
			"%.300s has no batches; drop_last=0 in --spec keeps the samples that are less than a batch, and a smaller batch= has some",
			info->spec);
	else
		snprintf(
			out, NO_BATCHES_SIZE,
			"%.300s has no batches of %llu samples; --spec=batch=%llu has one",
			info->spec, n, n);
	return -ENODATA;
}
