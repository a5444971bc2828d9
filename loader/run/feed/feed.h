/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources of batch files. Each is a row: "file" runs the engine inside the
 * process, "mount" gets them from a daemon, "synthetic" makes synthetic ones.
 */
#ifndef LOADER_RUN_FEED_FEED_H
#define LOADER_RUN_FEED_FEED_H

#include <stdatomic.h>

#include "fs/base/metrics/rank_figures.h"
#include "fs/base/metrics/trace.h"
#include "fs/base/order/spec_text.h"
#include "fs/base/util/log.h"
#include "fs/data/cache/choice.h"
#include "fs/source/local/options.h"
#include "loader/run/feed/batch_view.h"
#include "loader/util/scratch.h"
#include "loader/util/value.h"

struct cancel;
struct disk_stats;
struct source_net_stats;
struct synthetic;
struct feed;

/* The values of feed_options.delivery, as a list of words. */
#define FEED_DELIVERIES "auto|zero-copy|direct"

/* open() returns it for a path that another feed serves. */
enum { FEED_OTHER = 1 };

struct feed_options {
	struct log *log;
	/* Asked until feed_start() returns. NULL: never. */
	struct cancel *interrupted;
	struct trace *trace; /* for a file's engine; may be NULL */
	/* Not owned. Its samples, if it has any, replace those of the path. */
	const struct synthetic *synthetic;
	/* Delivery from a mount: "zero-copy" or "direct". NULL or
	   "auto": the first of them that works. */
	const char *delivery;
	/* For a file's engine. */
	struct cache_choice choice;
	/* Threads of the loader, as many as may copy a batch; 0: one. */
	uint32_t workers;
	/* How URLs are read. NULL: the defaults. */
	const struct source_options *storage;
	/* Compare what is read with checksums. A mount must have been mounted
	   so. */
	bool verify;
	/* Identify the loader to the daemon. job may be NULL. */
	const char *job;
	uint32_t rank;
	uint32_t world_size;
};

/* A batch file: in memory of the loader, which the next batch uses again, or in
   shared memory until feed_release(). */
struct feed_batch {
	struct buffer own;
	const uint8_t *bytes;
	uint64_t size;
	void *shared; /* NULL: the bytes are in `own` */
	/* Set by the caller of fetch(): the user has asked for this batch
	   alone, and no later ones follow it. */
	bool is_named;
};

struct feed_ops {
	const char *name;
	/* Allocates and fills *out, a struct that begins with struct feed.
	   FEED_OTHER: this feed does not serve the path. */
	int (*open)(const char *path, const struct feed_options *options,
		    struct feed **out);
	/* Gets a whole batch file; `own` grows as needed. One thread at a time.
	   Failures are logged. */
	int (*fetch)(struct feed *feed, uint64_t epoch, uint64_t number,
		     struct feed_batch *into);
	/* Makes fetch() fail soon, now and later, although its data does not
	   come. Any thread. NULL: fetch() waits for its data. */
	void (*cancel)(struct feed *feed);
	/* Lets the user of the loader hold shared memory, and write to it,
	   until release(), also after close(). Returns false if there is too
	   little of it. Only the thread of fetch(). NULL: the feed has none. */
	bool (*keep)(struct feed *feed, void *shared);
	/* Releases shared memory. Any thread. NULL: the feed has none. */
	void (*release)(struct feed *feed, void *shared);
	/* Adds the subset that a spec names to the feed's. If the feed has one
	   of that name, checks that both are the same. NULL: the feed has only
	   the subsets that it was given. Failures are logged. */
	int (*find_subset)(struct feed *feed, const struct subset_ref *ref);
	/* Sends figures to the daemon's statistics. Only for the thread of
	   fetch(), or the one that has joined it. NULL: there is no daemon. */
	void (*report)(struct feed *feed, const struct rank_figures *figures);
	/* Takes bytes of the feed's memory limit for entry points of JPEGs,
	   until feed_stop(). Returns false if their share of the limit, or the
	   limit, is exhausted. One thread at a time. NULL: the feed has no
	   limit. */
	bool (*take_entries)(struct feed *feed, uint64_t bytes);
	/* As source_net_stats() and dataset_tier_stats(). Any thread. NULL:
	   the feed reads no URL. */
	bool (*network)(const struct feed *feed, struct source_net_stats *net,
			struct disk_stats *tier);
	void (*close)(struct feed *feed);
};

enum { FEED_WHY_SIZE = 200 };

struct feed_name {
	char name[20];
	char stem[BETON_STEM_SIZE];
};

/* The beginning of every feed's struct. open() fills it. */
struct feed {
	const struct feed_ops *ops;
	bool stopped;
	struct log *log;
	/* Copied from the options for open() and find_subset(); then NULL. */
	struct cancel *interrupted;
	const char *_Atomic delivery; /* of the last batch */
	/* The reason of "direct", a constant; else NULL. */
	const char *_Atomic why_direct;
	char *path;
	struct spec_facts facts;
	struct subset *subsets; /* facts.subsets; owned */
	char fingerprint[2 * BETON_FINGERPRINT_SIZE + 1]; /* hexadecimal */
	/* The reason why the last fetch() failed with -EFBIG. Only for its
	   thread. "": unknown, because the daemon of a mount has logged it. */
	char why[FEED_WHY_SIZE];
	uint32_t num_fields;
	struct pipeline_field *fields;
	struct feed_name *names; /* fields[].name and .stem point here */
	struct spec spec;	 /* set by feed_start() */
	char spec_text[SPEC_TEXT_MAX];
};

extern const struct feed_ops feed_file;
extern const struct feed_ops feed_mount;
extern const struct feed_ops feed_synthetic;

/* Opens the subset ("NAME:FILE" or NULL) and parses the spec (NULL: defaults).
   -EINVAL is logged. */
int feed_start(struct feed *feed, const char *spec, const char *subset);
/* Closes files and connections. The members stay, but fetch() must not be
   called any more, and release() only for memory that is kept. */
void feed_stop(struct feed *feed);
void feed_close(struct feed *feed);

/* Allocates `fields` and `names` for n fields. For open(). */
int feed_make_fields(struct feed *feed, uint32_t n);

/* The name of a batch, and the number of fields of its file. */
struct feed_expected {
	uint64_t epoch;
	uint64_t number;
	uint32_t num_fields;
};

/* Checks that a batch file is whole, of this dataset, and the expected one.
   The view points into `batch`. Returns -ESTALE, or the errors of
   batch_view_init(); `why` receives the reason. */
int feed_check(const struct feed *feed, const struct feed_batch *batch,
	       const struct feed_expected *as, struct batch_view *out,
	       char why[BATCH_VIEW_WHY_SIZE]);

/* Fetches a batch file and does feed_check(). The view points into `into`.
   Failures are logged. */
int feed_fetch(struct feed *feed, uint64_t epoch, uint64_t number,
	       struct feed_batch *into, struct batch_view *out);
/* Whether the feed itself reads a URL. */
bool feed_is_remote(const struct feed *feed);
/* Calls take_entries(). `feed` is a struct feed. */
bool feed_take_entries(void *feed, uint64_t bytes);
/* Ends the wait of a thread in feed_fetch(), which fails from now on. Any
   thread. Does nothing after feed_stop(). */
void feed_cancel(struct feed *feed);
/* Returns whether the user may hold the batch file, and write to it, until
   feed_release(). Only the thread that fetched it. */
bool feed_keep(struct feed *feed, const struct feed_batch *batch);
/* Releases the batch file. Any thread. */
void feed_release(struct feed *feed, struct feed_batch *batch);

#endif
