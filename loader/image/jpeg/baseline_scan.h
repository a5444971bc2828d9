/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scan of a JPEG: the ways to decode its MCUs, which differ in where they
 * begin. Rows begin at the start, at a restart marker, at entries of an index,
 * or at entries of a record. Functions return NULL or the reason of a failure,
 * except where noted.
 */
#ifndef LOADER_IMAGE_JPEG_BASELINE_SCAN_H
#define LOADER_IMAGE_JPEG_BASELINE_SCAN_H

#include "loader/image/jpeg/baseline_header.h"
#include "loader/image/jpeg/entropy.h"
#include "loader/image/jpeg/entry_index.h"
#include "loader/image/jpeg/entry_record.h"
#include "loader/image/jpeg/huffman.h"
#include "loader/util/scratch.h"

#define BASELINE_OTHER_INDEX "an index of another file"

/* A decoder, with the memory that it uses again. */
struct baseline {
	struct huffman *tables;
	struct entropy_scan scan;
	struct scratch data; /* of the scan, without stuffing */
	struct scratch samples[BASELINE_COMPONENTS];
	struct scratch entries;
	struct scratch marks;
	const char *message;
};

/* Sets the message, or NULL for success. Returns e if there is a message. */
int baseline_say(struct baseline *b, const char *message, int e);

/* Sets the tables of the components. */
const char *baseline_scan_tables(struct baseline *b,
				 const struct baseline_image *image);
/*
 * Decodes MCUs from the first on, one run for each restart interval. An
 * interval ends with at most seven bits of padding.
 */
const char *baseline_scan_start(struct baseline *b,
				const struct baseline_image *image, uint32_t n);
/* Decodes the wanted MCUs of each row from an entry of the index on. */
const char *baseline_scan_rows(struct baseline *b,
			       const struct baseline_image *image,
			       const struct entry_index *index);
/* Makes room for the bytes of the scan without stuffing. Returns 0 or -ENOMEM,
   with the message set. */
int baseline_scan_data(struct baseline *b, const struct baseline_image *image);
/*
 * Decodes wanted MCUs of known rows, and then all rows up to `rows`, so that
 * the same data is read as from the start.
 */
const char *baseline_scan_recorded(struct baseline *b,
				   const struct baseline_image *image,
				   struct entry_record *record, uint32_t rows);
/* Decodes all MCUs, and fills `n` entries, one for each `step` MCUs of a row. */
const char *baseline_scan_index(struct baseline *b,
				const struct baseline_image *image,
				uint32_t step, uint32_t n,
				struct entry *entries);
/* Decodes MCUs from the first on, and compares them with the index. */
const char *baseline_scan_compare(struct baseline *b,
				  const struct baseline_image *image,
				  const struct entry_index *index);

#endif
