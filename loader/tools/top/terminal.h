/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal of a live view: the alternate screen, keys without echo, and
 * signals as a file descriptor. Without a terminal there are only the signals.
 * One thread. Always close it.
 */
#ifndef LOADER_TOOLS_TOP_TERMINAL_H
#define LOADER_TOOLS_TOP_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#include "fs/base/util/log.h"

struct terminal {
	bool is_screen; /* standard output is a terminal */
	bool has_keys;	/* standard input is a terminal, too */
	bool is_ours;
	struct termios before;
	int signals; /* a descriptor to poll; terminal_event() reads it */
};

enum terminal_event {
	TERMINAL_NONE,
	TERMINAL_END,	 /* a signal asks the process to end */
	TERMINAL_CHANGED /* draw again: a new size, or SIGCONT */
};

/* Takes over the terminal and blocks the signals. 0 or -errno. */
int terminal_open(struct terminal *t);
/* Restores the terminal. */
void terminal_close(struct terminal *t);

/* Reads the next signal. On SIGTSTP restores the terminal and stops the process
   within this call. */
enum terminal_event terminal_event(struct terminal *t);

void terminal_size(unsigned *width, unsigned *height);

/* Prints lines from the top of the screen or, without a terminal, as they are.
   As output_flush(). */
int terminal_show(struct terminal *t, const char *text, struct log *log);

#endif
