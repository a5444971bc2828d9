/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of Python that reads sources and images with Python's libraries:
 * betonfs.convert of the Python package. Requests are JSON, and may come with a
 * file in memory. An answer is JSON, too, with a sealed file in memory.
 *
 *	{"open": true, "verbose": true or false, "pictures": EXTENSIONS,
 *	 "split": NAME or null, "mode": NAME, "quality": Q,
 *	 "max_resolution": N}
 *	    -> a description of the source of the process's arguments
 *	{"cast": FIELD, "type": TYPE}
 *	    -> the description of a new field
 *	{"lanes": N}
 *	    -> {"lanes": M}, no file, and M descriptors
 *	{"columns": [FIELD...], "first": ROW, "rows": N, "ids": [ROW...] or null}
 *	    -> a block of these rows (block.h)
 *	{"picture": true} and the file of an image
 *	    -> a block of one row, which has its pixels
 *	all of them
 *	    -> {"error": TEXT}, no file
 *
 * A lane is a connection to a process that answers these requests. There is one
 * at first. Others serve the same source, so that several read at a time.
 */
#ifndef LOADER_TOOLS_PYTHON_SERVER_H
#define LOADER_TOOLS_PYTHON_SERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "fs/base/util/log.h"

enum {
	SERVER_LANES_MAX = 64,
	SERVER_WHY_SIZE = 4096,
};

struct server {
	pid_t pid; /* 0: it has ended, or did not start */
	int lanes[SERVER_LANES_MAX];
	unsigned num_lanes;
};

/* Starts Python with these arguments, NULL at their end. `need` is what needs
   it, for messages. Failures are logged, or printed by the process. */
int server_start(struct server *s, const char *need, const char *const *args,
		 struct log *log);

/* Closes the lanes, and ends the process. A zeroed struct has none. */
void server_end(struct server *s);

/*
 * The functions below return -errno and the reason in `why`: -EBADMSG if it is
 * the answer's error, and -EPIPE if the process ended. `why` is empty if the
 * process has printed the reason.
 */

/* Asks for further lanes, so that there are at most `wanted`. */
int server_add_lanes(struct server *s, unsigned wanted,
		     char why[SERVER_WHY_SIZE]);

/* Sends a request, with a descriptor unless `fd` is -1. */
int server_ask(struct server *s, unsigned lane, const json_t *request, int fd,
	       char why[SERVER_WHY_SIZE]);

/* Waits for the answer of a request, and sets *fd to its file, which the caller
   closes. */
int server_answer(struct server *s, unsigned lane, int *fd,
		  char why[SERVER_WHY_SIZE]);

/* Parses the file of an answer that is JSON. */
int server_parse(int fd, json_t **out, char why[SERVER_WHY_SIZE]);

#endif
