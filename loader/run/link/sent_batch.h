/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The batch that a maker sends: a batch file (<beton/batch.h>) whose fields are
 * the outputs of a step, in their order. An output of fixed size is a fixed column
 * of bytes, any other one a variable column. The errors of a field are those of
 * making the output.
 *
 * The bytes of fixed columns and of values stay in the step.
 */
#ifndef LOADER_RUN_LINK_SENT_BATCH_H
#define LOADER_RUN_LINK_SENT_BATCH_H

#include <sys/uio.h>

#include "loader/run/feed/feed.h"
#include "loader/run/loop/step.h"

/* Zero-initialize. */
struct sent_batch {
	uint64_t size;	    /* of the file */
	struct buffer head; /* all but the columns of the step */
	struct scratch parts;
	size_t num_parts; /* of `parts`, struct iovec: the whole file */
};

/* Describes a step that is complete and has step->errors. The result is valid
   until the step is released. Returns -ENOMEM. */
int sent_batch_build(struct sent_batch *b, const struct step *step,
		     const struct feed *feed);
void sent_batch_fini(struct sent_batch *b);

#endif
