/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shuffle quality of an order, measured on some batches of epoch 0 and
 * compared with the random order of the same seed. If the dataset has a label,
 * the measure is the number of classes in a batch. Otherwise it is the entropy,
 * in bits, of the gaps between neighboring ids, by the power of two of their
 * size. Also the order of the labels on disk, on which the quality of orders
 * that read runs of samples depends.
 */
#ifndef LOADER_TOOLS_BETON_SHUFFLE_QUALITY_H
#define LOADER_TOOLS_BETON_SHUFFLE_QUALITY_H

#include "fs/base/order/spec.h"

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

/* How the samples follow each other on disk, by their labels. */
enum disk_order {
	DISK_UNIFORM, /* all labels are equal */
	DISK_SORTED,  /* no label is less than the one before */
	DISK_RUNS,    /* equal labels are neighbors more often than by chance */
	DISK_SHUFFLED, /* as often as by chance */
};

struct shuffle_quality_on_disk {
	enum disk_order order;
	uint64_t samples; /* that were inspected */
	double run;	  /* mean length of runs of equal labels, in samples */
	double shuffled_run; /* of the same labels in random order */
};

/* Inspects up to 65536 samples, in parts that are spread evenly. -ENODATA if
   there are fewer than two samples, or the error of `label`. */
int shuffle_quality_look_at_disk(uint64_t samples, shuffle_quality_label *label,
				 void *arg,
				 struct shuffle_quality_on_disk *out);

#endif
