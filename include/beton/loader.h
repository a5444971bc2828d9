/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader: batches of ready tensors from a dataset FILE or from a MOUNT of
 * betonfs, with the same bytes either way. The conventions of <beton/beton.h>
 * hold. A whole training loop:
 *
 *	struct beton_loader_options o = { .size = sizeof(o),
 *		.spec = "order=random,batch=256",
 *		.pipeline = "random_resized_crop(224) | flip | "
 *			    "normalize(imagenet) | float | chw" };
 *	struct beton_loader *loader;
 *	const struct beton_batch *batch;
 *	int r = beton_loader_open("train.beton", &o, &loader);
 *
 *	while (!r) {
 *		while (!(r = beton_loader_next(loader, &batch))) {
 *			train(batch);
 *			beton_loader_release(loader, batch);
 *		}
 *		r = r == -ENODATA ? 0 : r;	(the end of an epoch)
 *	}
 *	beton_loader_close(loader);
 *
 * Numbers of a pipeline may change with the epoch, as the size of the images in
 * "random_resized_crop(\"0=160,10=192,14=224\") | ...": early epochs are cheap,
 * and the loader goes from one to the next by itself. Each batch tells its own
 * shapes.
 *
 * Threads: beton_loader_next(), _wait(), _stop(), _state(), _load() and _seek()
 * belong to one thread at a time; beton_loader_release() and _stats() may be
 * called from any thread, at any time before close, and so may
 * beton_loader_hook(), whose function is called by the loader's threads.
 */
#ifndef BETON_LOADER_H
#define BETON_LOADER_H

#include <stdbool.h>

#include "beton/beton.h"

