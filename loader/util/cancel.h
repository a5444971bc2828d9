/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancels waits: another thread writes to a descriptor, or the waiting thread
 * calls a function of its caller.
 */
#ifndef LOADER_UTIL_CANCEL_H
#define LOADER_UTIL_CANCEL_H

#include <stdbool.h>
#include <stdint.h>

struct pollfd;

struct cancel {
	int fd;			  /* readable: canceled; -1: none */
	bool (*asked)(void *arg); /* true: canceled; NULL: none */
	void *arg;
	int64_t next_ms; /* no call of `asked` before; begin with 0 */
};

/* Calls the caller's function, unless the last call is less than 50 ms ago.
   NULL is never canceled. */
bool cancel_is_asked(struct cancel *c);

/*
 * Waits up to `ms` milliseconds, or until `also` has events. Either pointer may
 * be NULL. Call it 20 times a second. Returns -ECANCELED, or an error of
 * poll(2).
 */
int cancel_poll(struct cancel *c, struct pollfd *also, int ms);

#endif
