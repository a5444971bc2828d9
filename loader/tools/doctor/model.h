/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What limits a pipeline, as arithmetic: every resource has a rate of samples
 * that it can carry, and the least of them is the pipeline's.
 * beton-doctor(1) explains each. All else of the doctor measures the numbers,
 * or changes one of them to see what a fix would bring. Pure functions.
 */
#ifndef LOADER_TOOLS_DOCTOR_MODEL_H
#define LOADER_TOOLS_DOCTOR_MODEL_H

#include <stdbool.h>
#include <stddef.h>

enum term {
	TERM_DISK,
	TERM_DELIVERY, /* of batches that are in memory */
	TERM_CPU,
	TERM_WORKERS, /* too few to use the processors */
	TERM_MEMORY,
	TERM_UPLOAD,
	TERM_TRAINER,
	TERMS,
};

/* Times are microseconds of CPU time a sample, rates a second. */
struct model {
	double samples;	      /* of the dataset */
	double disk_bytes;    /* of a sample in the file */
	double room;	      /* bytes of payload that memory keeps */
	double disk_rate;     /* bytes, read as the order reads; 0: not known */
	bool first_epoch;     /* nothing is in memory yet, for a long time */
	double batch_bytes;   /* of a sample in a batch file */
	double delivery_rate; /* of those bytes; 0: not known, as below */
	double read_us, decode_us, transform_us;
	double cores;  /* that the process may use */
	double others; /* of these, taken by other processes */
	double own;    /* of these, taken by the trainer itself */
	double workers;
	double moved_bytes; /* of a sample through memory, at least */
	double memory_rate;
	double upload_bytes;
	double upload_rate;
	double trainer_rate; /* samples */
};

/* Whether others take so much of the processors that what was measured is
   rather about them than about what was changed. */
bool model_is_noisy(const struct model *m);

/* Samples a second; INFINITY: it does not limit. */
double model_term(const struct model *m, enum term term);

/* The least of all, and whose that is; `which` may be NULL. */
double model_rate(const struct model *m, enum term *which);

/* The same without what the trainer can take. */
double model_data_rate(const struct model *m);

/* The share of reads that have to go to the disk, 0 to 1. */
double model_misses(const struct model *m);

double model_cpu_us(const struct model *m);

/* Cores that are left for the loader. */
double model_cores(const struct model *m);

#endif
