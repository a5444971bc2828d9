/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Some samples of a dataset as a small dataset of their own, as they are or
 * encoded otherwise, so that what that would bring can be measured instead of
 * guessed. One thread.
 */
#ifndef LOADER_TOOLS_DOCTOR_VARIANT_H
#define LOADER_TOOLS_DOCTOR_VARIANT_H

#include "fs/util/log.h"
#include "loader/tools/doctor/evidence.h"

struct variant_source;

/* Reads up to `samples` samples, evenly spread, and no more than 96 MiB of
   them; fills what the evidence says of images. Failures are logged. */
int variant_source_open(const char *path, size_t samples, struct log *log,
			struct evidence *e, struct variant_source **out);
void variant_source_close(struct variant_source *source);

/*
 * Writes one of the variants of a file to `fd`. -ENODATA: it would be the
 * same, or cannot be made. `e` says what the pipeline makes of the images.
 */
int variant_write(struct variant_source *source, enum variant v,
		  struct evidence *e, int fd);

/* Samples in it, and bytes of a sample in the last variant written. */
size_t variant_samples(const struct variant_source *source);
double variant_bytes(const struct variant_source *source);

#endif
