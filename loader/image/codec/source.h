/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes in memory as libjpeg's data source. Their end inside the header is an
 * error at once. After the header, libjpeg gets an end-of-image marker instead,
 * since it may only look ahead.
 */
#ifndef LOADER_IMAGE_CODEC_SOURCE_H
#define LOADER_IMAGE_CODEC_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct codec_source;
struct jpeg_source_mgr;

int codec_source_open(struct codec_source **out);
void codec_source_close(struct codec_source *source);

/* For a decoder's `src`. */
struct jpeg_source_mgr *codec_source_manager(struct codec_source *source);

/* Starts over with other bytes, which must outlive their use. */
void codec_source_set(struct codec_source *source, const uint8_t *bytes,
		      size_t size);

/* From here on, the end of the bytes is no error by itself. */
void codec_source_past_header(struct codec_source *source);

/* Whether libjpeg asked for more bytes than there are. */
bool codec_source_ended(const struct codec_source *source);

#endif
