/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dataset's directory in a mount, whose daemon may end and be mounted again,
 * maybe with another dataset. Reads files there, checks that the dataset is the
 * one that the loader opened, and waits for a mount that is gone.
 *
 * One thread calls these functions; any thread may cancel, which ends every
 * wait.
 */
#ifndef LOADER_FEED_MOUNTED_H
#define LOADER_FEED_MOUNTED_H

#include "loader/feed/feed.h"

struct mounted;

/* `feed` has its path, its log and its description. */
int mounted_open(const struct feed *feed, struct mounted **out);
/* Takes NULL. */
void mounted_close(struct mounted *mounted);
void mounted_cancel(struct mounted *mounted);

/* Reads a file in the directory. Failures are not logged. -ECANCELED */
int mounted_read(struct mounted *mounted, const char *name, struct buffer *into,
		 uint64_t *size);
/* Reads a text of a moderate size. The caller frees *out. */
int mounted_read_text(struct mounted *mounted, const char *name, char **out);

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
