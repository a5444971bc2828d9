/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry points of one scan, kept while it is decoded, so that later crops
 * of the same image skip what they do not need (entry_index.h). A record has
 * the entries of the rows of MCUs that were decoded without an error, and grows
 * when a crop reaches further down. Therefore skipped data is intact, and
 * damage is found as without a record. If the JPEG contains an index, the record
 * has its entries instead, and skips what a crop by the index skips.
 *
 * A record lies in memory of the caller. Any number of threads may read and
 * extend one record, without locks: one thread at a time adds entries, and the
 * others decode without adding any.
 */
#ifndef LOADER_IMAGE_JPEG_ENTRY_RECORD_H
#define LOADER_IMAGE_JPEG_ENTRY_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/image/jpeg/entry_index.h"

struct entry_record {
	uint64_t hash; /* of some bytes of the scan */
	uint32_t size; /* of the scan: no entry is past its end */
	uint32_t mcus_across;
	uint32_t mcus_down;
	uint32_t step;	/* MCUs */
	uint32_t count; /* entries of the whole scan */
	/* Rows of MCUs whose entries are known. The first entry of the next row
	   is known too. */
	atomic_uint rows;
	atomic_bool is_taken; /* a thread adds entries */
	uint64_t packed[];
};

/* The size of a record in bytes, or 0 if the scan cannot have one, or has an index
   that would gain nothing from one. */
size_t entry_record_size(const struct entry_scan *scan);

/* Starts a record without entries. */
void entry_record_init(struct entry_record *record,
		       const struct entry_scan *scan);

/*
 * Whether a record is of this scan. The caller ensures that it is of the same
 * sample; this detects a sample that has changed meanwhile, in most cases. A
 * wrong record causes wrong pixels, nothing worse.
 */
bool entry_record_is_of(const struct entry_record *record,
			const struct entry_scan *scan);

/* The number of rows whose entries are known. */
uint32_t entry_record_rows(const struct entry_record *record);

/* The number of entries of a row. */
uint32_t entry_record_per_row(const struct entry_record *record);

/* Reads an entry of a known row, or the first one of the next row. */
struct entry entry_record_at(const struct entry_record *record, size_t i);

/*
 * Reserves the right to add entries after those of `rows` rows. Returns false
 * if another thread has it, or has added entries.
 */
bool entry_record_begin(struct entry_record *record, uint32_t rows);
/* Adds an entry. */
void entry_record_put(struct entry_record *record, size_t i,
		      const struct entry *entry);
/* Ends entry_record_begin(): `rows` rows are known. */
void entry_record_end(struct entry_record *record, uint32_t rows);

/*
 * Adds all entries from the index in the JPEG, of which a record without entries
 * was initialized. Later calls do nothing.
 */
void entry_record_fill(struct entry_record *record,
		       const struct entry_index *index);
/* Whether all rows are known. */
bool entry_record_is_whole(const struct entry_record *record);

#endif
