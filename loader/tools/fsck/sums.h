/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checksums of the file: compares its blocks with those of the side file while
 * they are read from front to back, or computes those of a new side file. One
 * thread.
 */
#ifndef LOADER_TOOLS_FSCK_SUMS_H
#define LOADER_TOOLS_FSCK_SUMS_H

#include "loader/tools/fsck/target.h"

struct scan;
struct sums_check;

enum sums_use {
	SUMS_VERIFY, /* if there is a side file */
	SUMS_MAKE,   /* the same, and make one if there is none */
	SUMS_RENEW,  /* ignore the side file, and make another one */
};

/*
 * *out is NULL if there is nothing to do. A damaged side file, or one of
 * another size, is a finding. -errno, logged.
 */
int sums_check_open(struct target *t, enum sums_use use,
		    struct sums_check **out);
void sums_check_close(struct sums_check *s);

/* The next bytes of the file, from its first on, in pieces of any size. */
int sums_check_bytes(struct sums_check *s, const uint8_t *bytes, size_t size);

/* Reads the whole file, if nothing else of it can be checked. */
int sums_check_file(struct sums_check *s);

/* Reports the bad blocks and the values in them. scan_first() was called; NULL:
   the values cannot be found. */
int sums_check_report(struct sums_check *s, struct scan *scan);

/* Writes the side file if one is to be made. *written: it was. */
int sums_check_save(struct sums_check *s, bool *written);

#endif