#ifdef __cplusplus
extern "C" {
#endif

struct beton_loader;

/* What becomes of a batch with samples that cannot be read or decoded. */
enum beton_on_error {
	BETON_ON_ERROR_RAISE = 0, /* beton_loader_next() fails with -EIO */
	BETON_ON_ERROR_SKIP,	  /* the row is zero and valid[row] is 0 */
	BETON_ON_ERROR_ZERO,	  /* the row is zero and valid[row] is 1 */
};

/* The stage after which a batch counts as done; what follows is left out. */
enum beton_stage {
	BETON_STAGE_ALL = 0,
	BETON_STAGE_READ,   /* every byte of the batch delivered, summed once */
	BETON_STAGE_DECODE, /* images decoded as the crop needs them */
	BETON_STAGE_TRANSFORM, /* tensors complete */
};

/* Zero-initialise, then set size and what differs: 0 is every default. */
struct beton_loader_options {
	size_t size;	      /* sizeof(struct beton_loader_options) */
	const char *spec;     /* beton-orders(7); NULL: all defaults */
	const char *subset;   /* "NAME:FILE", a list of sample ids, perhaps with
				 weights, that the spec may name; NULL: none. A
				 mount that has the subset needs no file. */
	const char *pipeline; /* beton-transforms(7); NULL: plain tensors */
	/* NULL: by what the path is. For measuring, beton-transforms(7):
	   "constant", the first batch is given again and again; "memory" and
	   "memory(SIZE)", the first ones; "fake(...)", there is no dataset.
	   $BETON_FAKE comes before it. */
	const char *source;
	/* Of a FILE: "os", the kernel's page cache, "process", memory of this
	   process, or NULL, by the sizes of file and memory; then bytes of
	   the latter, 0: half of what there is, and of its cold tier, 0:
	   where it pays (betonfs(8)). A MOUNT has its own. */
	const char *cache;
	uint64_t cache_size;
	uint64_t cold_size;
	const char *delivery; /* of a MOUNT: "handover", the daemon lends its
				 memory, "direct", its files are read, or NULL,
				 "auto": the first that works. No difference to
				 a FILE */
	/* The job that its ranks are counted as by the daemon of a MOUNT, up to
	   64 characters of printable ASCII; NULL or "": $BETON_JOB, else
	   "session-N" of the process. Files that are read are counted by
	   session. */
	const char *job;
	uint32_t workers;  /* decoding threads; 0: one per usable CPU */
	uint32_t prefetch; /* batches made ahead; 0: 2 */
	uint32_t rank;
	uint32_t world;	 /* ranks of the job; 0: 1 */
	uint64_t epoch;	 /* to start with, below 2^63 */
	uint64_t epochs; /* to prepare; 0: no end */
	enum beton_on_error on_error;
	enum beton_stage until;
	uint64_t pinned;   /* bytes of batches for a GPU that may be pinned: one
			      batch more than `prefetch`, and each that is kept;
			      0: 4 GiB. The rest is copied more slowly. */
	beton_log_fn *log; /* NULL: silence */
	void *log_arg;
	char *error;	   /* why opening failed is written here, if not */
	size_t error_size; /* NULL; opening has no handle to ask */
	/* Where a trace of all threads goes, beton-stats(7); NULL or "":
	   $BETON_TRACE, else there is none. */
	const char *trace;
	/* Something is done to each batch before it is ready: batches wait
	   until beton_loader_hook() says what. */
	bool hooked;
};

/* DLPack's device types. */
enum beton_device_type {
	BETON_DEVICE_CPU = 1,
	BETON_DEVICE_CUDA = 2,
};

/* One output of a batch. Pointers are valid until the batch is released. */
struct beton_tensor {
	const char *name;
	const char *dtype; /* NumPy's string, "<f4" */
	uint32_t ndim;
	const uint64_t *shape;	/* shape[0] is the number of rows, except where
				   offsets is set: there the number of bytes */
	const void *data;	/* C order, without gaps, 64-byte aligned; of a
				   GPU an address there, 256-byte aligned */
	uint64_t size;		/* bytes */
	const int64_t *offsets; /* bytes and JSON: row i is data[offsets[i]] to
				   data[offsets[i + 1]]; else NULL */
	int32_t device_type;	/* enum beton_device_type: by cuda(N) CUDA */
	int32_t device_id;	/* N; the CPU: 0 */
};

struct beton_batch {
	uint64_t epoch;
	uint64_t number; /* in the epoch's global sequence, all ranks; at
			    or above its length: a repeat as padding */
	uint32_t rows;
	uint32_t num_outputs;
	const uint64_t *ids;  /* sample ids, rows of them */
	const uint8_t *valid; /* per row 1, or 0: failed, or padding */
	const struct beton_tensor *outputs;
};

/*
 * Opens a dataset FILE, or the directory of a dataset in a MOUNT, and starts to
 * load. -EINVAL: the spec or the pipeline; options->error says what and where.
 */
BETON_API int beton_loader_open(const char *path,
				const struct beton_loader_options *options,
				struct beton_loader **out);

/*
 * What is done to a batch by the loader's workers, once all its rows are there,
 * before any of it goes to a GPU and before it is ready: once for each, in no
 * order, by several threads at a time, each with another batch. It may write
 * to outputs in the CPU's memory; those in a GPU's are not there yet. It must
 * not call the loader, and the loader's end waits for it. Batches that failed
 * do not get there, nor does any with BETON_STAGE_READ or _DECODE; what
 * `source` gives again and again was there once.
 *
 * 0, or -errno: then beton_loader_next() fails for this batch, and goes on
 * after it. The reason may be written to `why`, of `size` bytes.
 */
typedef int beton_hook_fn(void *arg, const struct beton_batch *batch, char *why,
			  size_t size);

/*
 * Says what is done to batches, for good, of a loader that was opened with
 * `hooked`. What it is may depend on beton_loader_output(); NULL: nothing.
 * -EINVAL: it was said already, or the loader was opened without.
 */
BETON_API int beton_loader_hook(struct beton_loader *loader,
				beton_hook_fn *hook, void *arg);

/* Stops all threads. Batches that were not released become invalid. */
BETON_API void beton_loader_close(struct beton_loader *loader);

/*
 * Stops all threads, closes the dataset, and frees the memory of all batches
 * but those that are held: they stay valid until they are released, or the
 * loader is closed. beton_loader_next() then fails with -ECANCELED.
 */
BETON_API void beton_loader_stop(struct beton_loader *loader);

/*
 * The next batch of this rank; waits for it. It belongs to the caller until
 * beton_loader_release(); any number may be kept, beyond the ring each costs
 * fresh memory, which for a GPU is kept until close. -ENODATA: the epoch is
 * over, and the next call begins the next epoch. Any other error is the batch's
 * own (-EIO, -ENOTCONN when the daemon died): beton_loader_error() tells, and
 * the next call goes on after it.
 */
BETON_API int beton_loader_next(struct beton_loader *loader,
				const struct beton_batch **out);

/*
 * Waits at most so long until beton_loader_next() has not to wait for threads,
 * for who looks at other things meanwhile. -EAGAIN: it still would.
 */
BETON_API int beton_loader_wait(struct beton_loader *loader,
				uint32_t milliseconds);

BETON_API void beton_loader_release(struct beton_loader *loader,
				    const struct beton_batch *batch);

/*
 * For outputs in a GPU's memory, instead of the two above, which wait: next for
 * the batch to be there, release for nothing, for whoever calls it has waited
 * for all that reads the batch.
 *
 * `stream` is a CUDA stream of the device's primary context, as a CUstream or
 * cudaStream_t; NULL or 1 is the legacy default stream, 2 that of the thread.
 * What is queued on it after beton_loader_next_on() finds the batch complete;
 * what was queued on it before beton_loader_release_on() still finds it as it
 * was. Neither waits for the GPU. A batch that is read on more streams is
 * acquired for each of them; what they are given up to the release counts too.
 * -EINVAL: no stream of this device, or the batch is not held. -EIO: the device
 * is lost, and the batch not held any more once it was released.
 */
BETON_API int beton_loader_next_on(struct beton_loader *loader, void *stream,
				   const struct beton_batch **out);
BETON_API int beton_loader_acquire(struct beton_loader *loader,
				   const struct beton_batch *batch,
				   void *stream);
BETON_API int beton_loader_release_on(struct beton_loader *loader,
				      const struct beton_batch *batch,
				      void *stream);

/*
 * Copies an output of a batch that is held to memory of the caller's, of its
 * size, wherever it is. Waits for it: for looking and saving, not for training.
 * -EIO: the device failed. -EINVAL: the batch is not held, or has no such
 * output.
 */
BETON_API int beton_loader_read(struct beton_loader *loader,
				const struct beton_batch *batch,
				uint32_t output, void *to);

/* What the last failed call of beton_loader_next(), _next_on(), _load() or
   _seek() was about; valid until the next. */
BETON_API const char *beton_loader_error(const struct beton_loader *loader);

/*
 * Where the loader stands, counting the batches that beton_loader_next() has
 * given: JSON text of less than 4 KiB into `buffer`. It says if they were not
 * real. -ENOSPC: too small.
 */
BETON_API int beton_loader_state(const struct beton_loader *loader,
				 char *buffer, size_t size);

/*
 * Goes on from a state: same dataset and spec, any rank, world and number of
 * workers. -EINVAL: not a state; -ESTALE: of another dataset or spec, or of
 * batches that were not real, where this loader's are.
 */
BETON_API int beton_loader_load(struct beton_loader *loader, const char *state);

/* Goes to the start of an epoch, below 2^63. */
BETON_API int beton_loader_seek(struct beton_loader *loader, uint64_t epoch);

/* Facts that do not change while the loader is open, valid until close. */
struct beton_loader_info {
	const char *spec; /* canonical */
	/* "file", "mount"; not real: "constant", "memory", "fake" */
	const char *source;
	/* How the last batch came: "in-process", "handover", "direct". It can
	   change when the daemon has no memory to lend, or ends. */
	const char *delivery;
	const char *decoder;
	/* What makes images of pixels: of all outputs' beton_output.jit, in
	   any epoch, the first of "generic", "generated", "prebuilt", "none".
	 */
	const char *jit;
	/* Who does what follows cuda() in batches that are begun now: "device",
	   the GPU, "processor", before it ships the values, or because nothing
	   follows; "none": no output is a GPU's. By cuda(N, auto) it can
	   change; the bits are the same. */
	const char *point;
	uint64_t samples; /* of the dataset */
	uint64_t batches; /* of the epoch's global sequence */
	uint64_t steps;	  /* of this rank in a whole epoch */
	uint32_t workers;
	uint32_t num_outputs;
};

BETON_API void beton_loader_info(const struct beton_loader *loader,
				 struct beton_loader_info *out);

/*
 * What an output will be, known before any batch; valid until close. The same
 * in all epochs, but for the shape where the pipeline says so: that is the next
 * batch's.
 */
struct beton_output {
	const char *name;
	const char *dtype; /* NumPy's string */
	/* Images: "generated", by code compiled for this pipeline; "prebuilt",
	   by code of the library; "generic", operation by operation, the same
	   bits, slower, and for as long as the compiler takes. "none": there
	   is nothing to be done. */
	const char *jit;
	int32_t device_type; /* as in struct beton_tensor, and the next */
	int32_t device_id;
	bool ragged;   /* rows of their own sizes, joined: offsets */
	uint32_t ndim; /* of one row, as shape */
	const uint64_t *shape;
};

/* -ENOENT past the last output. */
BETON_API int beton_loader_output(const struct beton_loader *loader, uint32_t i,
				  struct beton_output *out);

/*
 * Counters of one stage since open, beton-stats(7). Times are summed over its
 * threads. "read", "decode", "transform", "next", "trainer", what the caller
 * does from one batch to beton_loader_next() for another, and with a GPU
 * "upload".
 */
struct beton_stage_stats {
	const char *name;
	uint64_t items; /* decode, transform: rows; else batches */
	uint64_t bytes;
	uint64_t busy_ns;
	uint64_t input_wait_ns; /* waiting for something to do */
	uint64_t room_wait_ns;	/* waiting for room for the result */
	/* How long beton_loader_next() waited for a batch that was in this
	   stage meanwhile. */
	uint64_t delay_ns;
	/* So long, or less, half of the items took, nine of ten, and 99 of a
	   hundred; off by an eighth, or 32 ns. Of next: with its waiting. */
	uint64_t p50_ns;
	uint64_t p90_ns;
	uint64_t p99_ns;
};

/* Fills at most `max` entries; returns how many stages there are. */
BETON_API size_t beton_loader_stats(const struct beton_loader *loader,
				    struct beton_stage_stats *out, size_t max);

/* How loader and trainer have kept up with each other since open. */
struct beton_pace_stats {
	size_t size;	  /* sizeof(struct beton_pace_stats) */
	uint64_t batches; /* that beton_loader_next() gave */
	uint64_t samples;
	uint64_t waits;	     /* times that it had to wait for one */
	uint64_t wait_ns;    /* and for how long, altogether */
	uint64_t trainer_ns; /* from one batch to the call for the next */
	/* Batches that can be ready at a time, `prefetch`; how many were when
	   one was asked for, added up; how often none was, and how often all
	   were. */
	uint64_t queue_places;
	uint64_t queue_ready;
	uint64_t queue_empty;
	uint64_t queue_full;
};

/* -EINVAL: out->size is not set. */
BETON_API int beton_loader_pace(const struct beton_loader *loader,
				struct beton_pace_stats *out);

/* What cache() has kept since open, of all outputs together. */
struct beton_kept_stats {
	uint64_t size;	  /* bytes that may be used; 0: there is no cache() */
	uint64_t used;	  /* of these */
	uint64_t samples; /* that are kept */
	uint64_t hits;	  /* how often a row was made of one */
};

BETON_API void beton_loader_kept(const struct beton_loader *loader,
				 struct beton_kept_stats *out);

/* Rows that could not be read or decoded since open. */
BETON_API uint64_t beton_loader_failed_rows(const struct beton_loader *loader);

#ifdef __cplusplus
}
#endif

#endif
