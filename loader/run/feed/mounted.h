/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dataset's directory in a mount, whose daemon may end and be mounted again,
 * maybe with another dataset. Reads files there, checks that the dataset is the
 * one that the loader opened, and waits for a mount that is gone.
 *
 * One thread calls these functions; any thread may cancel, which ends every
 * wait.
 */
#ifndef LOADER_RUN_FEED_MOUNTED_H
#define LOADER_RUN_FEED_MOUNTED_H

#include <limits.h>

#include "loader/run/feed/feed.h"

struct mounted;

/* `feed` has its path and its log, and its description before mounted_check().
 */
int mounted_open(const struct feed *feed, struct mounted **out);
/* Takes NULL. */
void mounted_close(struct mounted *mounted);
void mounted_cancel(struct mounted *mounted);

/* Whether the path is a directory that describes a dataset. While the feed is
   opened, -ECANCELED also ends this call and the reads below, if the caller
   interrupts it. */
int mounted_is_there(struct mounted *mounted, bool *out);
/* Ends the helper process of the reads until the next one. */
void mounted_rest(struct mounted *mounted);

/* Reads a file in the directory. Failures are not logged. -ECANCELED */
int mounted_read(struct mounted *mounted, const char *name, struct buffer *into,
		 uint64_t *size);
/* Reads a regular file of a moderate size, and adds a 0. The caller frees *out.
 */
int mounted_read_text(struct mounted *mounted, const char *name, char **out,
		      uint64_t *size);
/* Reads the text of a symbolic link, up to `size` bytes with a 0. */
int mounted_read_link(struct mounted *mounted, const char *name, char *out,
		      size_t size);
/* The first name in a directory that begins with no dot. -ENOENT */
int mounted_first_name(struct mounted *mounted, const char *directory,
		       char out[NAME_MAX + 1]);

/* Whether this error of a read can mean that there is no mount now. */
bool mounted_is_gone(int error);
/* Checks that the directory contains the dataset that was opened. -ESTALE:
   another one, which is logged once. Errors of mounted_is_gone() are not
   logged, all others are. */
int mounted_check(struct mounted *mounted);
/*
 * After a read failed: checks the directory, and waits for a limited time until
 * there is a mount. The limit is a tenth of the time since mounted_open(), from
 * two seconds to a minute: a program that has just begun fails soon, and a long
 * training waits. After a wait in vain, later calls do not wait until there was
 * a mount again. The wait is logged. Fails as mounted_check() does.
 */
int mounted_wait(struct mounted *mounted);

#endif
