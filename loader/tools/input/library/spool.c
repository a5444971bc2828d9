/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/input/library/spool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/formats/file.h"
#include "loader/tools/ui/progress.h"

/* A block in the file. */
struct spool_extent {
	uint64_t off;
	uint64_t size;
};

struct spool {
	struct file file;
	struct spool_extent *extents;
	uint64_t rows_per_block;
	uint64_t count;
	size_t num_columns;
};

static int copy_block(struct spool *s, struct pass *pass, uint64_t index,
		      struct log *log)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), size;
	struct block *b;
	const void *bytes;
	int r = pass_block(pass, index, &b);

	if (r)
		return r;
	bytes = block_bytes(b, &size);
	r = file_write(&s->file, bytes, size, s->file.size);
	block_put(&b);
	if (r) {
		log_error(log, "a copy of the rows below TMPDIR: %s",
			  strerror(-r));
		return r;
	}
	s->extents[index] = (struct spool_extent){ s->file.size, size };
	s->file.size += (size + page - 1) / page * page;
	return 0;
}

static int copy_blocks(struct spool *s, struct pass *pass, struct log *log)
{
	uint64_t n = pass_num_blocks(pass);
	struct progress progress;
	int r = 0;

	progress_init(&progress, s->count, log);
	for (uint64_t i = 0; i < n && !r; i++) {
		progress_show(&progress, i * s->rows_per_block);
		r = copy_block(s, pass, i, log);
	}
	progress_hide(&progress);
	return r;
}

int spool_open(struct pass *pass, uint64_t rows_per_block, uint64_t count,
	       size_t num_columns, struct log *log, struct spool **out)
{
	struct spool *s = calloc(1, sizeof(*s));
	int r;

	if (s)
		s->extents =
			calloc(pass_num_blocks(pass) + 1, sizeof(*s->extents));
	if (!s || !s->extents) {
		free(s);
		return log_no_memory(log, NULL);
	}
	s->rows_per_block = rows_per_block;
	s->count = count;
	s->num_columns = num_columns;
	r = file_make(&s->file);
	if (r)
		log_error(log, "a temporary file below TMPDIR: %s",
			  strerror(-r));
	r = r ? r : copy_blocks(s, pass, log);
	if (r)
		spool_close(s);
	else
		*out = s;
	return r;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	file_close(&s->file);
	free(s->extents);
	free(s);
}

int spool_block(const struct spool *s, uint64_t index, struct block **out)
{
	uint64_t rows = min_u64(s->rows_per_block,
				s->count - index * s->rows_per_block);

	return block_map(s->file.fd, s->extents[index].off,
			 s->extents[index].size, rows, s->num_columns, out);
}
