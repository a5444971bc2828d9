/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of a pipeline as arithmetic. Each resource can carry a rate of
 * samples, and the lowest of these rates is the pipeline's. beton-doctor(1)
 * explains each resource. The trials measure the numbers; a fix changes some of
 * them to predict its gain. Pure functions.
 */
#ifndef LOADER_TOOLS_DOCTOR_MODEL_H
#define LOADER_TOOLS_DOCTOR_MODEL_H

#include <stdbool.h>
#include <stddef.h>

enum term {
	TERM_DISK,
	TERM_DELIVERY, /* copying batches that are in memory */
	TERM_CPU,
	TERM_WORKERS, /* too few threads for the CPUs */
	TERM_MEMORY,
	TERM_UPLOAD,
	TERM_TRAINER,
	TERMS,
};

/* Times are microseconds of CPU time per sample; rates are per second. */
struct model {
	double samples;	    /* in the dataset */
	double disk_bytes;  /* size of a sample in the file */
	double room;	    /* bytes of samples that memory can cache */
	double disk_rate;   /* bytes, in the order of the epoch; 0: not known */
	bool first_epoch;   /* memory is cold, and stays so for long */
	double batch_bytes; /* size of a sample in a batch file */
	double delivery_rate; /* of batch bytes; for all rates, 0 means unknown
			       */
	double read_us, decode_us, transform_us;
	double cores;  /* that the process may use */
	double others; /* of `cores`, used by other processes */
	double own;    /* of `cores`, used by the trainer itself */
	double workers;
	double moved_bytes; /* that a sample moves through memory, at least */
	double memory_rate;
	double upload_bytes;
	double upload_rate;
	double trainer_rate; /* samples per second */
};

/* Returns whether other processes use so much CPU time that it may explain a
   difference between two runs. */
bool model_is_noisy(const struct model *m);

/* Returns the samples per second that a resource permits. INFINITY: it is no
   limit. */
double model_term(const struct model *m, enum term term);

/* Returns the lowest rate of all terms, and its term in *which, which may be
   NULL. */
double model_rate(const struct model *m, enum term *which);

/* Returns the lowest rate of all terms except TERM_TRAINER. */
double model_data_rate(const struct model *m);

/* Returns the share of reads that miss in memory and go to the disk, 0 to 1. */
double model_misses(const struct model *m);

double model_cpu_us(const struct model *m);

/* Returns the cores that remain for the loader. */
double model_cores(const struct model *m);

#endif
