/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal of a live view: a screen beside the one with the history, keys
 * without an echo, and signals as something to read. Not on a terminal there
 * are the signals only. One thread; close it whatever happens.
 */
#ifndef LOADER_TOOLS_TOP_TERMINAL_H
#define LOADER_TOOLS_TOP_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

struct terminal {
	bool is_screen; /* standard output is a terminal */
	bool has_keys;	/* standard input, too */
	bool is_ours;
	struct termios before;
	int signals; /* to poll; terminal_event() reads it */
};

enum terminal_event {
	TERMINAL_NONE,
	TERMINAL_END,	 /* somebody wants us to */
	TERMINAL_CHANGED /* draw again: another size, or back from a stop */
};

/* 0 or -errno. */
int terminal_open(struct terminal *t);
/* All is as it was. */
void terminal_close(struct terminal *t);

/* SIGTSTP gives the terminal back, and stops the process, in this call. */
enum terminal_event terminal_event(struct terminal *t);

void terminal_size(unsigned *width, unsigned *height);

/* Lines, from the top of the screen; or as they are, where there is none.
   -EIO: nobody can see them any more. */
int terminal_show(struct terminal *t, const char *text);

#endif
