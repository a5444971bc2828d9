/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/codec/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

struct codec_source {
	struct jpeg_source_mgr manager; /* first member, which libjpeg passes */
	bool in_header;
	bool ended;
};

static const JOCTET END_OF_IMAGE[] = { 0xff, JPEG_EOI };

static void nothing(j_decompress_ptr cinfo)
{
	(void)cinfo;
}

static boolean fill_source(j_decompress_ptr cinfo)
{
	struct codec_source *source = (struct codec_source *)cinfo->src;

	if (source->in_header)
		ERREXIT(cinfo, JERR_INPUT_EOF);
	source->ended = true;
	source->manager.next_input_byte = END_OF_IMAGE;
	source->manager.bytes_in_buffer = sizeof(END_OF_IMAGE);
	return TRUE;
}

static void skip(j_decompress_ptr cinfo, long n)
{
	struct jpeg_source_mgr *manager = cinfo->src;

	if (n <= 0)
		return;
	if ((size_t)n > manager->bytes_in_buffer) {
		fill_source(cinfo);
		return;
	}
	manager->next_input_byte += n;
	manager->bytes_in_buffer -= (size_t)n;
}

int codec_source_open(struct codec_source **out)
{
	struct codec_source *source = calloc(1, sizeof(*source));

	if (!source)
		return -ENOMEM;
	source->manager.init_source = nothing;
	source->manager.fill_input_buffer = fill_source;
	source->manager.skip_input_data = skip;
	source->manager.resync_to_restart = jpeg_resync_to_restart;
	source->manager.term_source = nothing;
	*out = source;
	return 0;
}

void codec_source_close(struct codec_source *source)
{
	free(source);
}

struct jpeg_source_mgr *codec_source_manager(struct codec_source *source)
{
	return &source->manager;
}

void codec_source_set(struct codec_source *source, const uint8_t *bytes,
		      size_t size)
{
	source->manager.next_input_byte = bytes;
	source->manager.bytes_in_buffer = size;
	source->in_header = true;
	source->ended = false;
}

void codec_source_past_header(struct codec_source *source)
{
	source->in_header = false;
}

bool codec_source_ended(const struct codec_source *source)
{
	return source->ended;
}
