/* SPDX-License-Identifier: Apache-2.0 */
/* Options of commands that open a loader: how batches are delivered to it. */
#ifndef LOADER_TOOLS_BETON_DELIVERY_H
#define LOADER_TOOLS_BETON_DELIVERY_H

#include "beton/loader.h"

struct reading {
	unsigned delivery;
	unsigned cache;
	uint64_t cache_size;
	uint64_t cold_size;
};

/* Rows of an option table; AT(reading.MEMBER) is the offset of a member. */
/* clang-format off */
#define READING_ROWS \
	{ "delivery", .kind = OPTION_CHOICE, AT(reading.delivery), \
	  .argument = "auto|handover|direct", \
	  .help = "how the batches of a MOUNT come (default: the fastest)" }, \
	{ "cache", .kind = OPTION_CHOICE, AT(reading.cache), \
	  .argument = "auto|os|process", \
	  .help = "of a FILE: the kernel's page cache, or our own\n" \
		  "(default: by the sizes of file and memory)" }, \
	{ "cache-size", .kind = OPTION_SIZE, AT(reading.cache_size), \
	  .min = 16 << 20, .max = UINT64_MAX - 1, .argument = "SIZE", \
	  .help = "of our own cache (default: half of what there is)" }, \
	{ "cold-size", .kind = OPTION_SIZE, AT(reading.cold_size), \
	  .max = UINT64_MAX - 1, .argument = "SIZE", \
	  .help = "beside it, for evicted pages, compressed" }
/* clang-format on */

struct log;

/*
 * Sets the loader's delivery as these options say, and sends its warnings to
 * the log.
 */
void reading_apply(const struct reading *reading, struct log *log,
		   struct beton_loader_options *out);

#endif
