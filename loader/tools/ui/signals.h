/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that end a program which has something to remove first. */
#ifndef LOADER_TOOLS_UI_SIGNALS_H
#define LOADER_TOOLS_UI_SIGNALS_H

#include <signal.h>

/* Blocks SIGINT, SIGTERM and SIGHUP, so that the program can poll for them, and
   sets *set to them. Leaves out ignored signals: after nohup, SIGHUP must stay
   ignored. */
void signals_block(sigset_t *set);

#endif
