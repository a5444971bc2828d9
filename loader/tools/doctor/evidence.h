/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the doctor knows: all that was found and measured before anything is
 * said about it. Filled by look.c, trials.c, estimate.c and watch.c; verdicts,
 * fixes and reports only look at it, so that tests can make it up.
 */
#ifndef LOADER_TOOLS_DOCTOR_EVIDENCE_H
#define LOADER_TOOLS_DOCTOR_EVIDENCE_H

#include "loader/tools/doctor/model.h"
#include "loader/tools/doctor/run.h"
#include "loader/tools/machine/cpu.h"
#include "loader/tools/machine/disk.h"
#include "loader/tools/machine/gpu.h"
#include "loader/tools/machine/memory.h"

enum {
	DOCTOR_OPS_MAX = 32,
	DOCTOR_SWEEP_MAX = 12,
	DOCTOR_RANKS_MAX = 64,
	DOCTOR_NOTES_MAX = 24,
	DOCTOR_NOTE_SIZE = 256,
};

/* The ladder, from the top. */
enum rung {
	RUNG_CONSTANT, /* one ready batch for ever */
	RUNG_ALL,
	RUNG_TRANSFORM, /* no upload */
	RUNG_DECODE,	/* no transforms */
	RUNG_READ,	/* no decoding; in memory */
	RUNG_COLD,	/* read from the device */
	RUNGS,
};

/* A rate, the median of some runs, and what it costs. */
struct figure {
	bool known;
	double rate;   /* samples a second */
	double spread; /* between the runs, of the rate */
	double cpu_us; /* a sample, in the run that was disturbed least */
	unsigned runs;
	double bytes; /* a sample */
};

struct left_out {
	char *written; /* the operation; owned */
	bool possible; /* something was left that runs */
	struct figure without;
};

struct sweep_point {
	unsigned workers;
	struct figure figure;
};

/* Ways to have the same dataset or pipeline otherwise, that were run. */
enum variant {
	VARIANT_SAME, /* some samples of it, what the others are compared to */
	VARIANT_OPTIMIZED,
	VARIANT_RAW,
	VARIANT_RESIZED,
	VARIANT_QUALITY,
	VARIANT_DRAFT,	/* the pipeline with decode(draft) */
	VARIANT_CACHED, /* with cache(decoded), all of it there */
	VARIANT_GPU,	/* with cuda() before normalize */
	VARIANTS,
};

/* The trainer, seen from outside. */
struct watch {
	bool known;
	double seconds;
	double main_busy;  /* share of the time that its main thread worked, or
			      would have if it had got a CPU */
	double main_cores; /* that it took */
	double loader_cores; /* of the loader's threads */
	double other_cores;  /* of all its other threads and processes */
	double rate;	     /* samples a second that it took; 0: not known */
	bool rate_is_guess;  /* by the CPU time of its loader */
	double own_rate; /* what it took of constant batches; 0: not known */
	double main_busy_alone; /* meanwhile */
	int gpu_busy;		/* percent in the mean; -1: not known */
	bool ended;		/* by itself, while it was watched */
	int status;		/* if so, as of waitpid() */
	char said[256];		/* the last line of what it wrote */
};

struct rank_seen {
	unsigned rank;
	double rate;  /* batches a second */
	double ready; /* share of its batches that it did not wait for */
};

struct evidence {
	/* what was asked */
	const char *path;
	const char *pipeline; /* "": none */
	char spec[256];
	char source[16]; /* "file", "mount" */
	char delivery[16];
	char jit[16];
	char order[32];
	double target;	/* samples a second that are wanted; 0: not told */
	double seconds; /* that all took */
	/* what there is */
	char backing[512]; /* the file */
	uint64_t file_size;
	uint64_t pinned;      /* bytes that batches for a GPU take */
	double images;	      /* share of samples that were looked at */
	double jpegs;	      /* of these */
	double width, height; /* of an image, in the mean */
	double resize_to;     /* the largest size that the pipeline makes */
	uint64_t cache_size;  /* of a cache of our own, 0: the kernel's */
	struct machine_cpu cpu;
	struct machine_memory memory;
	double memory_rate;
	struct machine_disk disk;
	struct disk_rate small, large; /* reads of a sample, and large ones */
	double large_piece;
	struct machine_gpu gpus[MACHINE_GPUS_MAX];
	size_t num_gpus;
	bool on_gpu; /* the pipeline has outputs there */
	/* what was measured */
	struct figure ladder[RUNGS];
	struct left_out ops[DOCTOR_OPS_MAX];
	size_t num_ops;
	struct sweep_point sweep[DOCTOR_SWEEP_MAX];
	size_t num_sweep;
	struct figure variants[VARIANTS];
	double cached_bytes;		  /* of a sample, by cache(decoded) */
	unsigned resized_to;		  /* of VARIANT_RESIZED */
	double others, stolen, throttled; /* while the whole pipeline ran */
	double others_idle;		  /* while nothing did */
	struct figure upload; /* of batches that are made, over and over */
	struct watch watch;
	struct rank_seen ranks[DOCTOR_RANKS_MAX];
	size_t num_ranks;
	struct model model;
	/* What is worth knowing, whatever the verdict; and what could not be
	   measured. */
	char notes[DOCTOR_NOTES_MAX][DOCTOR_NOTE_SIZE];
	size_t num_notes;
};

/* Adds to the notes; more than there is room for are dropped. */
void doctor_note(struct evidence *e, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
