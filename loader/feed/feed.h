/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a loader's batch files come from. One row each: "file" runs the engine
 * inside the process, "mount" has them from a daemon, "fake" makes them up.
 */
#ifndef LOADER_FEED_FEED_H
#define LOADER_FEED_FEED_H

#include <stdatomic.h>

#include "fs/cache/choice.h"
#include "fs/metrics/rank_figures.h"
#include "fs/metrics/trace.h"
#include "fs/order/spec_text.h"
#include "fs/util/log.h"
#include "loader/feed/batch_view.h"
#include "loader/util/scratch.h"
#include "loader/util/value.h"

struct fake;
struct feed;

struct feed_options {
	struct log *log;
	struct trace *trace; /* of a file's engine; may be NULL */
	/* Its samples, if it has any, are instead of the path's; borrowed. */
	const struct fake *fake;
	/* How a mount's batches shall come: "handover" or "direct"; NULL or
	   "auto": whichever works, the first before the second. */
	const char *delivery;
	/* Of a file's engine. */
	struct tiers tiers;
	/* Who asks, for the daemon; job may be NULL. */
	const char *job;
	uint32_t rank;
	uint32_t world;
};

/*
 * A batch file as it came: in memory of the reader's, which is kept from batch
 * to batch, or in memory that the feed lent, until feed_give_back().
 */
struct feed_batch {
	struct buffer own;
	const uint8_t *bytes;
	uint64_t size;
	void *lent; /* NULL: the bytes are own */
};

struct feed_ops {
	const char *name;
	/* Whether this is the feed for what lies at the path. */
	bool (*is_for)(const char *path);
	/* Allocates *out (this feed's own struct) and fills what it tells. */
	int (*open)(const char *path, const struct feed_options *options,
		    struct feed **out);
	/*
	 * A whole batch file; `own` is grown as needed. One thread at a time.
	 * Failures are logged.
	 */
	int (*fetch)(struct feed *feed, uint64_t epoch, uint64_t number,
		     struct feed_batch *into);
	/* Any thread; NULL where nothing is lent. */
	void (*give_back)(struct feed *feed, void *lent);
	/*
	 * Puts the subset that a spec asks for among those of the feed, or
	 * checks that it is the one that the feed has under that name. NULL:
	 * the feed uses what it was given. Failures are logged.
	 */
	int (*find_subset)(struct feed *feed, const struct subset_ref *ref);
	/* For the daemon's statistics; NULL: nobody wants to know. The thread
	   of fetch(), or the last one. */
	void (*tell)(struct feed *feed, const struct figures *figures);
	void (*close)(struct feed *feed);
};

struct feed_name {
	char name[20];
	char stem[BETON_STEM_SIZE];
};

/* What every feed begins with; filled by its open(). */
struct feed {
	const struct feed_ops *ops;
	bool stopped;
	struct log *log;
	const char *_Atomic delivery; /* how the last batch came */
	char *path;
	struct spec_facts facts;
	struct subset *subsets; /* facts.subsets; owned */
	char fingerprint[2 * BETON_FINGERPRINT_SIZE + 1]; /* hexadecimal */
	uint32_t num_fields;
	struct pipeline_field *fields;
	struct feed_name *names; /* what fields[].name and .stem point at */
	struct spec spec;	 /* after feed_start(), as the next */
	char spec_text[SPEC_TEXT_MAX];
};

extern const struct feed_ops feed_file;
extern const struct feed_ops feed_mount;
extern const struct feed_ops feed_fake;

/* Chooses by the path, unless there is a fake. Failures are logged. */
int feed_open(const char *path, const struct feed_options *options,
	      struct feed **out);
/* Opens the subset ("NAME:FILE" or NULL) and parses the spec (NULL: defaults).
   -EINVAL is logged. */
int feed_start(struct feed *feed, const char *spec, const char *subset);
/* Ends what it reads with: no fetch() and nothing to give back any more. What
   it tells stays. */
void feed_stop(struct feed *feed);
void feed_close(struct feed *feed);

/* For open(): room for n fields. */
int feed_make_fields(struct feed *feed, uint32_t n);

/*
 * fetch(), checked: the batch file is whole, of this dataset and the one asked
 * for. The view borrows `into`. Failures are logged.
 */
int feed_fetch(struct feed *feed, uint64_t epoch, uint64_t number,
	       struct feed_batch *into, struct view *out);
/* Nobody looks at the batch any more; any thread. */
void feed_give_back(struct feed *feed, struct feed_batch *batch);

#endif
