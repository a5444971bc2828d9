/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts an index of entry points (loader/image/jpeg/entry_index.h) into a JPEG,
 * and changes nothing else. One thread. Input is hostile.
 */
#ifndef LOADER_IMAGE_CODEC_INDEX_H
#define LOADER_IMAGE_CODEC_INDEX_H

#include <stddef.h>
#include <stdint.h>

/* A step: up to four entries for each row of MCUs. Crops of photographs gain
   little by more, which take more bytes. */
enum { INDEX_AUTO = 0 };

struct codec_indexer;

int codec_indexer_open(struct codec_indexer **out);
void codec_indexer_close(struct codec_indexer *x);

/*
 * *out is malloc'ed and the caller's. -EEXIST: the JPEG has an index already;
 * -ENOTSUP: it cannot have one; -E2BIG: the index does not fit in a segment;
 * -ENOMEM.
 */
int codec_index(struct codec_indexer *x, const uint8_t *bytes, size_t size,
		uint32_t step, uint8_t **out, size_t *out_size);

#endif
