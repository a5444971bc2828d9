/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that end a program which has something to remove first. */
#ifndef LOADER_TOOLS_UI_SIGNALS_H
#define LOADER_TOOLS_UI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Blocks SIGINT, SIGTERM and SIGHUP, so that the program can poll for them, and
   sets *set to them. Leaves out ignored signals: after nohup, SIGHUP must stay
   ignored. */
void signals_block(sigset_t *set);

/* Returns a blocked signal that has come, or 0. Does not wait. */
int signals_poll(const sigset_t *set);

/* Ends the program by a signal that has come, as if it had not been blocked. */
void signals_end(const sigset_t *set, int signal);

/* The signals of a command that has something to remove only sometimes. */
struct signals_watch {
	bool is_on;
	sigset_t set;
	int signal; /* that has come; 0: none */
};

/* Blocks the signals if `is_on`. */
void signals_watch(struct signals_watch *w, bool is_on);

/* Returns -EINTR if a signal has come, and 0 otherwise. */
int signals_check(void *watch);

/* Ends the program if a signal has come. */
void signals_pass(const struct signals_watch *w);

#endif
