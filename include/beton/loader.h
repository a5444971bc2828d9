/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of tensors from a dataset FILE or from a MOUNT of betonfs.
 *
 * A loader reads a dataset of training samples, such as labeled images,
 * decodes and augments them in its threads, and delivers batches of complete
 * tensors. A FILE in FFCV's format (.beton) and a MOUNT of betonfs(8) give the
 * same bytes. The conventions of <beton/beton.h> hold. This program reads one
 * epoch:
 *
 *	#include <beton/loader.h>
 *	#include <inttypes.h>
 *	#include <stdio.h>
 *	#include <string.h>
 *
 *	static void train(const struct beton_batch *batch)
 *	{
 *		printf("batch %" PRIu64 ": %u samples\n", batch->number,
 *		       batch->num_samples);
 *	}
 *
 *	int main(int argc, char **argv)
 *	{
 *		char error[256] = "";
 *		struct beton_loader_options options = {
 *			.size = sizeof(options),
 *			.spec = "order=random,batch=16",
 *			.pipeline = "random_resized_crop(224) | flip | "
 *				    "normalize(imagenet) | float | chw",
 *			.error = error,
 *			.error_size = sizeof(error),
 *		};
 *		struct beton_loader *loader = NULL;
 *		const struct beton_batch *batch;
 *		int r;
 *
 *		if (argc != 2) {
 *			fprintf(stderr, "usage: %s DATASET\n", argv[0]);
 *			return 2;
 *		}
 *		r = beton_loader_open(argv[1], &options, &loader);
 *		if (r) {
 *			fprintf(stderr, "%s\n", error);
 *			return 1;
 *		}
 *		while (!(r = beton_loader_next(loader, &batch))) {
 *			train(batch);
 *			beton_loader_release(loader, batch);
 *		}
 *		if (r != -ENODATA)
 *			fprintf(stderr, "%s\n", beton_loader_error(loader));
 *		beton_loader_close(loader);
 *		return r != -ENODATA;
 *	}
 *
 * Numbers of a pipeline may change with the epoch, for example the image size
 * in `random_resized_crop("0=160,10=192,14=224") | ...`, which makes early
 * epochs cheap. The loader changes them by itself. Each batch has its own
 * shapes.
 *
 * Threads: You may call beton_loader_release(), beton_loader_stats(),
 * beton_loader_set_callback(), beton_loader_entry_points() and
 * beton_loader_makers() from any thread, at any time before close. Call the
 * other functions from one thread at a time. The loader's threads call the
 * batch callback and the log callback.
 */
#ifndef BETON_LOADER_H
#define BETON_LOADER_H

#include <stdbool.h>

#include "beton/beton.h"

