/* SPDX-License-Identifier: Apache-2.0 */
/* Options of commands that open a loader: the delivery of batches. */
#ifndef LOADER_TOOLS_BETON_DELIVERY_H
#define LOADER_TOOLS_BETON_DELIVERY_H

#include "beton/loader.h"

struct reading {
	unsigned delivery;
	unsigned cache;
	uint64_t cache_size;
	uint64_t cold_size;
	bool verify;
};

/* Rows of an option table; AT(reading.MEMBER) is the offset of a member. */
/* clang-format off */
#define READING_ROWS \
	{ "delivery", .kind = OPTION_CHOICE, AT(reading.delivery), \
	  .argument = "auto|zero-copy|direct", \
	  .help = "Receive batches of a MOUNT in shared memory (zero-copy) " \
		  "or by reading files (direct) (default: auto, zero-copy " \
		  "if possible)" }, \
	{ "cache", .kind = OPTION_CHOICE, AT(reading.cache), \
	  .argument = "auto|os|process", \
	  .help = "Cache a FILE in the kernel (os) or in this process " \
		  "(default: auto, by the sizes of file and memory)" }, \
	{ "cache-size", .kind = OPTION_SIZE, AT(reading.cache_size), \
	  .min = 16 << 20, .max = UINT64_MAX - 1, .argument = "SIZE", \
	  .help = "Limit the cache of this process to SIZE (default: half " \
		  "of the available memory)" }, \
	{ "cold-size", .kind = OPTION_SIZE, AT(reading.cold_size), \
	  .max = UINT64_MAX - 1, .argument = "SIZE", \
	  .help = "Limit the compressed tier of that cache to SIZE " \
		  "(default: used where it pays)" }, \
	{ "verify", .kind = OPTION_FLAG, AT(reading.verify), \
	  .help = "Compare what is read from a FILE with the checksums in " \
		  "FILE.sums" }

/* Rows of the same name in all of these commands. */
#define SPEC_ROWS \
	{ "spec", .kind = OPTION_TEXT, AT(spec), .argument = "SPEC", \
	  .help = "Set the sampling spec, beton-orders(7) (default: " \
		  "order=random)" }, \
	{ "subset", .kind = OPTION_TEXT, AT(subset), \
	  .argument = "NAME:FILE", \
	  .help = "Define the subset NAME of SPEC by a FILE of sample ids" }, \
	{ "pipeline", .kind = OPTION_TEXT, AT(pipeline), \
	  .argument = "TEXT", \
	  .help = "Transform the fields by a pipeline, " \
		  "beton-transforms(7) (default: deliver them as stored)" }
/* Loaders of other tools call the threads workers, so that name works, too. */
#define JOBS_ROW \
	{ "jobs", 'j', OPTION_NUMBER, AT(jobs), .min = 1, .max = 4096, \
	  .argument = "N", \
	  .help = "Use N threads (default: one per usable CPU)" }, \
	{ "workers", .kind = OPTION_NUMBER, AT(jobs), .min = 1, .max = 4096, \
	  .argument = "N" }
#define PREFETCH_ROW \
	{ "prefetch", .kind = OPTION_NUMBER, AT(prefetch), .min = 1, \
	  .max = 4096, .argument = "N", \
	  .help = "Prefetch N batches (default: 2, or less of large " \
		  "ones)" }
/* clang-format on */

struct log;

/* Sets the loader's delivery by these options, and sends its warnings to the
   log. */
void reading_apply(const struct reading *reading, struct log *log,
		   struct beton_loader_options *out);

#endif
