/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Some samples of a dataset as small datasets of their own: as they are, or
 * encoded in another way. The doctor measures the gain of an encoding with them
 * instead of guessing it. One thread.
 */
#ifndef LOADER_TOOLS_DOCTOR_VARIANT_H
#define LOADER_TOOLS_DOCTOR_VARIANT_H

#include "fs/base/util/log.h"
#include "loader/tools/doctor/evidence.h"

struct variant_source;

/*
 * Reads up to `samples` samples, evenly spread, and no more than 96 MiB of
 * them. Fills the evidence's figures of images. Failures are logged.
 */
int variant_source_open(const char *path, size_t samples, struct log *log,
			struct evidence *e, struct variant_source **out);
void variant_source_close(struct variant_source *source);

/*
 * Writes a variant of the samples to `fd`. `e` describes the images that the
 * pipeline produces. -ENODATA: the variant would be the same, or cannot be
 * made.
 */
int variant_write(struct variant_source *source, enum variant v,
		  struct evidence *e, int fd);

/*
 * The number of samples, and the bytes per sample of the last variant written.
 */
size_t variant_samples(const struct variant_source *source);
double variant_bytes(const struct variant_source *source);

#endif
