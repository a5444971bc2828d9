/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader: batches of complete tensors from a dataset FILE or from a MOUNT
 * of betonfs, with the same bytes either way. The conventions of
 * <beton/beton.h> hold. A whole training loop:
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
 * Numbers of a pipeline may change with the epoch, for example the image size
 * in "random_resized_crop(\"0=160,10=192,14=224\") | ...", which makes early
 * epochs cheap. The loader changes them by itself. Each batch has its own
 * shapes.
 *
 * Threads: beton_loader_next(), _wait(), _stop(), _state(), _load() and _seek()
 * belong to one thread at a time. beton_loader_release(), _stats() and _hook()
 * may be called from any thread at any time before close. The loader's threads
 * call the batch callback.
 */
#ifndef BETON_LOADER_H
#define BETON_LOADER_H

#include <stdbool.h>

#include "beton/beton.h"

#ifdef __cplusplus
extern "C" {
#endif

struct beton_loader;

/* How to treat a batch with samples that cannot be read or decoded. */
enum beton_on_error {
	BETON_ON_ERROR_RAISE = 0, /* beton_loader_next() fails with -EIO */
	BETON_ON_ERROR_SKIP,	  /* its row is zero and valid[row] is 0 */
	BETON_ON_ERROR_ZERO,	  /* its row is zero and valid[row] is 1 */
};

/* The last stage that batches pass. Later stages are skipped, to measure this
   one. */
enum beton_stage {
	BETON_STAGE_ALL = 0,
	BETON_STAGE_READ,   /* the batch file is read, and its bytes summed */
	BETON_STAGE_DECODE, /* images are decoded, as far as crops need them */
	BETON_STAGE_TRANSFORM, /* tensors are complete in the CPU's memory */
};

/* Zero-initialize the struct, then set `size` and the members you need. 0 is
   the default of every member. */
struct beton_loader_options {
	size_t size; /* sizeof(struct beton_loader_options) */
	/* Sampling spec, beton-orders(7); NULL: all defaults. */
	const char *spec;
	const char *subset;   /* "NAME:FILE", a list of sample ids, optionally
				 with weights, that `spec` may name; NULL: none.
				 Not needed if the mount has the subset. */
	const char *pipeline; /* beton-transforms(7); NULL: tensors as stored */
	/*
	 * Synthetic data for measuring, beton-transforms(7): "constant" replays
	 * the first batch, "memory" and "memory(SIZE)" replay the first
	 * batches, "fake(...)" needs no dataset. NULL: the data at `path`. If
	 * $BETON_FAKE is set, it replaces this option.
	 */
	const char *source;
	/*
	 * For a FILE: "os" uses the kernel's page cache, "process" memory of
	 * this process. NULL chooses by the sizes of file and memory.
	 *
	 * cache_size is the size of the process's cache in bytes; 0: half of
	 * the available memory. cold_size is that of its compressed tier; 0:
	 * used where it pays, betonfs(8). A MOUNT has a cache of its own.
	 */
	const char *cache;
	uint64_t cache_size;
	uint64_t cold_size;
	const char *delivery; /* for a MOUNT: "handover" (zero-copy from the
				 daemon's shared memory), "direct" (read files),
				 NULL or "auto" (the first that works). Ignored
				 for a FILE */
	/*
	 * The job under which the daemon of a MOUNT counts this rank: up to 64
	 * characters of printable ASCII. NULL or "": $BETON_JOB or, if that is
	 * not set, "session-N" with the session of the process. Reads of files
	 * always count by session.
	 */
	const char *job;
	uint32_t workers; /* decoding threads, at most 4096; 0: one per usable
			     CPU */
	/* Prefetch depth in batches, at most 4096; 0: 2. The loader warns if
	   these batches and one that you hold do not fit into memory. */
	uint32_t prefetch;
	uint32_t rank;
	uint32_t world;	 /* world size: ranks of the job; 0: 1 */
	uint64_t epoch;	 /* first epoch, below 2^63 */
	uint64_t epochs; /* number of epochs; 0: no end */
	enum beton_on_error on_error;
	enum beton_stage until;
	uint64_t pinned;   /* limit of pinned memory for batches on a GPU, in
			      bytes; 0: 4 GiB. The loader pins `prefetch` batches,
			      one more, and each that you hold. Beyond the limit
			      copies are slower */
	beton_log_fn *log; /* NULL: discard messages */
	void *log_arg;
	char *error; /* receives the reason if opening fails; or NULL */
	size_t error_size;
	/* File for a trace of all threads, beton-stats(7). NULL or "":
	   $BETON_TRACE; if that is not set, no trace. */
	const char *trace;
	/* Batches wait before they are ready until beton_loader_hook() sets a
	   batch callback. */
	bool hooked;
	/*
	 * "cuda:N", or "cuda" for GPU 0: every output but bytes and JSON is on
	 * that GPU. An output without cuda() in its pipeline is copied there
	 * when it is complete. NULL, "" or "cpu": only outputs with cuda() are
	 * on a GPU.
	 */
	const char *device;
	/*
	 * Makes opening interruptible, which can wait a minute for the C
	 * compiler, and indefinitely for the daemon of a mount. While it waits,
	 * the thread in beton_loader_open() calls this function up to 20 times
	 * a second. If the function returns true, the loader ends the compiler
	 * and abandons reads of the mount, and opening fails with -ECANCELED.
	 * NULL: opening always waits.
	 */
	bool (*interrupted)(void *arg);
	void *interrupted_arg;
	/*
	 * Without drop_last, ranks get equally many batches: the last ones of
	 * some are padding, which repeats samples with valid[row] 0. If true,
	 * the loader returns no padding: each sample comes once over all
	 * ranks, and a rank may have one batch less than others.
	 */
	bool no_padding;
};

/* DLPack's device types. */
enum beton_device_type {
	BETON_DEVICE_CPU = 1,
	BETON_DEVICE_CUDA = 2,
};

/* One output of a batch. All pointers are valid until the batch is released. */
struct beton_tensor {
	const char *name;
	const char *dtype; /* NumPy's string, "<f4" */
	uint32_t ndim;
	const uint64_t
		*shape; /* shape[0] is the number of samples; if offsets
			   is set, of all rows: bytes of bytes and JSON */
	/* C order, without gaps. In the CPU's memory aligned to 64 bytes; on a
	   GPU a device address, aligned to 256. */
	const void *data;
	uint64_t size; /* bytes */
	/* Bytes, JSON and lists: sample i has the rows offsets[i] to
	   offsets[i + 1]. A row has the shape shape[1], ...; of bytes and JSON
	   it is a byte. Else NULL. */
	const int64_t *offsets;
	int32_t device_type; /* enum beton_device_type; CUDA after cuda(N) */
	int32_t device_id;   /* N of cuda(N); CPU: 0 */
};

struct beton_batch {
	uint64_t epoch;
	uint64_t number; /* in the epoch's global sequence of all ranks. A
			    number at or above its length is padding, which
			    repeats a batch */
	uint32_t rows;
	uint32_t num_outputs;
	const uint64_t *ids; /* `rows` sample ids */
	/* Per row: 1, or 0 for a failed sample or padding. */
	const uint8_t *valid;
	const struct beton_tensor *outputs;
};

/* Opens a dataset FILE, or the directory of a dataset in a MOUNT, and starts to
   load. A path that is a pattern, as in <beton/dataset.h>, is one dataset of
   several files. -EINVAL: the spec, the pipeline or another option is invalid.
   -ECANCELED: options->interrupted returned true. On any error options->error
   receives the reason. */
BETON_API int beton_loader_open(const char *path,
				const struct beton_loader_options *options,
				struct beton_loader **out);

/*
 * A batch callback. The loader's workers call it once for each batch, when all
 * its rows are made, before any upload to a GPU, and before the batch is ready.
 * Calls come in no order, and from several threads at a time, each with another
 * batch. The callback may write to outputs in the CPU's memory. Outputs on a
 * GPU have no data yet.
 *
 * The callback must not call the loader, and beton_loader_close() waits for it.
 * It is not called for batches that failed, nor with BETON_STAGE_READ or
 * _DECODE. A batch that `source` replays passes it once, before the first
 * replay.
 *
 * Returns 0 or -errno. After an error beton_loader_next() fails for this batch,
 * and the next call continues with the batch after it. The callback may write a
 * message to `why`, of `size` bytes.
 */
typedef int beton_hook_fn(void *arg, const struct beton_batch *batch, char *why,
			  size_t size);

/*
 * Sets the batch callback of a loader that was opened with `hooked`. May be
 * called once, after the caller has looked at beton_loader_output(). NULL:
 * batches pass unchanged. -EINVAL: a callback was set before, or the loader was
 * opened without `hooked`.
 */
BETON_API int beton_loader_hook(struct beton_loader *loader,
				beton_hook_fn *hook, void *arg);

/* Stops all threads and frees the loader. Batches that were not released become
   invalid. */
BETON_API void beton_loader_close(struct beton_loader *loader);

/*
 * Stops all threads, closes the dataset, and frees the memory of all batches
 * but those that you hold. They stay valid until you release them or close the
 * loader. After this call beton_loader_next() fails with -ECANCELED.
 *
 * Returns soon, even if the data does not come. It does not wait for the daemon
 * of a MOUNT, which may be stopped: if the loader reads files there, a helper
 * process does, so that this process can end. It waits half a second for the
 * disk of a FILE; if a read takes longer, a thread frees the loader when the
 * disk answers, also after beton_loader_close(). Until then a read that the
 * kernel does not interrupt (a local disk) also delays the end of the process.
 *
 * It does wait for a batch callback that runs.
 */
BETON_API void beton_loader_stop(struct beton_loader *loader);

/*
 * Waits for the next batch of this rank. You hold it until
 * beton_loader_release(). You may hold any number; each beyond the prefetch
 * depth allocates memory, and memory on a GPU is freed only on close.
 *
 * -ENODATA: the epoch is over; the next call begins the next epoch. Any other
 * error concerns this batch, for example -EIO. beton_loader_error() returns the
 * reason, and the next call continues with the batch after it.
 *
 * If the daemon of a MOUNT ends, the loader waits until the dataset is mounted
 * again: a tenth of the time since open, from 2 seconds to a minute. Then it
 * continues with the same batch. -ENOTCONN, -ENOENT: it was not mounted again.
 * -ESTALE: another dataset was.
 */
BETON_API int beton_loader_next(struct beton_loader *loader,
				const struct beton_batch **out);

/* Waits up to `milliseconds` until beton_loader_next() can return without
   blocking. Returns -EAGAIN on timeout. For event loops. */
BETON_API int beton_loader_wait(struct beton_loader *loader,
				uint32_t milliseconds);

/* Releases a batch: the loader uses its memory again. If streams acquired the
   batch, work that is queued on them still finds it unchanged. If the driver
   cannot order that, for example because a stream was destroyed, this call
   waits for the whole device. */
BETON_API void beton_loader_release(struct beton_loader *loader,
				    const struct beton_batch *batch);

/*
 * Variants of beton_loader_next() and beton_loader_release() for outputs on a
 * GPU. beton_loader_next() waits until the outputs are on the GPU, and before
 * beton_loader_release() you have to wait for all work that reads them. These
 * variants order that work by a stream instead.
 *
 * `stream` is a CUDA stream of the device's primary context, as a CUstream or
 * cudaStream_t. NULL or 1 is the legacy default stream, 2 that of the thread.
 * Work queued on it after beton_loader_next_on() finds the batch complete. Work
 * queued on it before beton_loader_release_on() finds the batch unchanged.
 * Neither call waits for the GPU.
 *
 * If you read a batch on more streams, call beton_loader_acquire() for each of
 * them. Release waits for the work of all acquired streams. -EINVAL: not a
 * stream of this device, or you do not hold the batch. -EBUSY: a CUDA graph is
 * captured on the stream; the loader disturbs no capture on other streams.
 * -EIO: the device is lost; beton_loader_release_on() has released the batch
 * nevertheless.
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
 * Copies an output of a batch that you hold to `to`, which has room for the
 * output's size. Waits for the upload: for inspecting and saving, not for
 * training. -EIO: the device failed. -EINVAL: you do not hold the batch, or it
 * has no such output.
 */
BETON_API int beton_loader_read(struct beton_loader *loader,
				const struct beton_batch *batch,
				uint32_t output, void *to);

/* The reason for the last failure of beton_loader_next(), _next_on(), _load()
   or _seek(). Valid until the next of these calls. */
BETON_API const char *beton_loader_error(const struct beton_loader *loader);

/* Writes a checkpoint to `buffer`: the position after the last batch that
   beton_loader_next() returned, as JSON text of less than 4 KiB. A checkpoint
   of synthetic data is marked as such. -ENOSPC: the buffer is too small. */
BETON_API int beton_loader_state(const struct beton_loader *loader,
				 char *buffer, size_t size);

/*
 * Resumes from a checkpoint of the same dataset and spec. Rank, world size and
 * number of workers may differ. -EINVAL: not a checkpoint. -ESTALE: a
 * checkpoint of another dataset or spec, or of synthetic data while this
 * loader's data is real.
 */
BETON_API int beton_loader_load(struct beton_loader *loader, const char *state);

/* Moves to the start of an epoch, below 2^63. */
BETON_API int beton_loader_seek(struct beton_loader *loader, uint64_t epoch);

/* Facts that do not change while the loader is open, valid until close. */
struct beton_loader_info {
	const char *spec; /* the sampling spec in canonical form */
	/* "file" or "mount"; synthetic data: "constant", "memory" or "fake" */
	const char *source;
	/* Delivery of the last batch: "in-process", "handover" (zero-copy) or
	   "direct". It can change when the daemon runs out of shared memory,
	   or ends and is mounted again. */
	const char *delivery;
	/* With "direct": "requested", or the error of zero-copy delivery;
	   otherwise NULL. */
	const char *why_direct;
	const char *decoder;
	/* The slowest engine of all outputs, in any epoch: the first of
	   "generic", "generated", "prebuilt", "none" that a beton_output.jit
	   has. */
	const char *jit;
	/*
	 * The execution device of the operations after cuda(), for batches
	 * begun now. "device": the GPU. "processor": the CPU, before the
	 * upload, or there are no such operations. "none": no output is on a
	 * GPU. With cuda(N, auto) it can change; the bits of the outputs stay
	 * the same.
	 */
	const char *point;
	uint64_t samples; /* of the dataset */
	uint64_t batches; /* of the epoch's global sequence */
	uint64_t steps;	  /* of this rank in a whole epoch */
	uint32_t workers;
	uint32_t num_outputs;
};

BETON_API void beton_loader_info(const struct beton_loader *loader,
				 struct beton_loader_info *out);

/* Describes an output before any batch. Valid until close. If the pipeline
   changes the shape with the epoch, this is the shape of the next batch. */
struct beton_output {
	const char *name;
	const char *dtype; /* NumPy's string */
	/*
	 * The engine for images. "generated": code compiled for this pipeline.
	 * "prebuilt": code of the library. "generic": one operation at a time,
	 * slower, with the same bits; also used until the compiler is done.
	 * "none": there is nothing to compute.
	 */
	const char *jit;
	int32_t device_type; /* as in struct beton_tensor */
	int32_t device_id;
	bool ragged;   /* samples of different sizes; tensors have offsets */
	uint32_t ndim; /* of one sample, like shape */
	/* A length of 0 differs: that of a list from sample to sample, and of
	   one that is padded to the longest from batch to batch. */
	const uint64_t *shape;
	/* A list: with `ragged` rows of dtype, and not bytes or JSON. */
	bool is_list;
};

/* -ENOENT past the last output. */
BETON_API int beton_loader_output(const struct beton_loader *loader, uint32_t i,
				  struct beton_output *out);

/*
 * Counters of one stage since open, beton-stats(7). Times are summed over the
 * stage's threads. The stages are "read", "decode", "transform", "next",
 * "trainer" and, with a GPU, "upload". "trainer" is the time of the caller from
 * one batch to the request for the next.
 */
struct beton_stage_stats {
	const char *name;
	uint64_t items; /* decode, transform: samples; else batches */
	uint64_t bytes;
	uint64_t busy_ns;
	uint64_t input_wait_ns; /* waiting for input */
	uint64_t room_wait_ns;	/* waiting for room for the output */
	/* Time that beton_loader_next() waited for batches in this stage. */
	uint64_t delay_ns;
	/* Median, 90th and 99th percentile of the time per item, within 12.5 %
	   or 32 ns. For "next" they include waiting. */
	uint64_t p50_ns;
	uint64_t p90_ns;
	uint64_t p99_ns;
};

/* Fills at most `max` entries. Returns the number of stages. */
BETON_API size_t beton_loader_stats(const struct beton_loader *loader,
				    struct beton_stage_stats *out, size_t max);

/* Throughput statistics of loader and trainer since open. */
struct beton_pace_stats {
	size_t size;	  /* sizeof(struct beton_pace_stats) */
	uint64_t batches; /* returned by beton_loader_next() */
	uint64_t samples;
	uint64_t waits;	     /* calls that had to wait for a batch */
	uint64_t wait_ns;    /* total time of these waits */
	uint64_t trainer_ns; /* from one batch to the request for the next */
	/* The queue of ready batches: its capacity, which is `prefetch`; its
	   length at each request, summed; requests that found it empty; and
	   requests that found it full. */
	uint64_t queue_places;
	uint64_t queue_ready;
	uint64_t queue_empty;
	uint64_t queue_full;
};

/* -EINVAL: out->size is not set. */
BETON_API int beton_loader_pace(const struct beton_loader *loader,
				struct beton_pace_stats *out);

/* State of the decoded-image cache, cache(), of all outputs together. */
struct beton_kept_stats {
	uint64_t size;	  /* capacity in bytes; 0: there is no cache() */
	uint64_t used;	  /* bytes in use */
	uint64_t samples; /* cached samples */
	uint64_t hits;	  /* samples made from a cached one since open */
};

BETON_API void beton_loader_kept(const struct beton_loader *loader,
				 struct beton_kept_stats *out);

/* The number of samples that could not be read or decoded since open. */
BETON_API uint64_t beton_loader_failed_rows(const struct beton_loader *loader);

/*
 * Describes all operations of pipelines, beton-transforms(7), as JSON text: a
 * list of objects with `name`, `help`, `synonyms` (names that other libraries
 * have, in small letters, without `_'), and `params`, which are objects with
 * `name`, `kind` ("integers", "reals", "word", "name" or "bytes"), `initial`
 * (the default; null: required), `min_count`, `max_count` (of numbers), `words`
 * and `help`. The caller frees *out. -ENOMEM.
 */
BETON_API int beton_operations(char **out);

#ifdef __cplusplus
}
#endif

#endif
