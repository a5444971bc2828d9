/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies samples of open datasets to a writer without decoding them. The
 * bytes of values go straight from file to file. Values that follow each other
 * in both files become one copy, which shares blocks where the file system can.
 * The new file is the same as if the values were read and appended one by one.
 * One thread.
 *
 *	r = copy_open(writer, log, &copy);
 *	r = r ? r : copy_from(copy, dataset, NULL);
 *	r = r ? r : copy_range(copy, 0, dataset->format.samples);
 *	copy_close(copy);
 *	r = r ? r : writer_finish(&writer);
 */
#ifndef FS_DATA_WRITER_COPY_H
#define FS_DATA_WRITER_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "fs/data/dataset/dataset.h"
#include "fs/data/writer/writer.h"

struct copy;

/*
 * Changes an integer before it is written, for example to renumber classes.
 * `field` counts in the writer, `sample` in the dataset. -errno, logged by the
 * function, ends the copy of this sample, and nothing of it is appended.
 */
typedef int copy_integer_fn(void *arg, uint32_t field, uint64_t sample,
			    int64_t *value);

/* The writer must outlive the copy, and may also take other samples. */
int copy_open(struct writer *w, struct log *log, struct copy **out);

/*
 * Sets the dataset of the samples to come, which may consist of several files
 * (joined.h). Field i of the writer takes the values of field fields[i] of the
 * dataset; NULL: field i. The call copies the array. -EINVAL, -EOPNOTSUPP,
 * logged: a field has another type, or its values cannot be copied. The dataset
 * must outlive the copy or the next copy_from().
 */
int copy_from(struct copy *c, struct dataset *ds, const uint32_t *fields);

/* Sets the function that changes integers of the samples to come. NULL: copy
   them unchanged. */
void copy_change_integers(struct copy *c, copy_integer_fn *change, void *arg);

/*
 * Appends a sample. Numbers that ascend are fastest. Failures are logged with
 * the dataset, the sample and the field.
 *
 * -BETON_ECORRUPT: a value is damaged; nothing was appended, and the copy can
 * continue with another sample. -BETON_ETOOLARGE: it does not fit into a page
 * of the writer; likewise. Any other error is final.
 */
int copy_sample(struct copy *c, uint64_t number);

/*
 * Appends the samples [first, first + n). Stops at the first failure, with the
 * errors of copy_sample().
 */
int copy_range(struct copy *c, uint64_t first, uint64_t n);

/* Takes NULL. The dataset may be closed afterwards. If bytes that were still to
   be copied could not be, writer_finish() fails. */
void copy_close(struct copy *c);

#endif
