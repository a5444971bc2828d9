/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct beton_loader, an open loader. beton_loader_open() fills it, the calls
 * of <beton/loader.h> use it, and beton_loader_close() frees it. Only loader.c
 * and open.c include this header.
 *
 * beton_loader_stop() starts a thread that waits for running reads, and waits
 * half a second for that thread. If the disk does not answer, the thread
 * outlives beton_loader_close() and frees the loader later.
 */
#ifndef LOADER_OPEN_H
#define LOADER_OPEN_H

#include <pthread.h>
#include <stdatomic.h>

#include "beton/loader.h"
#include "fs/base/util/log.h"
#include "loader/image/jpeg/entry_store.h"
#include "loader/options.h"
#include "loader/run/feed/feed.h"
#include "loader/run/feed/synthetic_text.h"
#include "loader/run/link/wire.h"
#include "loader/run/loop/callback.h"
#include "loader/run/loop/replay.h"
#include "loader/run/loop/telemetry.h"
#include "loader/run/ring/ring.h"
#include "loader/run/transform/phases.h"
#include "loader/util/cancel.h"

struct beton_loader {
	struct log log;
	struct trace *trace; /* NULL: no trace */
	beton_log_fn *user_log;
	void *user_log_arg;
	struct cancel interrupted; /* the interrupt callback, during opening */
	struct feed *feed;
	struct phases *phases;
	struct phases *whole;	     /* the pipelines for batches that the CPU
				       finishes, with cuda(N, auto); else NULL */
	struct entry_store *entries; /* of JPEGs; NULL: none are kept */
	struct device *device;	     /* NULL: no output is on a GPU */
	struct synthetic synthetic;  /* the synthetic data, or NULL */
	struct replay *replay;	     /* NULL: no batch is replayed */
	struct callback *callback;   /* NULL: no callback */
	struct ring *ring;
	pthread_t stopper; /* of beton_loader_stop() */
	bool on_demand;	   /* batches have names only */
	enum beton_role role;
	struct wire_hello hello; /* to the other side of a link */
	bool is_stopped;	 /* beton_loader_stop() was called */
	bool has_stopper;	 /* its thread is not joined yet */
	atomic_uint owners;	 /* reference count: user and stopping thread */
	uint32_t workers;
	enum offload_mode balance;
	struct telemetry_slot telemetry;
	char error[LOADER_ERROR_SIZE];	     /* of the user's thread */
	char last_logged[LOADER_ERROR_SIZE]; /* guarded by log.lock */
};

#endif
