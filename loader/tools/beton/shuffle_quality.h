/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How well an order shuffles, measured on some batches of epoch 0 beside the
 * random order of the same seed: with a label, how many classes a batch has;
 * without one, how many bits of entropy the gaps between neighbours' ids have
 * (by the power of two of their size).
 */
#ifndef LOADER_TOOLS_BETON_SHUFFLE_QUALITY_H
#define LOADER_TOOLS_BETON_SHUFFLE_QUALITY_H

#include "fs/order/spec.h"

/* The label of a sample; 0 or -errno. NULL: there are no labels. */
typedef int quality_label(void *arg, uint64_t sample, int64_t *label);

struct quality_measure {
	double mean;
	double worst; /* the least of all batches */
};

struct quality {
	bool of_labels;	  /* classes per batch; else bits of entropy */
	uint64_t batches; /* that were looked at */
	struct quality_measure spec;
	struct quality_measure random;
};

/* -ENODATA for an epoch without batches; what `label` returns otherwise. */
int quality_measure(const struct spec *spec, quality_label *label, void *arg,
		    struct quality *out);

#endif
