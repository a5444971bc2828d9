/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/codec/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

enum { FIRST_SIZE = 1 << 16 };

struct codec_target {
	struct jpeg_destination_mgr
		manager; /* first member, which libjpeg passes */
	uint8_t *bytes;
	size_t size;
};

static void aim(struct codec_target *t, size_t from)
{
	t->manager.next_output_byte = t->bytes + from;
	t->manager.free_in_buffer = t->size - from;
}

static void start_target(j_compress_ptr cinfo)
{
	struct codec_target *t = (struct codec_target *)cinfo->dest;

	free(t->bytes);
	t->bytes = malloc(FIRST_SIZE);
	if (!t->bytes)
		ERREXIT1(cinfo, JERR_OUT_OF_MEMORY, 0);
	t->size = FIRST_SIZE;
	aim(t, 0);
}

/* libjpeg calls this with a full buffer; free_in_buffer may be stale. */
static boolean grow_target(j_compress_ptr cinfo)
{
	struct codec_target *t = (struct codec_target *)cinfo->dest;
	size_t used = t->size;
	uint64_t size = 0;
	uint8_t *p = NULL;

	if (mul_ok(used, 2, &size))
		p = realloc(t->bytes, size);
	if (!p)
		ERREXIT1(cinfo, JERR_OUT_OF_MEMORY, 0);
	t->bytes = p;
	t->size = size;
	aim(t, used);
	return TRUE;
}

static void end_target(j_compress_ptr cinfo)
{
	struct codec_target *t = (struct codec_target *)cinfo->dest;

	t->size -= t->manager.free_in_buffer;
}

int codec_target_open(struct codec_target **out)
{
	struct codec_target *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->manager.init_destination = start_target;
	t->manager.empty_output_buffer = grow_target;
	t->manager.term_destination = end_target;
	*out = t;
	return 0;
}

void codec_target_close(struct codec_target *t)
{
	if (!t)
		return;
	free(t->bytes);
	free(t);
}

struct jpeg_destination_mgr *codec_target_manager(struct codec_target *t)
{
	return &t->manager;
}

uint8_t *codec_target_take(struct codec_target *t, size_t *size)
{
	*size = t->size;
	return steal(t->bytes);
}
