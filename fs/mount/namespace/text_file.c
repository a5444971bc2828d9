/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/namespace/text_file.h"

#include <stdlib.h>
#include <string.h>

struct text_file {
	struct vfile vfile;
	const char *text;
	char *owned; /* a snapshot's text, freed with the file; or NULL */
};

static void text_segment(const struct vfile *vfile, uint64_t off,
			 struct segment *out)
{
	const struct text_file *file = (const struct text_file *)vfile;

	(void)off;
	*out = (struct segment){
		.kind = SEGMENT_LITERAL,
		.size = vfile->size,
		.literal = file->text,
	};
}

static void text_close(struct ns_file *file)
{
	free(((struct text_file *)file->vfile)->owned);
	free(file->vfile);
}

int ns_text_open(const char *text, size_t size, struct ns_file *out)
{
	struct text_file *file = calloc(1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	file->text = text;
	file->vfile.size = size;
	file->vfile.segment_at = text_segment;
	*out = (struct ns_file){ .vfile = &file->vfile, .close = text_close };
	return 0;
}

int ns_snapshot(char *text, struct ns_file *out)
{
	int r = ns_text_open(text, strlen(text), out);

	if (r) {
		free(text);
		return r;
	}
	((struct text_file *)out->vfile)->owned = text;
	out->is_snapshot = true;
	out->bytes = out->vfile->size + 1;
	return 0;
}
