/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shuffle quality of an order, measured on some batches of epoch 0 and
 * compared with the random order of the same seed. If the dataset has a label,
 * the measure is the number of classes in a batch. Otherwise it is the entropy,
 * in bits, of the gaps between neighboring ids, by the power of two of their
 * size.
 */
#ifndef LOADER_TOOLS_BETON_SHUFFLE_QUALITY_H
#define LOADER_TOOLS_BETON_SHUFFLE_QUALITY_H

#include "fs/order/spec.h"

/*
 * Sets the label of a sample; returns 0 or -errno. NULL: there are no labels.
 */
typedef int shuffle_quality_label(void *arg, uint64_t sample, int64_t *label);

struct shuffle_quality_measure {
	double mean;
	double worst; /* the least of all batches */
};

struct shuffle_quality {
	bool of_labels;	  /* classes per batch; else bits of entropy */
	uint64_t batches; /* measured */
	struct shuffle_quality_measure spec;
	struct shuffle_quality_measure random;
};

/* Returns -ENODATA for an epoch without batches, or the error of `label`. */
int shuffle_quality_measure(const struct spec *spec,
			    shuffle_quality_label *label, void *arg,
			    struct shuffle_quality *out);

#endif
