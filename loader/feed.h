/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a loader's batch files come from. One row each: "file" runs the engine
 * inside the process, "mount" reads the files of a daemon.
 */
#ifndef LOADER_FEED_H
#define LOADER_FEED_H

#include "fs/log.h"
#include "fs/spec.h"
#include "loader/buffer.h"
#include "loader/pipeline.h"
#include "loader/view.h"

struct feed;

struct feed_ops {
	const char *name;
	const char *delivery; /* how the bytes come */
	/* Whether this is the feed for what lies at the path. */
	bool (*is_for)(const char *path);
	/* Allocates *out (this feed's own struct) and fills what it tells. */
	int (*open)(const char *path, struct log *log, struct feed **out);
	/*
	 * A whole batch file into `into`, grown as needed; *size is its size.
	 * One thread at a time. Failures are logged.
	 */
	int (*fetch)(struct feed *feed, uint64_t epoch, uint64_t number,
		     struct buffer *into, uint64_t *size);
	/*
	 * Puts the subset that a spec asks for among those of the feed, or
	 * checks that it is the one that the feed has under that name. NULL:
	 * the feed uses what it was given. Failures are logged.
	 */
	int (*find_subset)(struct feed *feed, const struct subset_ref *ref);
	void (*close)(struct feed *feed);
};

struct feed_name {
	char name[20];
	char stem[BETON_STEM_SIZE];
};

/* What every feed begins with; filled by its open(). */
struct feed {
	const struct feed_ops *ops;
	struct log *log;
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

/* Chooses by the path. Failures are logged. */
int feed_open(const char *path, struct log *log, struct feed **out);
/* Opens the subset ("NAME:FILE" or NULL) and parses the spec (NULL: defaults).
   -EINVAL is logged. */
int feed_start(struct feed *feed, const char *spec, const char *subset);
void feed_close(struct feed *feed);

/* For open(): room for n fields. */
int feed_make_fields(struct feed *feed, uint32_t n);

/*
 * fetch(), checked: the batch file is whole, of this dataset and the one asked
 * for. The view borrows `into`. Failures are logged.
 */
int feed_fetch(struct feed *feed, uint64_t epoch, uint64_t number,
	       struct buffer *into, struct view *out);

#endif
