/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open dataset: its format, its fields, and the offset of every value. It is
 * one file, or several files with the same fields. Their samples follow each
 * other, and so do their bytes in the source. Opening is O(1): it checks header
 * and descriptors. Metadata and pointers are checked when they are used. Only
 * the allocation table changes after that: it is read on first use, under a
 * lock. Therefore every function is thread-safe.
 */
#ifndef FS_DATA_DATASET_DATASET_H
#define FS_DATA_DATASET_DATASET_H

#include <pthread.h>
#include <stdatomic.h>

#include "fs/data/dataset/alloc_table.h"
#include "fs/data/dataset/format.h"
#include "fs/source/local/options.h"
#include "fs/source/local/source.h"

struct payloads;

/* Counts of values that were read through a cache. */
enum payload_count {
	PAYLOAD_HITS,	  /* in the cache */
	PAYLOAD_STALLED,  /* being read: the reader had to wait */
	PAYLOAD_MISSES,	  /* nothing requested it before */
	PAYLOAD_BYPASSED, /* read without the cache; also counted as one of the
			     others */
	PAYLOAD_BYTES,
	PAYLOAD_WAIT_NS, /* spent waiting for PAYLOAD_STALLED */
	PAYLOAD_COUNTS,
};

struct payload_tally {
	atomic_uint_fast64_t n[PAYLOAD_COUNTS];
	atomic_uint_fast64_t owner; /* identifies the reader to the cache */
};

/* A range of a sample's payloads, and the memory for it. */
struct payload_read {
	uint64_t sample;
	uint64_t off; /* in the dataset file */
	size_t size;
	void *buf;
	/* The bytes leave the CPU's caches before they are read. */
	bool is_streamed;
	struct payload_tally *tally; /* to add to, or NULL */
};

/* A cache in front of the source, for the payloads of batches. */
struct payload_ops {
	/* 0 or -errno, logged. */
	int (*read)(struct payloads *payloads, const struct payload_read *what);
};

struct payloads {
	const struct payload_ops *ops;
};

/* One file of a dataset of several. */
struct dataset_part {
	struct dataset *ds;
	uint64_t first; /* the dataset's number of its sample 0 */
	uint64_t base;	/* offset of its bytes in the dataset's source */
};

struct dataset {
	struct log *log;
	/* The path or URL, with its secrets: to open siblings, not for
	   messages. NULL: dataset_path(). */
	char *given;
	struct source *source;
	struct format format;
	uint8_t fingerprint[BETON_FINGERPRINT_SIZE];
	pthread_mutex_t lock;
	struct alloc *alloc; /* guarded by lock until it is set */
	int alloc_error;     /* guarded by lock: why it cannot be read */
	unsigned num_probes; /* guarded by lock: sizes found without it */
	size_t tables; /* that share the memory for tables; parts have several
			*/
	struct payloads *payloads; /* NULL: read from the source */
	/* NULL: one file. If there are several, `format` has the sums of
	   samples and bytes but no offsets, and each part has its own
	   `alloc`. */
	struct dataset_part *parts;
	size_t num_parts;
};

/*
 * Opens one file or URL (joined.h opens several). NULL options: the defaults.
 * Failures are logged: -ENOENT and the
 * like, -BETON_ENOTBETON, -BETON_ECORRUPT. The log must outlive the dataset.
 */
int dataset_open(const char *path, const struct source_options *options,
		 struct log *log, struct dataset **out);
/* Like dataset_open(), for a source that it takes over, also after a failure.
 */
int dataset_open_source(struct source *source, struct log *log,
			struct dataset **out);
void dataset_close(struct dataset *ds);

/* For joined.h: makes a dataset that is not open yet, for dataset_close() to
   free. Returns NULL if memory is short. */
struct dataset *dataset_new(struct log *log);

/* Updates two chained hashes of 64 bits with bytes, padded to whole words. */
void dataset_hash(uint64_t hash[2], const uint8_t *bytes, size_t size);

/* For messages: URLs have neither users nor queries. */
const char *dataset_path(const struct dataset *ds);

struct disk_stats;

/* Adds up the figures of the disk tiers of its sources. Returns false if there
   are none. */
bool dataset_tier_stats(const struct dataset *ds, struct disk_stats *out);

/* Returns whether any of its bytes come over a network by a URL. */
bool dataset_is_remote(const struct dataset *ds);

/* Returns the bytes of memory that its sources use at most: 0 if none of them
   is behind a URL. */
uint64_t dataset_memory(const struct dataset *ds);

/* Returns the bytes of the pages, or of the metadata if there are no pages.
   Divided by the number of samples, this is the mean size of a sample
   (beton-orders(7)). */
uint64_t dataset_data_bytes(const struct dataset *ds);

/* Returns the file that contains the sample. NULL: the dataset is one file. */
const struct dataset_part *dataset_part_of(const struct dataset *ds,
					   uint64_t sample);

/* Prints the content of dataset.json to *out, which the caller frees. */
int dataset_json(const struct dataset *ds, char **out);

#endif
