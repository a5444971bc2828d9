/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open dataset: its format, its fields, and the place of every value. Opens
 * in O(1): header and descriptors are checked then, metadata and pointers when
 * they are used. Immutable but for the allocation table, which is read on first
 * use; so everything here is thread-safe.
 */
#ifndef FS_DATASET_DATASET_H
#define FS_DATASET_DATASET_H

#include <pthread.h>
#include <stdatomic.h>

#include "fs/dataset/alloc_table.h"
#include "fs/dataset/format.h"
#include "fs/dataset/source.h"

struct payloads;

/* What reads of values through a cache met. */
enum payload_count {
	PAYLOAD_HITS,	  /* it was there */
	PAYLOAD_LATE,	  /* on its way: the reader had to wait */
	PAYLOAD_MISSES,	  /* nobody had asked for it before */
	PAYLOAD_BYPASSED, /* read without the cache, besides */
	PAYLOAD_BYTES,
	PAYLOAD_WAIT_NS, /* for reads that were under way */
	PAYLOAD_COUNTS,
};

struct payload_tally {
	atomic_uint_fast64_t n[PAYLOAD_COUNTS];
	atomic_uint_fast64_t owner; /* whose reads they are, to the cache */
};

/* A cache in front of the source, for the payloads of batches. */
struct payload_ops {
	/* A range of a sample's payloads: 0 or -errno, logged. What it met is
	   added to the tally, if there is one. */
	int (*read)(struct payloads *payloads, uint64_t sample, void *buf,
		    size_t size, uint64_t off, struct payload_tally *tally);
};

struct payloads {
	const struct payload_ops *ops;
};

struct dataset {
	struct log *log;
	struct source *source;
	struct format format;
	uint8_t fingerprint[BETON_FINGERPRINT_SIZE];
	pthread_mutex_t lock;
	struct alloc *alloc;	   /* guarded by lock until it is set */
	int alloc_error;	   /* guarded by lock: why it cannot be had */
	struct payloads *payloads; /* NULL: the source is read */
};

/*
 * Failures are logged: -ENOENT and the like, -BETON_ENOTBETON,
 * -BETON_ECORRUPT. The log must outlive the dataset.
 */
int dataset_open(const char *path, struct log *log, struct dataset **out);
void dataset_close(struct dataset *ds);

const char *dataset_path(const struct dataset *ds);

/* Bytes of the pages, or of the metadata where there are none: what a mean
   sample is a share of (beton-orders(7)). */
uint64_t dataset_data_bytes(const struct dataset *ds);

/* Reads the metadata records of samples [first, first + n), itemsize each. */
int dataset_records(struct dataset *ds, uint64_t first, uint64_t n, void *buf);

/*
 * The value of field `i` of a sample, out of its record. -BETON_ECORRUPT, and
 * one line in the log, if it points anywhere but into a page; -EOPNOTSUPP for
 * fields that cannot be placed.
 */
int dataset_value(struct dataset *ds, uint32_t field, uint64_t sample,
		  const uint8_t *record, struct value *out);

/* The same, without a word about damage: for looking ahead. */
int dataset_place(struct dataset *ds, uint32_t field, uint64_t sample,
		  const uint8_t *record, struct value *out);

/* Reads one record, then dataset_value(). */
int dataset_value_at(struct dataset *ds, uint32_t field, uint64_t sample,
		     struct value *out);

/*
 * How many reads it may take to find the size of a JPEG; 0: none, or they
 * cannot be found at all. -errno: the table could not be read.
 */
int dataset_size_reads(struct dataset *ds, size_t *out);

/* What dataset.json holds: text in *out, the caller's. */
int dataset_json(const struct dataset *ds, char **out);

#endif
