/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: streams of batches from datasets, assembled by a pool of threads,
 * kept within a memory budget. The daemon uses it behind FUSE, and a loader
 * that opened a FILE uses it in its own process. Thread-safe; no globals: a
 * process may hold several engines.
 *
 * Lock order: engine.lock, then the locks of slots.
 */
#ifndef FS_ENGINE_ENGINE_H
#define FS_ENGINE_ENGINE_H

#include "fs/cache/choice.h"
#include "fs/engine/plan.h"
#include "fs/engine/slot.h"
#include "fs/memory/budget.h"
#include "fs/metrics/trace.h"

struct engine;
struct stream;
struct ticket;

struct engine_options {
	struct log *log;     /* must outlive the engine; may be NULL */
	struct trace *trace; /* must outlive the engine; may be NULL */
	/* Threads that work for one user on one dataset at a time (default: 2).
	   More are started if others wait. */
	unsigned threads;
	/* Batches that are assembled before their readers ask for them; 0:
	   none. */
	unsigned ahead;
	struct cache_choice choice;
	/* All datasets that will be read; they outlive the engine. */
	struct dataset *const *datasets;
	size_t num_datasets;
	/*
	 * Bytes of batches that stay after use; tests set it. 0: half of a
	 * process cache, or else 256 MiB. Without a process cache, readers may
	 * use half of the budget at once, and a batch may be as large as that.
	 */
	uint64_t slot_bytes;
};

int engine_open(const struct engine_options *options, struct engine **out);
/* Starts the threads: a process may confine itself before it has any. Call it
   once, before the first batch is requested. After a failure the caller closes
   the engine. */
int engine_start(struct engine *engine);
/*
 * Stops reading and assembling ahead of readers. The caller has closed all
 * tickets. Memory that a SPEC points to must stay until then. Takes NULL, and
 * may be called twice.
 */
void engine_stop(struct engine *engine);
/* The caller has put all slots. Takes NULL. */
void engine_close(struct engine *engine);

/* The memory that was chosen for payloads, and a line that says why. */
const struct cache_choice *engine_choice(const struct engine *engine);
const char *engine_tiers_why(const struct engine *engine);

/* All memory that grows with what readers do is charged to it. Its limit is
   that of the process cache with its cold tier, or half of the memory that was
   available at the start. */
struct budget *engine_budget(const struct engine *engine);
/* Like budget_stats(), but with the bytes that caches have at the moment. */
void engine_budget_stats(struct engine *engine, struct budget_stats *out);

/* Bytes of slots that readers may hold for a long time. */
uint64_t engine_lendable(const struct engine *engine);

/* The stages that a batch passes through. */
enum engine_stage {
	ENGINE_SOURCE,	 /* requests to the device */
	ENGINE_CACHE,	 /* values; its times are waits for them */
	ENGINE_ASSEMBLY, /* batches */
	ENGINE_STAGES,
};

/* Counters since the engine was opened; `cache` is for a process cache. */
struct engine_stats {
	struct slots_stats slots;
	struct cache_stats cache;
	uint64_t direct; /* batches assembled into memory of their readers */
	struct counters_sum stages[ENGINE_STAGES];
};

void engine_stats(struct engine *engine, struct engine_stats *out);

/* Like plan_readers(). */
size_t engine_readers(struct engine *engine, struct plan_reader *out,
		      size_t max);

/* A stream: one epoch of one SPEC of a dataset, a sequence of batches. The
   dataset must outlive it. */
int stream_open(struct engine *engine, struct dataset *ds,
		const struct spec *spec, uint64_t epoch, struct stream **out);
void stream_close(struct stream *stream);

/*
 * The user whose tickets those of the stream are (default: 0). Tickets of
 * different users or datasets do not wait for each other, because one of them
 * may wait long for its disk: up to ENGINE_THREADS_MORE threads are started.
 */
enum { ENGINE_THREADS_MORE = 128 };
void stream_set_user(struct stream *stream, uint64_t user);

/*
 * Gets the layout of a batch, with a reference for the caller; recent ones are
 * kept. `afresh`: compute it again if a sample of the kept one failed by an I/O
 * error. -ENOENT past the end, -EFBIG if it does not fit into memory.
 */
int stream_batch(struct stream *stream, uint64_t number, bool afresh,
		 struct batch **out);

/* The same layout as stream_batch() with `afresh`, if it is kept: reads
   nothing. False: it must be made. */
bool stream_kept(struct stream *stream, uint64_t number, struct batch **out);

/* Notes that a reader opens this batch and will want those that come after it.
 */
void stream_note(struct stream *stream, uint64_t number);

/* Memory for a whole batch file: the caller's, or a shared slot if `bytes` is
   NULL. */
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

/* Starts to assemble a batch of this stream and takes a reference to it. */
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
/* The same, but returns false and does nothing if it would have to wait. */
bool ticket_try_close(struct ticket **ticket);

/* Whether a shared slot holds the batch, so that a reader need not wait. */
bool stream_ready(struct stream *stream, const struct batch *batch);

/* Assembles the batch into a shared slot and waits for it. */
int stream_slot(struct stream *stream, struct batch *batch, struct slot **out);
/* Like slots_leave(). */
void stream_leave(struct stream *stream, const struct batch *batch);

#endif
