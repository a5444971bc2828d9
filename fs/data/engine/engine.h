/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: streams of batches from datasets, collated by a pool of threads
 * within a memory budget. The daemon uses it behind FUSE, and a loader that
 * opened a FILE uses it in its own process. Thread-safe; no globals: a process
 * may hold several engines.
 */
#ifndef FS_DATA_ENGINE_ENGINE_H
#define FS_DATA_ENGINE_ENGINE_H

#include "fs/base/memory/budget.h"
#include "fs/base/metrics/trace.h"
#include "fs/data/cache/choice.h"
#include "fs/data/dataset/verify.h"
#include "fs/data/engine/plan.h"
#include "fs/data/engine/slot.h"

struct engine;
struct stream;
struct ticket;

struct engine_options {
	struct log *log;     /* must outlive the engine; may be NULL */
	struct trace *trace; /* must outlive the engine; may be NULL */
	/* Threads that work for one user on one dataset at a time (default: 2).
	   If other users or datasets wait, the engine starts more. */
	unsigned threads;
	/* Threads that help with collating large batches (default: none). */
	unsigned helpers;
	/* Prefetch depth: batches that are collated before readers request
	   them; 0: none. */
	unsigned prefetch;
	struct cache_choice choice;
	/* All datasets of the engine; they outlive it. */
	struct dataset *const *datasets;
	size_t num_datasets;
	/*
	 * Bytes of batches that stay in memory after use; for tests. 0: half of
	 * a process cache, or 256 MiB if there is none. If there is no process
	 * cache, readers may use half of the budget at once, and a batch may
	 * have that size.
	 */
	uint64_t slot_bytes;
};

int engine_open(const struct engine_options *options, struct engine **out);
/* Starts the threads. They do not start in engine_open(), so that a process can
   enter a sandbox first. Call it once, before the first batch is requested.
   After a failure the caller closes the engine. */
int engine_start(struct engine *engine);
/*
 * Stops prefetching. The caller has closed all tickets. Memory that specs point
 * to must stay valid until this call returns. Takes NULL, and may be called
 * twice.
 */
void engine_stop(struct engine *engine);
/* The caller has put all slots. Takes NULL. */
void engine_close(struct engine *engine);

/* Returns the datasets of the options. */
struct dataset *const *engine_datasets(const struct engine *engine, size_t *n);

/* Returns the memory that was chosen for payloads, and a line with the
   reason. */
const struct cache_choice *engine_choice(const struct engine *engine);
const char *engine_tiers_why(const struct engine *engine);

/* Returns the budget to which all memory is charged that grows with the
   requests of readers. Its limit is that of the process cache with its cold
   tier, or half of the memory that was available at the start. */
struct budget *engine_budget(const struct engine *engine);
/* Like budget_stats(), but with the current bytes of caches instead of their
   limits. */
void engine_budget_stats(struct engine *engine, struct budget_stats *out);

/* Returns the bytes of slots that readers may hold without a time limit. */
uint64_t engine_shareable(const struct engine *engine);

/* The stages that a batch passes through. */
enum engine_stage {
	ENGINE_SOURCE,	  /* requests to the device */
	ENGINE_CACHE,	  /* values; the times are those of waits for values */
	ENGINE_COLLATION, /* batches */
	ENGINE_STAGES,
};

/* Counters since the engine was opened; `cache` is for a process cache. */
struct engine_stats {
	struct slots_stats slots;
	struct cache_stats cache;
	uint64_t direct; /* batches collated into memory of their readers */
	struct counters_sum stages[ENGINE_STAGES];
	struct verify_stats verify; /* of all datasets */
};

void engine_stats(struct engine *engine, struct engine_stats *out);

/* Like plan_readers(). */
size_t engine_readers(struct engine *engine, struct plan_reader *out,
		      size_t max);

/* Opens a stream: one epoch of one spec of a dataset, a sequence of batches.
   The dataset must outlive it. */
int stream_open(struct engine *engine, struct dataset *ds,
		const struct spec *spec, uint64_t epoch, struct stream **out);
void stream_close(struct stream *stream);

/*
 * Sets the user of the stream's tickets (default: 0). Tickets of different
 * users or datasets do not wait for each other, because one of them may wait
 * long for its disk. For them the engine starts up to ENGINE_THREADS_MORE more
 * threads.
 */
enum { ENGINE_THREADS_MORE = 128 };
void stream_set_user(struct stream *stream, uint64_t user);

/* Sets the rank of the loader that reads the stream. Then the plan expects its
   batches from the first one on, and reads no others. */
void stream_set_share(struct stream *stream, const struct batch_share *share);

/*
 * Gets the layout of a batch, with a reference for the caller. Recent layouts
 * are cached. `afresh`: if a sample of the cached layout failed by an I/O
 * error, compute it again. -ENOENT past the end, -EFBIG if it does not fit into
 * memory.
 */
int stream_batch(struct stream *stream, uint64_t number, bool afresh,
		 struct batch **out);

/* Writes the sizes and the advice for -EFBIG. */
enum { ENGINE_WHY_SIZE = 200 };
void engine_explain_size(const struct engine *engine, char *out, size_t size);

/* Gets the same layout as stream_batch() with `afresh` if it is cached, and
   reads nothing. Returns false if it must be computed. */
bool stream_cached(struct stream *stream, uint64_t number, struct batch **out);

/* Records that a reader opens this batch. It is likely to request the batches
   after it. */
void stream_note(struct stream *stream, uint64_t number);

/* Memory for a whole batch file, owned by the caller. If `bytes` is NULL, a
   shared slot is used instead. */
struct dest {
	void *bytes;
	uint64_t size; /* at least batch->vfile.size */
};

/*
 * Called once per submission, on a thread of the engine, unless the ticket was
 * closed before the work began. `result` is 0 or -errno. `slot` is NULL or the
 * shared slot, with a reference that the receiver drops.
 */
typedef void batch_done(void *arg, int result, struct slot *slot);

/* Starts to collate a batch of this stream and takes a reference to it. */
int stream_submit(struct stream *stream, struct batch *batch,
		  const struct dest *dest, batch_done *done, void *arg,
		  struct ticket **out);

/* Called like batch_done. `batch` is NULL if `result` is not 0, and otherwise
   has a reference that the receiver drops. */
typedef void layout_done(void *arg, int result, struct batch *batch);

/* Starts stream_batch() with `afresh` on a thread of the engine. */
int stream_lay_out(struct stream *stream, uint64_t number, layout_done *done,
		   void *arg, struct ticket **out);

/* Cancels work that has not begun, waits for work that has, and frees the
   ticket. Close every ticket once, but not inside its batch_done. Takes NULL.
 */
void ticket_close(struct ticket **ticket);
/* Like ticket_close(), but returns false and does nothing if it would have to
   wait. */
bool ticket_try_close(struct ticket **ticket);

/* Returns whether a shared slot holds the batch, so that a reader does not
   wait. */
bool stream_ready(struct stream *stream, const struct batch *batch);

/* Collates the batch into a shared slot and waits for it. */
int stream_slot(struct stream *stream, struct batch *batch, struct slot **out);
/* Like slots_leave(). */
void stream_leave(struct stream *stream, const struct batch *batch,
		  struct slot_reader *reader);

#endif
