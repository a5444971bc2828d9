/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datasets into a new dataset: samples are read with all their values, changed
 * value by value, and appended to a writer.
 *
 * rewrite_run() does that for a list of samples, with several threads for the
 * changes. The other functions are its parts, for a program that keeps samples
 * in memory. The new file's fields are the writer's, and its field i takes
 * value i of every sample. A program gets the fields of a dataset from
 * rewrite_fields(). It may rename them or give them other types, for which its
 * callback then makes the values.
 */
#ifndef FS_DATASET_REWRITE_H
#define FS_DATASET_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/dataset/dataset.h"
#include "fs/dataset/writer.h"

/* --- samples ------------------------------------------------------------- */

/* One value on its way. */
struct rewrite_value {
	const struct field *field; /* of the dataset it was read from */
	struct writer_value read;  /* as that dataset has it */
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

/* Whether the values of a field can be read and written. */
bool rewrite_can_copy(const struct field *field);

/*
 * The fields of a dataset as a writer takes them, one for each, in an array
 * that the caller frees. Their names are the dataset's memory. -EOPNOTSUPP: a
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
 * Has value `i` written with these bytes, which are malloc'ed and from now on
 * the sample's. What else the value needs, such as an image's mode, the caller
 * sets in s->written[i].
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
	/* The place of sample `i` of the run. Called in order; NULL: sample i
	   of `dataset`. */
	struct rewrite_place (*place)(void *arg, uint64_t i);
	struct dataset *dataset;
	struct writer *writer; /* NULL: the samples are only looked at */
	struct log *log;       /* for failures of no dataset */

	rewrite_fn *change;
	void *workers; /* array of `threads` elements */
	size_t worker_size;
	unsigned threads;

	/* Where the changes make a sample too large for a page, write it as it
	   was read. Only if the fields still have the types of the dataset. */
	bool undo_too_large;

	/* Called for each sample after it was written or looked at, in order,
	   on the caller's thread; or NULL. */
	void (*done)(void *arg, const struct rewrite_sample *s);
	void *arg;
};

/*
 * Reads, changes and writes the samples in order. Some 64 MiB of values are in
 * memory at a time, and one sample more. The caller opens and finishes the
 * writer. Failures are logged.
 */
int rewrite_run(const struct rewrite *run);

/*
 * Appends a sample as it will be written. -BETON_ETOOLARGE: it does not fit
 * into a page; nothing was written, nothing logged.
 */
int rewrite_append(struct writer *w, const struct rewrite_sample *s);

#endif
