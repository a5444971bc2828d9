/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open loader: what beton_loader_open() sets up, beton_loader_close() frees,
 * and the calls of <beton/loader.h> use. For loader.c and open.c alone.
 */
#ifndef LOADER_OPEN_H
#define LOADER_OPEN_H

#include "beton/loader.h"
#include "fs/util/log.h"
#include "loader/feed/fake_text.h"
#include "loader/feed/feed.h"
#include "loader/pipeline/phases.h"
#include "loader/run/beacon.h"
#include "loader/run/hook.h"
#include "loader/run/replay.h"
#include "loader/run/ring.h"

enum { LOADER_ERROR_SIZE = 1024 };

struct beton_loader {
	struct log log;
	struct trace *trace; /* NULL: none */
	beton_log_fn *user_log;
	void *user_log_arg;
	struct feed *feed;
	struct phases *phases;
	struct phases *whole;  /* the same with nothing left to a GPU that has
				  the choice; NULL: there is none */
	struct device *device; /* NULL: no output is a GPU's */
	struct fake fake;      /* what is not real */
	struct replay *replay; /* NULL: no batch is given again */
	struct hook *hook;     /* NULL: there is none */
	struct ring *ring;
	uint32_t workers;
	enum balance_mode balance;
	struct beacon_place beacon;
	char error[LOADER_ERROR_SIZE]; /* of the thread that calls next() */
	char last_logged[LOADER_ERROR_SIZE]; /* guarded by log.lock */
};

#endif
