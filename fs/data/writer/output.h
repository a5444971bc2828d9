/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file or object that a writer fills: each kind of output is a row of
 * output_ops. Readers see it under its name only when it is complete. Then it
 * replaces what had the name. Every failure is logged with the path, and `log`
 * must outlive the output. One thread.
 *
 * An output has two parts. Bytes before output_body() are written in any order,
 * and may be read back. The bytes from there on ascend: each write begins at
 * the end of an earlier one, or after it.
 */
#ifndef FS_DATA_WRITER_OUTPUT_H
#define FS_DATA_WRITER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "fs/base/util/log.h"
#include "fs/source/local/options.h"

struct output;
struct sums;

/* Called about every 100 ms while an output waits for a server. A result other
   than 0 ends the wait, and the waiting call returns it without a message. */
typedef int output_poll_fn(void *arg);

struct output_setup {
	const char *path; /* or a URL */
	/* How a URL is reached; NULL: the defaults. */
	const struct source_options *options;
	output_poll_fn *poll; /* NULL: none */
	void *arg;
	/* Becomes the checksums of a published object, without fingerprint. A
	   path leaves it alone. NULL: none. */
	struct sums *sums;
	/* The caller writes a new file of checksums. Otherwise one of the
	   replaced file is removed, with a warning; that of an object stays. */
	bool renews_sums;
	struct log *log;
};

struct output_ops {
	const char *name;
	bool (*takes)(const char *path);
	int (*open)(const struct output_setup *setup, struct output **out);
	int (*body)(struct output *o, uint64_t at);
	int (*write)(struct output *o, const void *bytes, size_t size,
		     uint64_t off);
	int (*read)(struct output *o, void *bytes, size_t size, uint64_t off);
	/* NULL: the kernel cannot copy to it. */
	int64_t (*copy)(struct output *o, int fd, uint64_t from, uint64_t size,
			uint64_t off);
	int (*scratch)(struct output *o, int *fd);
	int (*move_down)(struct output *o, uint64_t from, uint64_t to,
			 uint64_t size);
	int (*resize)(struct output *o, uint64_t size);
	void (*expect)(struct output *o, const struct stat *old);
	int (*publish)(struct output *o);
	/* Frees; removes what is not published. */
	void (*close)(struct output *o);
};

/* The first member of every output. */
struct output {
	const struct output_ops *ops;
};

/* Sets the offset at which bytes begin to ascend. Call it once, before the
   first write. */
int output_body(struct output *o, uint64_t at);

/* Writes all bytes at `off`; gaps read as zeros. */
int output_write(struct output *o, const void *bytes, size_t size,
		 uint64_t off);

/* Reads back bytes before the body. */
int output_read(struct output *o, void *bytes, size_t size, uint64_t off);

/* As outfile_copy(), to the body. */
int64_t output_copy(struct output *o, int fd, uint64_t from, uint64_t size,
		    uint64_t off);

/* As outfile_scratch(); for a URL the file is in $TMPDIR. */
int output_scratch(struct output *o, int *fd);

/* Moves the body [from, size) down to `to`, and ends the output there. */
int output_move_down(struct output *o, uint64_t from, uint64_t to,
		     uint64_t size);

/* Makes the output `size` bytes long, which is at least what it has. */
int output_resize(struct output *o, uint64_t size);

/* Requires that the name still has the file of `old`, unchanged, when the new
   one gets it. For a URL: the object that had the name when the output was
   opened. */
void output_expect(struct output *o, const struct stat *old);

/*
 * Completes the output and gives it its name. On failure nothing of it is left,
 * and what had the name stays. -ESTALE: something else than expected has the
 * name. *o becomes NULL either way.
 */
int output_publish(struct output **o);

/* Discards the output; takes NULL. */
void output_abort(struct output **o);

#endif
