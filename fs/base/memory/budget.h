/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that one process may use for data. Everything that grows with the
 * requests of readers takes its bytes here first, by purpose, and returns them
 * after use. All purposes together never exceed the limit.
 *
 * One purpose may be elastic, a cache: it uses all bytes that the others leave.
 * If another purpose needs some of them, the budget shrinks the cache first.
 *
 * A peer may also pin memory without a time limit: buffers that it holds, files
 * that it keeps open. The budget counts pinned bytes per user. Each user may
 * pin a multiple of the bytes that no user has pinned yet, so that a part is
 * always left for any number of other users.
 *
 * All functions accept a NULL budget, which has no limit. Thread-safe. No lock
 * of a budget is held while its callbacks run, except budget.resizing.
 */
#ifndef FS_BASE_MEMORY_BUDGET_H
#define FS_BASE_MEMORY_BUDGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct budget;
struct log;

/*
 * A row for each purpose: number, name in statistics, description, and rank.
 * Purposes of rank 0 take few bytes at once. Ranks 1 and 2 each leave a part of
 * the limit to lower ranks, which do not wait behind them either. For example,
 * a mount that is full of batches still finds names and opens files. If one
 * reader causes the layout of huge batches, other readers still get batches. A
 * small request of rank 2 counts as one of rank 1.
 */
/* clang-format off */
#define BUDGET_ROWS(row)                                                       \
	row(BUDGET_CACHE, "cache", "pages of a process cache", 1)              \
	row(BUDGET_COLD, "cold", "compressed pages of its cold tier", 1)       \
	row(BUDGET_SLOTS, "slots", "batches in use or ready for use", 1)       \
	row(BUDGET_ABANDONED, "abandoned", "batches that only others map", 1)  \
	row(BUDGET_LAYOUTS, "layouts", "offsets of values in batch files", 2)  \
	row(BUDGET_INDEXES, "indexes", "groups of samples, entry points of JPEGs", 2) \
	row(BUDGET_VERIFY, "verify", "blocks that are being verified", 0)      \
	row(BUDGET_REMOTE, "remote", "tables of URLs, copies for disk tiers", 0) \
	row(BUDGET_FILES, "files", "open files and texts that they show", 0)   \
	row(BUDGET_NAMES, "names", "sampling specs and epochs by name", 0)     \
	row(BUDGET_CONNECTIONS, "connections", "loaders and their requests", 0)
/* clang-format on */

#define BUDGET_NUMBER(number, name, help, bulk) number,
enum budget_use { BUDGET_ROWS(BUDGET_NUMBER) BUDGET_USES };
#undef BUDGET_NUMBER

/* Kinds of pinned memory: number, and n for 1/n of the limit that all users may
   pin together. The kinds are independent: a loader that may pin no more
   batches can still open their files. */
#define BUDGET_PIN_ROWS(row)                                                   \
	row(BUDGET_PIN_BATCHES, 2)	 /* batches that peers hold */         \
		row(BUDGET_PIN_FILES, 4) /* open files and their layouts */

#define BUDGET_PIN_NUMBER(number, part) number,
enum budget_pin { BUDGET_PIN_ROWS(BUDGET_PIN_NUMBER) BUDGET_PINS };
#undef BUDGET_PIN_NUMBER

/* If a caller has waited without success, the budget logs it. `log` may be
   NULL. */
int budget_open(uint64_t limit, struct log *log, struct budget **out);
/* Logs an error if bytes are still taken. Takes NULL. */
void budget_close(struct budget *budget);

/* BUDGET_CACHE is elastic: it keeps at least `least` bytes. The budget calls
   resize() with the new size, one call at a time; it returns when the cache is
   no larger. Call this function before other threads use the budget. */
void budget_set_elastic(struct budget *budget, uint64_t least,
			void (*resize)(void *arg, uint64_t bytes), void *arg);

/* Adds a function that frees about `bytes` of memory which is only cached for
   reuse, returns it to the budget, and reports whether it freed any. Call this
   before other threads use the budget. */
enum { BUDGET_RECLAIMERS_MAX = 4 };
void budget_add_reclaimer(struct budget *budget,
			  bool (*reclaim)(void *arg, uint64_t bytes),
			  void *arg);

/*
 * Takes bytes. If there are not enough, frees memory by the reclaimers, and
 * then waits up to `wait_ms` milliseconds, in the order of arrival. -ENOMEM:
 * still not enough. The caller holds no lock that a reclaimer or resize()
 * takes.
 */
int budget_take(struct budget *budget, enum budget_use use, uint64_t bytes,
		uint32_t wait_ms);
/* Takes bytes that no purpose uses: frees nothing, and waits for nothing.
   -ENOMEM: there are not enough, or others wait for them. */
int budget_take_unused(struct budget *budget, enum budget_use use,
		       uint64_t bytes);
/* Returns bytes to the budget. May be called with any locks held. */
void budget_give(struct budget *budget, enum budget_use use, uint64_t bytes);
/* Changes the purpose of bytes that are taken. */
void budget_move(struct budget *budget, enum budget_use from,
		 enum budget_use to, uint64_t bytes);

/* Lets the elastic cache grow by bytes that other purposes have returned. Call
   it from time to time, without locks. */
void budget_settle(struct budget *budget);

/* Counts bytes that a user pins. -ENOSPC: it would exceed the share of the
   user. `force` skips this check, for bytes that are pinned already. */
int budget_pin(struct budget *budget, enum budget_pin pin, uid_t uid,
	       uint64_t bytes, bool force);
/* Reverts budget_pin() for the same bytes. */
void budget_unpin(struct budget *budget, enum budget_pin pin, uid_t uid,
		  uint64_t bytes);

struct budget_stats {
	uint64_t limit;
	uint64_t used[BUDGET_USES]; /* [BUDGET_CACHE]: its size limit now */
	uint64_t pinned;
	uint64_t refused; /* calls that failed */
	uint64_t waits;	  /* calls that had to wait */
};

/* All zero without a budget. */
void budget_stats(struct budget *budget, struct budget_stats *out);

#endif
