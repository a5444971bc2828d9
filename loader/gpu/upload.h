/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches on their way to a GPU, and who may touch their memory when. Knows
 * neither rings nor pipelines: a slot is the memory of one batch, in parts, and
 * each part has bytes of the host and bytes of the device. A round of a slot:
 *
 *	upload_begin()		the host may write: waits for the copies of the
 *				slot's last round to have read its memory
 *	upload_reserve()	room for a part, as far as it has to grow
 *	upload_start()		queues copies, kernels and an event: ready
 *	upload_acquire()	a consumer's stream waits for ready, on the
 *				device; as often, on as many streams as wanted
 *	upload_release()	the consumer has queued its last use
 *
 * Nobody waits on the host for a GPU, but upload_begin(), which comes before
 * the hard work on the next batch. The next round's copies wait, on the device,
 * for all that was queued up to the release on every stream that acquired the
 * slot and on the one it was released with. So a consumer that never
 * synchronizes reads what it should, as does one that drops a batch before its
 * kernels ran, or on another stream than it read it on.
 *
 * One upload serves one loader. It has a stream of its own, which takes no part
 * in the legacy default stream's waiting, so several of them do not hinder each
 * other. A loader of several threads may start several slots at once: what is
 * queued for one slot stays together. Nothing is allocated in a round, except
 * where a part grows or a slot is acquired on more streams than ever before.
 *
 * The memory of the host is pinned as long as the budget lasts. After that, or
 * where the system pins no more, a part is ordinary memory, and upload_start()
 * copies it through two pinned pieces: it then waits for the GPU as it goes.
 *
 * Threads: a slot's round belongs to one thread at a time up to upload_start(),
 * which comes before all of upload_acquire() and upload_release(); these may
 * come from any thread. upload.lock orders what is queued on the stream of its
 * own and guards the budget; slot.lock guards the streams that acquired it.
 *They are never held together, nor while the host waits, except upload.lock for
 * ordinary memory, as said.
 */
#ifndef LOADER_GPU_UPLOAD_H
#define LOADER_GPU_UPLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/gpu/cuda.h"

struct log;
struct upload;
struct upload_slot;

struct upload_options {
	struct cuda *cuda; /* must outlive the upload */
	uint64_t pinned;   /* bytes of slots that may be pinned; besides it 2
			      MiB for what is not */
	struct log *log;
};

int upload_open(const struct upload_options *options, struct upload **out);
/*
 * Closes the upload, after all its slots. Waits for the work on its stream.
 * Takes NULL.
 */
void upload_close(struct upload *upload);

/* Totals since upload_open(). */
struct upload_stats {
	uint64_t batches;  /* started */
	uint64_t bytes;	   /* copied */
	uint64_t staged;   /* of these, through the pieces */
	uint64_t waits;	   /* upload_begin() found copies unfinished */
	uint64_t wait_ns;  /* how long it waited */
	uint64_t pinned;   /* bytes of slots that are pinned now */
	uint64_t ordinary; /* bytes of slots that are not pinned */
	uint64_t device;   /* bytes of the device's memory now */
};

void upload_get_stats(struct upload *upload, struct upload_stats *out);

/* --- slots --- */

int upload_slot_open(struct upload *upload, uint32_t num_parts,
		     struct upload_slot **out);
/*
 * Ends its round first if there is one, as upload_release() without a stream
 * does, and waits until nothing uses its memory. Takes NULL.
 */
void upload_slot_close(struct upload_slot *slot);

/*
 * Begins a round: the host's memory may be written then. -EIO: the device is
 * lost. -EBUSY: the last round was not released.
 */
int upload_begin(struct upload_slot *slot);
/* Whether the last upload_begin() found copies unfinished. */
bool upload_has_waited(const struct upload_slot *slot);

/*
 * After upload_begin(): makes room in a part for so many bytes of the host and
 * of the device; either may be 0. What has to grow loses its content, gets some
 * more than asked for, and waits for the device. -ENOMEM: that side of the part
 * is empty now.
 */
int upload_reserve(struct upload_slot *slot, uint32_t part, uint64_t host,
		   uint64_t device);
/*
 * The addresses of a part; NULL and 0 before upload_reserve(), which alone
 * changes them. At least 64-byte and 256-byte aligned.
 */
void *upload_host(const struct upload_slot *slot, uint32_t part);
uint64_t upload_device(const struct upload_slot *slot, uint32_t part);

/*
 * From the host's memory of a part to the same place in the device's. `from` is
 * whose memory of the host: NULL, the slot's own, or that of a slot which was
 * started, is never begun again, and is closed later.
 */
struct upload_copy {
	uint32_t part;
	uint64_t offset;
	uint64_t size; /* 0: nothing */
	const struct upload_slot *from;
};

/* Queues kernels after the copies. Called by upload_start() with upload.lock
   held; it uses this stream alone. */
typedef int upload_run_fn(void *arg, struct cuda *cuda,
			  struct cuda_stream *stream);

/*
 * Queues the copies, then what run() queues if it is not NULL, then ready. On
 * failure, -EINVAL for a copy outside of its part, the stream has been waited
 * for and the slot is as it was after upload_begin(): start again, or release.
 */
int upload_start(struct upload_slot *slot, const struct upload_copy *copies,
		 size_t num_copies, upload_run_fn *run, void *arg);

/*
 * What the consumer queues on this stream from now on finds the batch complete.
 * The stream belongs to the device's primary context, NULL, CUDA_STREAM_LEGACY
 * and CUDA_STREAM_PER_THREAD included, and lives until the release. -EINVAL: it
 * does not, or the slot was not started.
 */
int upload_acquire(struct upload_slot *slot, struct cuda_stream *stream);
/* Blocks the host until the batch is complete. */
int upload_wait(struct upload_slot *slot);

/* For upload_release(): no stream but those that acquired the slot. */
#define UPLOAD_NO_STREAM ((struct cuda_stream *)-1)

/*
 * Ends the round: what was queued up to now on the streams that acquired the
 * slot, and on this one, is the last use of its memory on the device. On
 * failure nothing has changed, unless the device is lost: then it is released.
 */
int upload_release(struct upload_slot *slot, struct cuda_stream *stream);
/* Ends the round, with the promise that no consumer uses its memory on the
   device any more, because the host waited for it or nobody ever did. */
void upload_release_done(struct upload_slot *slot);
/*
 * Ends the round as upload_release() without a stream does. If the driver
 * cannot record events on the streams that acquired the slot, for example
 * because one does not exist any more, waits for the whole device. On failure
 * nothing has changed: consumers may still use the memory.
 */
int upload_finish(struct upload_slot *slot);

#endif
