/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts datasets to a new dataset: reads samples with all their values,
 * changes them value by value, and appends them to a writer. rewrite_run() does
 * this for a list of samples, with several threads for the changes. The other
 * functions are its parts, for a program that holds samples in memory. The
 * writer determines the fields of the new file; field i takes value i of every
 * sample. A program gets the fields of a dataset from rewrite_fields(). It may
 * rename them or change their types; then its callback makes values of these
 * types.
 */
#ifndef FS_DATA_WRITER_REWRITE_H
#define FS_DATA_WRITER_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/data/dataset/dataset.h"
#include "fs/data/writer/writer.h"

/* --- samples ------------------------------------------------------------- */

/* One value between reading and writing. */
struct rewrite_value {
	const struct field *field; /* of the dataset it was read from */
	struct writer_value read;  /* as stored in that dataset */
	void *bytes;		   /* owned: the bytes of `read`, or NULL */
	void *replaced;		   /* owned: see rewrite_replace() */
	unsigned note;		   /* the program's, for its later use */
};

struct rewrite_sample {
	struct dataset *dataset;
	uint64_t number; /* in the dataset */
	size_t num_values;
	struct rewrite_value *values;
	/* The values as they will be written. Equal to values[].read until they
	   are changed. */
	struct writer_value *written;
};

/* Returns whether the values of a field can be read and written. */
bool rewrite_can_copy(const struct field *field);

/* Returns the reason if they cannot. */
const char *rewrite_why_not(const struct field *field);

/*
 * Returns the fields of a dataset in the form that a writer takes, in an array
 * that the caller frees. Their names point into the dataset. -EOPNOTSUPP: a
 * field cannot be copied; all failures are logged.
 */
int rewrite_fields(const struct dataset *ds, struct writer_field **out);

/*
 * Reads a sample with the values of all fields. Failures are logged with the
 * dataset, the sample and the field.
 */
int rewrite_read(struct dataset *ds, uint64_t number,
		 struct rewrite_sample **out);

/* Takes NULL. */
void rewrite_free(struct rewrite_sample *s);

/*
 * Replaces the bytes of value `i`. They are malloc'ed, and the sample owns them
 * from then on. The caller sets the other members of s->written[i], such as an
 * image's mode.
 */
void rewrite_replace(struct rewrite_sample *s, size_t i, void *bytes,
		     size_t size);

/* Undoes all changes of a sample. */
void rewrite_undo(struct rewrite_sample *s);

/* --- a run --------------------------------------------------------------- */

/* A sample to read. */
struct rewrite_place {
	struct dataset *dataset;
	uint64_t sample;
};

/*
 * Changes value `i` of a sample, or leaves it alone. Called on one of several
 * threads; `worker` is that thread's own element of the workers. -errno ends
 * the run and is logged with the value's place; -EAGAIN, -ENODATA and
 * -ECANCELED are reserved.
 */
typedef int rewrite_fn(void *worker, struct rewrite_sample *s, size_t i);

struct rewrite {
	uint64_t count; /* of samples to read */
	/* Returns the dataset and the number of sample `i` of the run. Called
	   in order. NULL: sample i of `dataset`. */
	struct rewrite_place (*place)(void *arg, uint64_t i);
	struct dataset *dataset;
	struct writer *writer; /* NULL: the samples are read, not written */
	struct log *log;       /* for failures of no dataset */

	rewrite_fn *change;
	void *workers; /* array of `threads` elements */
	size_t worker_size;
	unsigned threads;

	/* If the changes make a sample too large for a page, write it as it was
	   read. Requires the types of the dataset for all fields. */
	bool undo_too_large;

	/* Called for each sample after it was written, or read if there is no
	   writer; in order, on the caller's thread. NULL: none. */
	void (*done)(void *arg, const struct rewrite_sample *s);
	void *arg;
};

/*
 * Reads, changes and writes the samples in order. About 64 MiB of values, and
 * one more sample, are in memory at a time. The caller opens and finishes the
 * writer. Failures are logged.
 */
int rewrite_run(const struct rewrite *run);

/*
 * Appends a sample as it will be written. -BETON_ETOOLARGE: it does not fit
 * into a page; nothing was written, nothing logged.
 */
int rewrite_append(struct writer *w, const struct rewrite_sample *s);

#endif