#ifdef __cplusplus
extern "C" {
#endif

struct beton_loader;

/*
 * How to treat samples that cannot be read or decoded.
 *
 * Skipping is for samples. If a server fails or the dataset was replaced, and
 * 128 samples in a row, or all of an epoch, cannot be read, beton_loader_next()
 * fails in spite of BETON_ON_ERROR_SKIP or _ZERO, until a sample can be read.
 */
enum beton_on_error {
	BETON_ON_ERROR_RAISE = 0, /* beton_loader_next() fails with -EIO */
	BETON_ON_ERROR_SKIP,	  /* its values are 0, and valid[i] is 0 */
	BETON_ON_ERROR_ZERO,	  /* its values are 0, and valid[i] is 1 */
};

/* The last stage that the loader runs. To measure one stage, stop after it. */
enum beton_stage {
	BETON_STAGE_ALL = 0,
	BETON_STAGE_READ,      /* read the batch file and sum its bytes */
	BETON_STAGE_DECODE,    /* decode images, as far as crops need them */
	BETON_STAGE_TRANSFORM, /* complete all tensors in the CPU's memory */
};

/* Zero-initialize the struct, then set `size` and the members you need. 0 is
   the default of every member. */
struct beton_loader_options {
	size_t size; /* sizeof(struct beton_loader_options) */
	/* Sampling spec, beton-orders(7); NULL: all defaults. */
	const char *spec;
	const char *subset;   /* "NAME:FILE", a list of sample ids, optionally
				 with weights, that `spec` may name; NULL: none.
				 A MOUNT must have the list, betonfs(8); then
				 this is not needed. */
	const char *pipeline; /* beton-operations(7); NULL: tensors as stored */
	/*
	 * Synthetic data for measuring, beton-synthetic(7): "constant" replays
	 * the first batch, "memory" and "memory(SIZE)" replay the first
	 * batches, "synthetic(...)" needs no dataset. NULL: the data at `path`.
	 * If $BETON_SYNTHETIC is set, it replaces this option.
	 */
	const char *source;
	/*
	 * Cache of a FILE: "os" (the kernel's page cache) or "process" (memory
	 * of this process). NULL: choose by the sizes of file and memory. A
	 * MOUNT has its own cache.
	 *
	 * cache_size is the size of the process's cache in bytes; 0: half of
	 * the available memory, divided by $LOCAL_WORLD_SIZE, with which
	 * torchrun counts the processes of a machine. cold_size is the size of its compressed tier in
	 * bytes; 0: the loader decides, see beton-cache(7).
	 */
	const char *cache;
	uint64_t cache_size;
	uint64_t cold_size;
	const char *delivery; /* for a MOUNT: "zero-copy" (from the daemon's
				 shared memory), "direct" (read files),
				 NULL or "auto" (the first that works). Ignored
				 for a FILE */
	/*
	 * Name of the job in the daemon's statistics: up to 64 characters of
	 * printable ASCII. NULL or "": $BETON_JOB or, if that is not set,
	 * "session-N" with the session id of the process. Only for a MOUNT. The
	 * daemon counts direct reads by session in any case.
	 */
	const char *job;
	uint32_t workers; /* decoding threads, at most 4096; 0: one per usable
			     CPU */
	/* Prefetch depth in batches, at most 4096; 0: 2, or for batches of more
	   than 16 MiB one and the beginning of another. The loader warns if
	   these batches and one that you hold do not fit into memory. */
	uint32_t prefetch;
	uint32_t rank;
	uint32_t world_size; /* ranks of the job; 0: 1 */
	uint64_t epoch;	     /* first epoch, below 2^63 */
	uint64_t epochs;     /* number of epochs; 0: no end */
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
	/* If true, no batch is ready until beton_loader_set_callback() sets a
	   batch callback. A maker has none. */
	bool callback;
	/*
	 * "cuda:N", or "cuda" for GPU 0: deliver every output but bytes and
	 * JSON on that GPU. If the pipeline of an output has no cuda(), the
	 * loader copies the complete output. NULL, "" or "cpu": only outputs
	 * with cuda() are on a GPU.
	 */
	const char *device;
	/*
	 * Makes opening interruptible. Opening can wait a minute for the C
	 * compiler, and indefinitely for the daemon of a mount. While it waits,
	 * the thread in beton_loader_open() calls this function up to 20 times
	 * a second. If the function returns true, the loader ends the compiler
	 * and abandons reads of the mount, and opening fails with -ECANCELED.
	 * NULL: opening always waits.
	 */
	bool (*interrupted)(void *arg);
	void *interrupted_arg;
	/*
	 * Without drop_last, all ranks get the same number of batches. To fill
	 * up, some ranks get padding at the end, which repeats samples with
	 * valid[i] 0. If no_padding is true, the loader returns no padding: all
	 * ranks together get each sample once, and a rank may get one batch
	 * less than others.
	 */
	bool no_padding;
	/*
	 * If not 0: compare all bytes that are read from a FILE with the
	 * checksums in FILE.sums, beton(5). Samples in a damaged part of the
	 * file then fail as damaged samples do, see on_error. Opening fails
	 * with -ENOENT if there are no checksums, with -ESTALE if they belong
	 * to another file, and with -EINVAL for a MOUNT without -o verify.
	 */
	uint64_t verify;
	/*
	 * How the URLs in `path` are read: "key=value,key=value" with the
	 * storage options of betonfs(8), for example
	 * "disk=/var/cache/beton,connections=32". Opening fails with -EINVAL
	 * if a key is unknown or a value is wrong. NULL: the options in
	 * $BETON_STORAGE_OPTIONS, which also apply to keys that the text lacks.
	 * Ignored for local files and for a MOUNT.
	 */
	const char *storage_options;
	/*
	 * If not 0: the loader makes no batches but those that you ask for by
	 * beton_loader_ask() or beton_loader_make(), and beton_loader_next()
	 * fails with -EINVAL.
	 */
	uint64_t on_demand;
	/* enum beton_role: whether loaders on other machines make batches for
	   this one (default: BETON_ROLE_ALONE). */
	uint64_t role;
	/*
	 * Only for BETON_ROLE_TRAINER. If not 0: the loader's own workers make
	 * batches only while no maker is attached or all of them are late, and
	 * those that are stalled at a maker or that it cannot make. Otherwise
	 * own workers and makers share the batches by speed, and own workers
	 * come first.
	 */
	uint64_t spare_workers;
};

/*
 * The parts of loaders on several machines that make the batches of one. All of
 * them open the same dataset with the same sampling spec, pipeline and on_error.
 * Batches have the same bits, whichever loader makes them.
 */
enum beton_role {
	BETON_ROLE_ALONE = 0,
	/* Makes batches for a trainer, by beton_loader_serve(). Its batches
	   have the rows that it sends, and are of no other use. It needs no GPU.
	   Implies on_demand. */
	BETON_ROLE_MAKER = 1,
	/* Gets batches from makers too, by beton_loader_attach(). */
	BETON_ROLE_TRAINER = 2,
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
	const uint64_t *shape; /* shape[0] is the number of samples; if offsets
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
	uint32_t num_samples;
	uint32_t num_outputs;
	const uint64_t *ids; /* `num_samples` sample ids */
	/* Per sample: 1, or 0 for a failed sample or padding. */
	const uint8_t *valid;
	const struct beton_tensor *outputs;
};

/*
 * Opens a dataset and starts to load.
 *
 *   path      a dataset FILE, the directory of a dataset in a MOUNT, or a
 *             pattern as in <beton/dataset.h>
 *   options   NULL is not allowed; you may free the strings after the call
 *   out       receives the loader; close it with beton_loader_close()
 *
 * Returns 0, or
 *   -EINVAL      the sampling spec, the pipeline or another option is invalid
 *   -ECANCELED   options->interrupted returned true
 *   -ENOMEM      the buffers of the batches do not fit into memory
 *
 * and other errors of files, such as -ENOENT. If options->error is set, it
 * receives the reason of any error.
 */
BETON_API int beton_loader_open(const char *path,
				const struct beton_loader_options *options,
				struct beton_loader **out);

/*
 * A batch callback, which may change a batch before you get it. The loader's
 * threads call it once for each batch, after the last operation on the CPU and
 * before any upload to a GPU. Calls come in any order, and several threads may
 * call it at a time, each with another batch.
 *
 *   arg     of beton_loader_set_callback()
 *   batch   valid during the call. The callback may write to outputs in the
 *           CPU's memory. Outputs on a GPU have no data yet.
 *   why     receives a message if the callback fails
 *   size    bytes of `why`
 *
 * The callback must not call the loader, and beton_loader_close() waits for it.
 * The loader does not call it for batches that failed, nor with
 * BETON_STAGE_READ or BETON_STAGE_DECODE. If `source` replays batches, the
 * callback gets each batch once, before the first replay.
 *
 * Returns 0 or a negative errno value. If it returns an error,
 * beton_loader_next() fails for this batch, and the next call continues with
 * the batch after it.
 */
typedef int beton_callback_fn(void *arg, const struct beton_batch *batch,
			      char *why, size_t size);

/*
 * Sets the batch callback of a loader that was opened with `callback`.
 *
 * Call it once, after you have looked at beton_loader_output().
 *
 *   callback   NULL: batches pass unchanged
 *   arg        passed to the callback
 *
 * Returns 0, or
 *   -EINVAL   you have set a callback before, or opened the loader without
 *             `callback`
 */
BETON_API int beton_loader_set_callback(struct beton_loader *loader,
					beton_callback_fn *callback, void *arg);

/*
 * Stops all threads and frees the loader.
 *
 * The call invalidates batches that you still hold. If another thread still
 * reads one, call beton_loader_stop() instead and close the loader later. Takes
 * NULL.
 */
BETON_API void beton_loader_close(struct beton_loader *loader);

/*
 * Stops all threads and closes the dataset, but keeps the batches that you
 * hold.
 *
 * The batches stay valid until you release them or close the loader. After this
 * call beton_loader_next() fails with -ECANCELED.
 *
 * The call returns soon, even if the disk or the daemon does not answer. It
 * does not wait for the daemon of a MOUNT: a helper process reads the files
 * there, so that this process can end. It waits half a second for the disk of a
 * FILE. If a read takes longer, a thread frees the loader when the disk
 * answers, also after beton_loader_close(). The kernel may be unable to
 * interrupt such a read, which then delays the end of the process. The call
 * waits for a running batch callback.
 */
BETON_API void beton_loader_stop(struct beton_loader *loader);

/*
 * Waits for the next batch of this rank.
 *
 *   out   receives the batch, which you hold until beton_loader_release()
 *
 * You may hold any number of batches. Each beyond the prefetch depth allocates
 * memory, and memory on a GPU is freed only on close. Other memory of batches
 * that you do not hold goes back to the system if you request no batch for a
 * second, or for twice the time that you need for a batch, if that is longer. The
 * next call makes prefetched batches again; with a batch callback they stay.
 *
 * If the daemon of a MOUNT ends, the loader waits until the dataset is mounted
 * again: a tenth of the time since open, from 2 seconds to a minute. Then it
 * continues with the same batch.
 *
 * Returns 0, or
 *   -ENODATA     the epoch is over; the next call begins the next epoch
 *   -ECANCELED   beton_loader_stop() was called
 *   -EIO         a sample of this batch cannot be read or decoded
 *   -ENOTCONN, -ENOENT   the dataset was not mounted again
 *   -ESTALE      the dataset was replaced, or another one was mounted instead
 *
 * Any error but -ENODATA and -ECANCELED affects this batch alone:
 * beton_loader_error() returns the reason, and the next call continues with the
 * batch after it.
 */
BETON_API int beton_loader_next(struct beton_loader *loader,
				const struct beton_batch **out);

/*
 * Waits until beton_loader_next() can return without blocking. Use it in event
 * loops, because beton_loader_next() alone blocks without a limit.
 *
 *   milliseconds   the longest wait; 0: return at once
 *
 * Returns 0, or
 *   -EAGAIN   beton_loader_next() would still block
 */
BETON_API int beton_loader_wait(struct beton_loader *loader,
				uint32_t milliseconds);

/*
 * Makes one batch by its name.
 *
 *   epoch    below 2^63
 *   number   in the epoch's global sequence of all ranks, below the `batches`
 *            of beton_loader_info()
 *   out      as of beton_loader_next()
 *
 * The batch has the same bits as under this name in every other loader of the
 * same dataset, sampling spec and pipeline, whatever its rank and its number of
 * workers. The call does not move the position of beton_loader_next(), nor that
 * of a checkpoint. Use it to look at a batch again, to test, and to make
 * batches for another process.
 *
 * Returns 0, -EINVAL if there is no such batch, or the errors of
 * beton_loader_next() but -ENODATA.
 */
BETON_API int beton_loader_make(struct beton_loader *loader, uint64_t epoch,
				uint64_t number,
				const struct beton_batch **out);

/*
 * Begins to make a batch that you will take by beton_loader_make(), and returns
 * after some time whether it is complete.
 *
 *   epoch, number   as of beton_loader_make()
 *   milliseconds    the longest wait; 0: return at once
 *
 * To overlap the work, ask for following batches before you take the first. The
 * loader begins at most `prefetch` of them, in the order of the calls, and
 * remembers the names of 64 more. If you never take a batch, the loader drops
 * it as soon as it needs the room, and would make it again.
 *
 * Returns 0 if beton_loader_make() would not block, or
 *   -EAGAIN   it would still block
 *   -EINVAL   there is no such batch
 */
BETON_API int beton_loader_ask(struct beton_loader *loader, uint64_t epoch,
			       uint64_t number, uint32_t milliseconds);

/*
 * Releases a batch, so that the loader can use its memory again.
 *
 * If you acquired the batch for streams, work that is queued on them still
 * reads it unchanged. If the driver cannot order that, for example because a
 * stream was destroyed, this call waits for the whole device. May be called
 * from any thread.
 */
BETON_API void beton_loader_release(struct beton_loader *loader,
				    const struct beton_batch *batch);

/*
 * Waits for the next batch, and makes a stream wait for its uploads.
 *
 *   stream   a CUDA stream of the device's primary context, as a CUstream or
 *            cudaStream_t. NULL or 1 is the legacy default stream, 2 that of
 *            the thread.
 *   out      as of beton_loader_next()
 *
 * Work that you queue on the stream after this call finds the batch complete.
 * The call does not wait for the GPU, whereas beton_loader_next() waits until
 * the outputs are on the GPU.
 *
 * Returns the values of beton_loader_next(), or
 *   -EINVAL   not a stream of this device
 *   -EBUSY    a CUDA graph is captured on the stream; the loader disturbs no
 *             capture on other streams
 */
BETON_API int beton_loader_next_on(struct beton_loader *loader, void *stream,
				   const struct beton_batch **out);

/*
 * Makes the release of a batch wait for the work of one more stream.
 *
 *   batch    a batch that you hold
 *   stream   as of beton_loader_next_on()
 *
 * If you read a batch on more streams than that of beton_loader_next_on(), call
 * this function for each of them, before or after you queue the work.
 *
 * Returns 0, or
 *   -EINVAL   not a stream of this device, or you do not hold the batch
 *   -EBUSY    a CUDA graph is captured on the stream
 */
BETON_API int beton_loader_acquire(struct beton_loader *loader,
				   const struct beton_batch *batch,
				   void *stream);

/*
 * Releases a batch after the work that is queued on a stream.
 *
 *   batch    a batch that you hold
 *   stream   as of beton_loader_next_on()
 *
 * Work that was queued on the stream before this call finds the batch
 * unchanged. The call does not wait for the GPU, whereas before
 * beton_loader_release() you have to wait for all work that reads the batch.
 *
 * Returns 0, or
 *   -EINVAL   not a stream of this device, or you do not hold the batch
 *   -EBUSY    a CUDA graph is captured on the stream
 *   -EIO      the device is lost; the batch is released nevertheless
 */
BETON_API int beton_loader_release_on(struct beton_loader *loader,
				      const struct beton_batch *batch,
				      void *stream);

/*
 * Copies one output of a batch to memory of the CPU.
 *
 *   batch    a batch that you hold
 *   output   index of the output, below num_outputs
 *   to       room for the `size` bytes of the output
 *
 * The call waits for the upload. Use it to inspect and to save outputs on a
 * GPU, not for training.
 *
 * Returns 0, or
 *   -EIO      the device failed
 *   -EINVAL   you do not hold the batch, or it has no such output
 */
BETON_API int beton_loader_read(struct beton_loader *loader,
				const struct beton_batch *batch,
				uint32_t output, void *to);

/*
 * Returns the reason for the last failure of beton_loader_next(),
 * beton_loader_next_on(), beton_loader_make(), beton_loader_ask(),
 * beton_loader_load() or beton_loader_seek().
 *
 * The string belongs to the loader, and is valid until the next of these calls.
 */
BETON_API const char *beton_loader_error(const struct beton_loader *loader);

/*
 * Writes a checkpoint: the position after the last batch that
 * beton_loader_next() returned.
 *
 *   buffer   receives JSON text of less than 4 KiB, with a NUL
 *   size     bytes of `buffer`
 *
 * A checkpoint of synthetic data is marked as such, so that a loader of real
 * data refuses it.
 *
 * Returns 0, or
 *   -ENOSPC   the buffer is too small
 */
BETON_API int beton_loader_state(const struct beton_loader *loader,
				 char *buffer, size_t size);

/*
 * Resumes from a checkpoint of the same dataset and sampling spec.
 *
 *   state   a text that beton_loader_state() wrote
 *
 * Rank, world size and number of workers may differ from those of the
 * checkpoint. The loader does not repeat samples that any rank had consumed.
 *
 * Returns 0, or
 *   -EINVAL   not a checkpoint
 *   -ESTALE   a checkpoint of another dataset or sampling spec, or of synthetic
 *             data while the data of this loader is real
 */
BETON_API int beton_loader_load(struct beton_loader *loader, const char *state);

/*
 * Moves to the start of an epoch. To continue within an epoch, call
 * beton_loader_load() instead.
 *
 *   epoch   below 2^63
 *
 * Returns 0, or
 *   -EINVAL   no such epoch
 */
BETON_API int beton_loader_seek(struct beton_loader *loader, uint64_t epoch);

/* Facts about an open loader. Strings are valid until close. */
struct beton_loader_info {
	const char *spec; /* the sampling spec in canonical form */
	/* "file" or "mount"; synthetic data: "constant", "memory" or
	   "synthetic" */
	const char *source;
	/* Delivery of the last batch: "in-process", "zero-copy" or "direct". It
	   can change if the daemon runs out of shared memory or restarts. */
	const char *delivery;
	/* If delivery is "direct": "requested", or the error of zero-copy
	   delivery. Otherwise NULL. */
	const char *why_direct;
	const char *decoder; /* of JPEGs, in words */
	/* The slowest engine of all outputs in any epoch: the first of
	   "generic", "generated", "prebuilt" and "none" that is the `jit` of an
	   output. */
	const char *jit;
	/*
	 * Execution device of the operations after cuda(). "gpu": the GPU.
	 * "cpu": the CPU, before the upload, or there are no such operations.
	 * "none": no output is on a GPU. If the pipeline has cuda(N, auto), the
	 * device can change between batches; the values of the outputs do not
	 * depend on it.
	 */
	const char *placement;
	uint64_t samples; /* of the dataset */
	uint64_t batches; /* of the epoch's global sequence */
	uint64_t steps;	  /* of this rank in a whole epoch */
	uint32_t workers;
	uint32_t num_outputs;
};

/*
 * Reports facts about an open loader. Log them if you compare the speed of
 * runs, because delivery, engine and placement determine it.
 *
 *   out   receives the facts; its strings belong to the loader
 */
BETON_API void beton_loader_info(const struct beton_loader *loader,
				 struct beton_loader_info *out);

/* An output. If the pipeline changes the shape with the epoch, this is the
   shape of the next batch. */
struct beton_output {
	const char *name;
	const char *dtype; /* NumPy's string */
	/*
	 * The engine for images. "generated": code compiled for this pipeline.
	 * "prebuilt": code of the library. "generic": one operation at a time,
	 * slower, with the same values; also used until the compiler is done.
	 * "none": nothing to compute.
	 */
	const char *jit;
	int32_t device_type; /* as in struct beton_tensor */
	int32_t device_id;
	bool ragged;   /* samples of different sizes; tensors have offsets */
	uint32_t ndim; /* of one sample, like shape */
	/* A length of 0 is variable. In a list it differs between samples; in a
	   list padded to the longest it differs between batches. */
	const uint64_t *shape;
	/* A list: if `ragged` is set, its rows have the dtype, whereas bytes
	   and JSON have none. */
	bool is_list;
};

/*
 * Describes one output. You can call it before the first batch, for example to
 * allocate memory.
 *
 *   i     index of the output, from 0
 *   out   receives the description; its strings and shape belong to the loader
 *         and are valid until close
 *
 * Returns 0, or
 *   -ENOENT   there is no such output: i is past the last
 */
BETON_API int beton_loader_output(const struct beton_loader *loader, uint32_t i,
				  struct beton_output *out);

/*
 * Counters of one stage since open, beton-stats(7). Times are summed over the
 * stage's threads. The stages are "read", "decode", "transform", "next",
 * "trainer", if there is a GPU "upload", and if there are makers "makers" and
 * "network". "trainer" is the time of the caller from one batch to the request
 * for the next.
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

/*
 * Reports the counters of all stages since open.
 *
 *   out   room for `max` entries; NULL if max is 0
 *   max   the most entries to fill
 *
 * Returns the number of stages, which may be above `max`.
 */
BETON_API size_t beton_loader_stats(const struct beton_loader *loader,
				    struct beton_stage_stats *out, size_t max);

/* Throughput statistics of loader and trainer since open. */
struct beton_throughput_stats {
	size_t size;	  /* sizeof(struct beton_throughput_stats) */
	uint64_t batches; /* returned by beton_loader_next() */
	uint64_t samples;
	uint64_t waits;	     /* calls that waited for a batch */
	uint64_t wait_ns;    /* total time of these waits */
	uint64_t trainer_ns; /* from one batch to the request for the next */
	/* The queue of ready batches: its capacity, which is `prefetch`, or by
	   default the number of batches that the loader completes; its
	   length at each request, summed; requests that found it empty; and
	   requests that found it full. */
	uint64_t queue_capacity;
	uint64_t queue_ready;
	uint64_t queue_empty;
	uint64_t queue_full;
};

/*
 * Reports the throughput of loader and trainer since open.
 *
 *   out   set out->size; receives the statistics
 *
 * Returns 0, or
 *   -EINVAL   out->size is not set
 */
BETON_API int beton_loader_throughput(const struct beton_loader *loader,
				      struct beton_throughput_stats *out);

/* State of the decoded-image cache that cache() in a pipeline creates. */
struct beton_image_cache_stats {
	uint64_t size;	  /* capacity in bytes; 0: there is no cache() */
	uint64_t used;	  /* bytes in use */
	uint64_t samples; /* cached samples */
	uint64_t hits;	  /* samples served from the cache since open */
};

/*
 * Reports the state of the decoded-image cache.
 *
 *   out   receives the state, of all outputs together
 *
 * If `used` is close to `size` while `samples` is below the number of samples
 * of the dataset, a larger cache() has more hits.
 */
BETON_API void beton_loader_image_cache(const struct beton_loader *loader,
					struct beton_image_cache_stats *out);

/*
 * Entry points of JPEGs: positions where decoding can begin, which the loader
 * keeps from the first decoding of an image to later ones, beton-optimize(1).
 */
struct beton_entry_points_stats {
	size_t size;	   /* sizeof(struct beton_entry_points_stats) */
	uint64_t capacity; /* bytes that they may take; 0: none are kept */
	uint64_t used;	   /* bytes in use */
	uint64_t samples;  /* images with entry points */
	uint64_t hits;	   /* images decoded with them since open */
};

/*
 * Reports how many entry points the loader keeps and uses, from any thread.
 *
 * The figures are those of all outputs together: `capacity` and `used` are in
 * bytes, `samples` is the number of images that have entry points, and `hits`
 * that of images decoded with them since open. If `used` is close to
 * `capacity`, the loader keeps no entry points of further images.
 *
 *   out   receives the figures; before the call, set out->size to
 *         sizeof(*out)
 *
 * Returns 0, or
 *   -EINVAL   out->size is not set
 */
BETON_API int beton_loader_entry_points(const struct beton_loader *loader,
					struct beton_entry_points_stats *out);

/*
 * Figures of the network, if the loader reads a URL itself. Counts are since
 * open. Times are from a request to the first byte of its answer.
 */
struct beton_network_stats {
	size_t size;   /* sizeof(struct beton_network_stats) */
	uint64_t rate; /* bytes per second, the highest of the last seconds */
	uint64_t latency_ns; /* the lowest of the last seconds */
	uint64_t p50_ns;     /* median and 99th percentile */
	uint64_t p99_ns;
	uint64_t in_flight; /* requests that were sent and not answered yet */
	uint64_t waiting;   /* requests that were not sent yet */
	uint64_t depth;	    /* requests that the loader wants in flight */
	uint64_t requests;  /* sent, with repeated ones */
	uint64_t connections;
	uint64_t retries;
	uint64_t stalls;	/* answers that stopped, and were continued by
				   another request */
	uint64_t hedges;	/* late requests that were sent a second time */
	uint64_t throttled;	/* answers that ask for fewer requests */
	uint64_t wire_bytes;	/* received, with the heads of answers */
	uint64_t payload_bytes; /* of the dataset */
	uint64_t failures;	/* reads that failed after all retries */
	uint64_t is_out;	/* 1: the server does not answer now */
	/* The disk tier; 0 if there is none. */
	uint64_t tier_size;   /* bytes of the dataset */
	uint64_t tier_stored; /* bytes of it in the tier */
	uint64_t tier_limit;  /* bytes of it that may be there */
};

/*
 * Reports the figures of the network.
 *
 *   out   set out->size; receives the figures, of all parts of the dataset
 *
 * Returns 0, or
 *   -EINVAL    out->size is not set
 *   -ENODATA   the loader reads a local file, a mount or synthetic data. For a
 *              mount of a URL, the daemon has the figures, see
 *              beton-metrics(7).
 */
BETON_API int beton_loader_network(const struct beton_loader *loader,
				   struct beton_network_stats *out);

/*
 * Makes batches for a trainer until the trainer closes the connection.
 *
 *   loader   opened with BETON_ROLE_MAKER
 *   fd       a connected stream socket in blocking mode, which you close
 *            afterwards. Its other end is the fd of beton_loader_attach(), on
 *            any machine. You are responsible for knowing who is there: the
 *            protocol has no password and no encryption.
 *   why      receives the reason of a failure; may be NULL
 *   size     room there, in bytes
 *
 * Blocks. One thread at a time may use the loader, but another thread may call
 * beton_loader_stop() to end this call. A batch travels as 8-bit pixels, if the pipeline has them anywhere: the trainer runs the operations
 * after that, such as normalize and float, on its GPU or its CPU.
 *
 * Returns 0 after the trainer has closed the connection, or
 *   -EINVAL     the loader has another role
 *   -EPROTO     the trainer has another version of betonfs, another dataset,
 *               sampling spec, pipeline or on_error
 *   -ECANCELED  beton_loader_stop() was called
 *   -errno      the connection failed
 */
BETON_API int beton_loader_serve(struct beton_loader *loader, int fd, char *why,
				 size_t size);

/*
 * Attaches a maker: lets it make batches for this loader until the connection
 * or the loader ends.
 *
 *   loader   opened with BETON_ROLE_TRAINER
 *   fd       as of beton_loader_serve(), which runs at the other end
 *   why      receives the reason why it ended; may be NULL
 *   size     room there, in bytes
 *
 * Blocks: call it in a thread of its own for each maker, at any time.
 * beton_loader_next() and all other calls stay as they are. If a maker fails,
 * other makers or the loader's own workers make its batches, so that no batch is
 * lost. If the user waits for a batch for more than twice the longest of the
 * last times of makers, the batch is stalled: another side makes it as well, and
 * the first of both is delivered. Set `prefetch` to at least two batches for each
 * maker, so that all of them have work (default: 18, or fewer if they would need
 * more than 2 GiB).
 *
 * Returns
 *   -EINVAL     the loader has another role
 *   -EPROTO     as of beton_loader_serve(), or the maker's answers are wrong
 *   -EREMOTEIO  the maker cannot make batches that this machine can
 *   -ECANCELED  beton_loader_stop() was called
 *   -errno      the connection failed: -ECONNRESET if the maker has ended
 */
BETON_API int beton_loader_attach(struct beton_loader *loader, int fd,
				  char *why, size_t size);

/* Figures of makers. Counts are since open. */
struct beton_makers_stats {
	size_t size;	   /* sizeof(struct beton_makers_stats) */
	uint64_t makers;   /* attached now */
	uint64_t batches;  /* received from makers */
	uint64_t samples;  /* in them */
	uint64_t bytes;	   /* received */
	uint64_t here;	   /* batches that the own workers began */
	uint64_t repeated; /* stalled batches that another side made as well */
	uint64_t refused;  /* batches that a maker could not make */
	uint64_t lost;	   /* makers whose connection ended */
	uint64_t latency_ns; /* mean of the last times from asking a maker to
				the end of its answer */
};

/*
 * Reports the figures of makers, from any thread.
 *
 *   out   set out->size; receives the figures
 *
 * Returns 0, or
 *   -EINVAL   out->size is not set, or the loader is no trainer
 */
BETON_API int beton_loader_makers(const struct beton_loader *loader,
				  struct beton_makers_stats *out);

/*
 * Returns the number of unreadable or undecodable samples in the batches that you
 * have requested since open. If on_error is BETON_ON_ERROR_SKIP or
 * BETON_ON_ERROR_ZERO, check it at the end of an epoch, because these modes return
 * no error.
 */
BETON_API uint64_t
beton_loader_failed_samples(const struct beton_loader *loader);

/*
 * Describes all operations of pipelines as JSON text.
 *
 *   out   receives the text, which the caller frees with free()
 *
 * The text is a list of objects with `name`, `help`, `dtype` (NumPy's string
 * for the type that it converts to, or ""), `synonyms` (names in other
 * libraries, in lower case, without `_') and `params`. Each of `params` is an
 * object with `name`, `kind` ("integers", "reals", "choice", "name", "bytes" or
 * "operations"), `default` (null: required), `min_count` and `max_count` (of
 * numbers), `choices` and `help`. See beton-operations(7).
 *
 * Returns 0, or
 *   -ENOMEM   there is not enough memory
 */
BETON_API int beton_operations(char **out);

#ifdef __cplusplus
}
#endif

#endif
