/* SPDX-License-Identifier: Apache-2.0 */
/* The message for a sampling spec that leaves no batch of a dataset. */
#ifndef LOADER_TOOLS_UI_NO_BATCHES_H
#define LOADER_TOOLS_UI_NO_BATCHES_H

#include <beton/loader.h>

enum { NO_BATCHES_SIZE = 512 };

/* Writes the spec, the number of samples and a spec that has batches. Returns
   -ENODATA. */
int no_batches_text(const struct beton_loader_info *info,
		    char out[NO_BATCHES_SIZE]);

#endif
