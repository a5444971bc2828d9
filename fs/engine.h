/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: streams of batches out of datasets, assembled by a pool of
 * threads, kept within a budget. The same code behind FUSE in the daemon and
 * inside the process of a loader that opened a FILE. Thread-safe; no globals:
 * a process may hold several.
 *
 * Lock order: engine.lock, then that of its pool.
 */
#ifndef FS_ENGINE_H
#define FS_ENGINE_H

#include "fs/batch.h"

struct engine;
struct stream;
struct slot;
struct ticket;

struct engine_options {
	struct log *log;  /* must outlive the engine; may be NULL */
	unsigned threads; /* that assemble; 0: 2 */
	/*
	 * Bytes of assembled batches kept for readers to come; 0: 256 MiB. More
	 * while they are being read, and the last one in any case. One batch
	 * may be as large as this or a quarter of the memory.
	 */
	uint64_t slot_bytes;
};

int engine_open(const struct engine_options *options, struct engine **out);
/* All tickets are closed and all slots put before. Takes NULL. */
void engine_close(struct engine *engine);
/* options.slot_bytes, or its default. */
uint64_t engine_budget(const struct engine *engine);

/*
 * One epoch of one SPEC of a dataset: a sequence of batches. The dataset must
 * outlive it. `name` tells streams of one engine apart and is never reused.
 */
int stream_open(struct engine *engine, struct dataset *ds,
		const struct spec *spec, uint64_t epoch, struct stream **out);
void stream_close(struct stream *stream);

/*
 * The layout of a batch, with a reference for the caller; recent ones are kept.
 * `afresh`: not a kept one in which a sample failed by I/O. -ENOENT past the
 * end, -EFBIG if it does not fit into memory.
 */
int stream_batch(struct stream *stream, uint64_t number, bool afresh,
		 struct batch **out);

/* Memory for a whole batch file: its own, or a shared slot where bytes is
   NULL. */
struct dest {
	void *bytes;
	uint64_t size; /* at least batch->vfile.size */
};

/*
 * Told once per submission, on a thread of the engine, unless the ticket was
 * closed before the work began. 0 or -errno; `slot` is NULL or the shared slot
 * with a reference that now is the receiver's.
 */
typedef void batch_done(void *arg, int result, struct slot *slot);

/* Starts to assemble a batch of this stream, which gets a reference. */
int stream_submit(struct stream *stream, struct batch *batch,
		  const struct dest *dest, batch_done *done, void *arg,
		  struct ticket **out);

/* Gives up what has not begun, waits for what has, frees the ticket. Every
   ticket is closed once; not from inside its batch_done. Takes NULL. */
void ticket_close(struct ticket **ticket);

/* Submits with a shared slot and waits. */
int stream_slot(struct stream *stream, struct batch *batch, struct slot **out);

const void *slot_bytes(const struct slot *slot);
/*
 * The memory itself, for another process to map: fd is -1 where this cannot be.
 * As long as the engine lives no other memory has the same id, and the next
 * batch in this memory has it too.
 */
int slot_fd(const struct slot *slot);
uint64_t slot_id(const struct slot *slot);
uint64_t slot_capacity(const struct slot *slot);
/* Drops the reference and the caller's pointer; takes NULL. */
void slot_put(struct slot **slot);
/* As slot_put(), where another process may go on reading: its memory will hold
   no other batch. */
void slot_abandon(struct slot **slot);

#endif
