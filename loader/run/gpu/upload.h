/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of batches on their way to a GPU, and the order of its uses. This
 * module is independent of rings and pipelines: a slot is the memory of one
 * batch, in parts, and each part has bytes of the host and bytes of the device.
 * A round of a slot:
 *
 *	upload_begin()		waits until the device has read the memory of
 *				the last round; then the host may write
 *	upload_reserve()	grows a part if it is too small
 *	upload_start()		queues copies, kernels and an event: ready
 *	upload_acquire()	makes a consumer's stream wait for ready, on the
 *				device; any number of times and streams
 *	upload_release()	the consumer has queued its last use
 *
 * Only upload_begin() makes the host wait for a GPU; it comes before the hard
 * work on the next batch. The next round's copies wait on the device. They wait
 * for everything that was queued before the release, on each stream that
 * acquired the slot and on the stream of the release. So a consumer that never
 * synchronizes reads correct data. The same holds if it drops a batch before
 * its kernels ran, or releases it on another stream.
 *
 * One upload serves one loader. Its stream does not synchronize with the legacy
 * default stream, so several uploads do not delay each other. Several threads
 * of a loader may start several slots at once: the work of one slot stays
 * together in the queue. A round allocates nothing, unless a part grows or more
 * streams than ever before acquire a slot.
 *
 * The memory of the host is pinned as long as the budget lasts. After that, or
 * if the system refuses to pin more, a part is pageable memory. upload_start()
 * copies it through two pinned pieces, and waits for the GPU meanwhile.
 *
 * Threads: a slot's round belongs to one thread at a time up to upload_start(),
 * which comes before all of upload_acquire() and upload_release(); these may
 * come from any thread. upload.lock orders the work on the upload's stream and
 * guards the budget; slot.lock guards the streams that acquired the slot. No
 * thread holds both. The host waits under upload.lock only for the copies of
 * pageable memory.
 */
#ifndef LOADER_RUN_GPU_UPLOAD_H
#define LOADER_RUN_GPU_UPLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/run/gpu/upload_memory.h"

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
 * Makes room in a part for `host` bytes of the host and `device` bytes of the
 * device; either may be 0. Call it after upload_begin(). If a side has to grow,
 * it loses its content, gets some more than requested, and waits for the
 * device. -ENOMEM: that side of the part is empty now.
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
 * Makes `stream` wait, on the device, until the batch is complete: work that
 * the consumer queues from now on reads complete data. The stream belongs to
 * the device's primary context and lives until the release; NULL,
 * CUDA_STREAM_LEGACY and CUDA_STREAM_PER_THREAD are valid, too. -EINVAL: it
 * is another context's stream, or the slot was not started.
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
/* Ends the round. The caller guarantees that no consumer uses its memory on the
   device any more: the host waited for the consumer, or there never was one. */
void upload_release_done(struct upload_slot *slot);
/*
 * Ends the round as upload_release() without a stream does. If the driver
 * cannot record events on the streams that acquired the slot, for example
 * because one does not exist any more, waits for the whole device. On failure
 * nothing has changed: consumers may still use the memory.
 */
int upload_finish(struct upload_slot *slot);

#endif
