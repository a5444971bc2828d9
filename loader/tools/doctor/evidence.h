/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All facts and measurements of a diagnosis. look.c, trials.c, estimate.c and
 * watch.c fill it. Verdicts, fixes and reports only read it, so that tests can
 * supply any values.
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

/* Rungs of the ladder from the top. From RUNG_ALL on each leaves out more. */
enum rung {
	RUNG_CONSTANT, /* the same finished batch over and over */
	RUNG_ALL,
	RUNG_TRANSFORM, /* no upload */
	RUNG_DECODE,	/* no transforms */
	RUNG_READ,	/* no decoding; data in memory */
	RUNG_COLD,	/* read from the device */
	RUNGS,
};

/* The median rate of several runs, and its cost. */
struct figure {
	bool known;
	double rate;   /* samples per second */
	double spread; /* of the rate, between the runs */
	double cpu_us; /* per sample, in the run that was disturbed least */
	unsigned runs;
	double bytes; /* per sample */
};

struct left_out {
	char *written; /* the text of the operation; owned */
	bool possible; /* the pipeline runs without it */
	struct figure without;
};

struct sweep_point {
	unsigned workers;
	struct figure figure;
};

/* Other forms of the dataset or the pipeline that the doctor ran. */
enum variant {
	VARIANT_SAME, /* a few samples as they are; the base of comparisons */
	VARIANT_OPTIMIZED,
	VARIANT_RAW,
	VARIANT_RESIZED,
	VARIANT_QUALITY,
	VARIANT_DRAFT,	/* the pipeline with decode(draft) */
	VARIANT_CACHED, /* with cache(decoded), when it holds every image */
	VARIANT_GPU,	/* with cuda() before normalize */
	VARIANTS,
};

/* The trainer, observed from outside. */
struct watch {
	bool known;
	double seconds;
	double main_busy;  /* share of the time in which its main thread ran or
			      waited for a CPU */
	double main_cores; /* used by the main thread */
	double loader_cores; /* used by the threads of its loader */
	double other_cores;  /* used by its other threads and processes */
	double rate; /* samples per second that it consumed; 0: not known */
	bool rate_is_guess; /* estimated from the CPU time of its loader */
	double own_rate;    /* with constant batches, samples per second; 0: not
			       known */
	double main_busy_alone; /* main_busy with constant batches */
	int gpu_busy;		/* mean percentage; -1: not known */
	bool ended;	/* it ended by itself while the doctor watched */
	int status;	/* how it ended, as waitpid() returns it */
	char said[256]; /* the last line that it printed */
};

struct rank_seen {
	unsigned rank;
	double rate;  /* batches per second */
	double ready; /* share of its batches that were ready when it requested
			 them */
	/* Shares of the time in which it waited for makers on other machines,
	   and for their batches to arrive. */
	double makers, network;
};

/* The network of a dataset behind a URL, while a loader read new samples. */
struct network_seen {
	bool is_remote; /* the dataset is behind a URL */
	bool is_copied; /* the stages run on samples in memory */
	bool known;
	bool is_out;	  /* the server did not answer at the end */
	double rate;	  /* bytes per second */
	double latency_s; /* lowest time to the first byte */
	double p50_s, p99_s;
	double in_flight, depth, waiting; /* requests, in the mean */
	double request_bytes;		  /* of a request, in the mean */
	double requests, retries, throttled;
	double tier_size, tier_stored; /* bytes; 0: there is no disk tier */
};

/* Whether the time to the first byte limits the rate: the requests in flight
   are answered at once, so that more of them would bring more bytes. */
bool network_is_late(const struct network_seen *n);
/* Whether the server asks for fewer requests. */
bool network_is_throttled(const struct network_seen *n);

struct evidence {
	/* The request: */
	const char *path;
	const char *pipeline; /* "": none */
	char spec[256];
	char source[16]; /* "file", "mount" */
	char delivery[16];
	char jit[16];
	char order[32];
	double target;	/* wanted samples per second; 0: not given */
	double seconds; /* that the diagnosis took */
	/* The machine and the dataset: */
	char backing[512]; /* the path of the file */
	uint64_t file_size;
	uint64_t pinned;      /* bytes of pinned memory for batches of a GPU */
	double images;	      /* share of the inspected samples that have one */
	double jpegs;	      /* share of the inspected images */
	double width, height; /* means, in pixels */
	double resize_to;     /* the longest side that the pipeline produces */
	uint64_t cache_size;  /* of the process's cache; 0: the kernel caches */
	struct machine_cpu cpu;
	struct machine_memory memory;
	double memory_rate;
	struct machine_disk disk;
	struct disk_rate small, large; /* reads of one sample, and large ones */
	double large_piece;
	struct network_seen network;
	struct machine_gpu gpus[MACHINE_GPUS_MAX];
	size_t num_gpus;
	bool on_gpu; /* an output of the pipeline is on a GPU */
	/* The measurements: */
	struct figure ladder[RUNGS];
	struct left_out ops[DOCTOR_OPS_MAX];
	size_t num_ops;
	struct sweep_point sweep[DOCTOR_SWEEP_MAX];
	size_t num_sweep;
	struct figure variants[VARIANTS];
	double cached_bytes; /* that cache(decoded) takes per sample */
	unsigned resized_to; /* longest side of VARIANT_RESIZED, in pixels */
	double others, stolen, throttled; /* while the complete pipeline ran */
	double others_idle;		  /* while the doctor was idle */
	struct figure upload; /* of the same finished batches over and over */
	struct watch watch;
	struct rank_seen ranks[DOCTOR_RANKS_MAX];
	size_t num_ranks;
	struct model model;
	/* Remarks that hold for any verdict, and measurements that failed. */
	char notes[DOCTOR_NOTES_MAX][DOCTOR_NOTE_SIZE];
	size_t num_notes;
};

/* Appends a note. Drops it if DOCTOR_NOTES_MAX notes exist. */
void doctor_note(struct evidence *e, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
