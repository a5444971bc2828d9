/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: streams of batches out of datasets, assembled by a pool of
 * threads, kept within a budget. The same code behind FUSE in the daemon and
 * inside the process of a loader that opened a FILE. Thread-safe; no globals:
 * a process may hold several.
 *
 * Lock order: engine.lock, then those of slots.
 */
#ifndef FS_ENGINE_ENGINE_H
#define FS_ENGINE_ENGINE_H

#include "fs/cache/choice.h"
#include "fs/engine/plan.h"
#include "fs/engine/slot.h"
#include "fs/metrics/trace.h"

struct engine;
struct stream;
struct ticket;

struct engine_options {
	struct log *log;     /* must outlive the engine; may be NULL */
	struct trace *trace; /* as the log */
	unsigned threads;    /* that assemble; 0: 2 */
	/* Batches assembled before their readers come; 0: none. */
	unsigned ahead;
	struct tiers tiers;
	/* All that will be read; they outlive the engine. */
	struct dataset *const *datasets;
	size_t num_datasets;
	/*
	 * Bytes of assembled batches, for tests; 0: half of a process cache, or
	 * 256 MiB, and more while more are read at once. One batch may be as
	 * large as this, or without a process cache a quarter of the memory.
	 */
	uint64_t slot_bytes;
};

int engine_open(const struct engine_options *options, struct engine **out);
/*
 * Ends what goes on by itself: nothing is read or assembled ahead of its reader
 * any more. All tickets are closed before. Until then, what a SPEC borrows must
 * stay, whoever named it; takes NULL, and may be called twice.
 */
void engine_stop(struct engine *engine);
/* All slots are put before. Takes NULL. */
void engine_close(struct engine *engine);

/* What was chosen, and why, in a line. */
const struct tiers *engine_tiers(const struct engine *engine);
const char *engine_tiers_why(const struct engine *engine);

/* Bytes of slots that readers may hold for long. */
uint64_t engine_lendable(const struct engine *engine);

/* What a batch is made by. */
enum engine_stage {
	ENGINE_SOURCE,	 /* requests that the device was asked for */
	ENGINE_CACHE,	 /* values; times: of waiting for them */
	ENGINE_ASSEMBLY, /* batches */
	ENGINE_STAGES,
};

/* Counters since open; `cache` is of a process cache. */
struct engine_stats {
	struct slots_stats slots;
	struct cache_stats cache;
	uint64_t direct; /* batches assembled in memory of their readers */
	struct tally_sum stages[ENGINE_STAGES];
};

void engine_stats(struct engine *engine, struct engine_stats *out);

/* As plan_readers(). */
size_t engine_readers(struct engine *engine, struct plan_reader *out,
		      size_t max);

/*
 * One epoch of one SPEC of a dataset: a sequence of batches. The dataset must
 * outlive it.
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

/* A reader opens this batch, and will want those that come after it. */
void stream_note(struct stream *stream, uint64_t number);

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

/* Whether ticket_close() would have to wait. */
bool ticket_is_running(const struct ticket *ticket);

/* Gives up what has not begun, waits for what has, frees the ticket. Every
   ticket is closed once; not from inside its batch_done. Takes NULL. */
void ticket_close(struct ticket **ticket);

/* Whether a shared slot has it: nobody would have to wait. */
bool stream_ready(struct stream *stream, const struct batch *batch);

/* Submits with a shared slot and waits. */
int stream_slot(struct stream *stream, struct batch *batch, struct slot **out);
/* As slots_leave(). */
void stream_leave(struct stream *stream, const struct batch *batch);

#endif
