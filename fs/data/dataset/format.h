/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the file format of FFCV, version 2 (beton(5)), into struct format.
 * Every number is checked here against the file's size. Does no I/O.
 */
#ifndef FS_DATA_DATASET_FORMAT_H
#define FS_DATA_DATASET_FORMAT_H

#include <stdint.h>

#include "fs/data/dataset/field.h"

enum {
	FORMAT_VERSION = 2,
	FORMAT_HEADER_SIZE = 24,
	FORMAT_DESCRIPTOR_SIZE = 1041,
	FORMAT_NAME_SIZE = 16,	/* at offset 1 of a descriptor */
	FORMAT_ARGS_OFF = 17,	/* offset in a descriptor */
	FORMAT_ENTRY_SIZE = 24, /* of the allocation table */
	/* FFCV's writer starts at 2 MiB; smaller pages are legal in a file. */
	FORMAT_PAGE_SIZE_MIN = 512,
	/* FFCV has no limit. This one bounds the memory for descriptors. */
	FORMAT_FIELDS_MAX = 4096,
	/* Bytes of a table that are always read at once. */
	FORMAT_TABLE_ANY = 1 << 20,
	/* The maximum number of entries that the custom fields of one sample
	   have. FFCV has no limit, because a user's code writes them. */
	FORMAT_CUSTOM_ENTRIES = 1 << 16,
	FORMAT_WHY_SIZE = 160,
};

/* An inode number has 36 bits for the number of a sample. */
#define FORMAT_SAMPLES_MAX ((uint64_t)1 << 36)

/* A rule that the header, a descriptor or the layout of a file may break. */
enum format_rule {
	FORMAT_RULE_VERSION,
	FORMAT_RULE_FINISHED,
	FORMAT_RULE_FIELDS,
	FORMAT_RULE_PAGE_SIZE,
	FORMAT_RULE_SAMPLES,
	FORMAT_RULE_WHOLE, /* the file is not cut off */
	FORMAT_RULE_TABLE_PLACE,
	FORMAT_RULE_TYPE,
	FORMAT_RULE_NAME,
	FORMAT_RULE_ARGUMENTS,
	FORMAT_RULE_TABLE_SIZE,
	FORMAT_RULE_METADATA,
	FORMAT_RULE_PAGES,
	FORMAT_RULE_ARRAY_SIZE,
};

/* Receives every fault, with its values in `why`. */
struct format_faults {
	void (*found)(void *arg, enum format_rule rule, const char *why);
	void *arg;
};

struct format {
	uint32_t num_fields;
	uint32_t page_size;
	uint64_t samples;
	uint64_t file_size;
	uint64_t meta_off;   /* of the metadata records */
	uint64_t itemsize;   /* bytes of a record; 0: unknown, because of custom
				fields */
	uint64_t first_page; /* table_off if there are no pages */
	uint64_t table_off;  /* of the allocation table */
	uint64_t table_entries;
	uint64_t sample_entries; /* that one sample may have */
	struct field *fields;	 /* owned */
};

/* An entry of the allocation table. */
struct format_entry {
	uint64_t sample;
	uint64_t off;
	uint64_t size;
};

struct format_entry format_entry_parse(const uint8_t bytes[FORMAT_ENTRY_SIZE]);

/*
 * Parses the header, which contains the number of descriptors that follow.
 * -BETON_ENOTBETON or -BETON_ECORRUPT, with the reason and the values in `why`.
 */
int format_parse_header(struct format *f, uint64_t file_size,
			const uint8_t header[FORMAT_HEADER_SIZE],
			char why[FORMAT_WHY_SIZE]);

/* Parses the descriptors into f->fields. Lays records out, unless a custom
   field leaves their layout open (itemsize 0). */
int format_parse_fields(struct format *f, const uint8_t *descriptors,
			char why[FORMAT_WHY_SIZE]);

/*
 * Lays out the records with `custom_size` bytes aligned to `custom_align` for
 * every custom field, and checks that records, pages and table fit the file.
 */
int format_lay_out(struct format *f, uint32_t custom_size,
		   uint32_t custom_align, char why[FORMAT_WHY_SIZE]);

/*
 * Like the three functions above, for a program that reports every fault, not
 * only the first. format_check_fields() does not lay out records, and ends with
 * all fields that have a type, also if it found faults. The results are those
 * of the functions above.
 */
int format_check_header(struct format *f, uint64_t file_size,
			const uint8_t header[FORMAT_HEADER_SIZE],
			const struct format_faults *faults);
int format_check_fields(struct format *f, const uint8_t *descriptors,
			const struct format_faults *faults);
int format_check_layout(struct format *f, const struct format_faults *faults);

/* Returns whether the size of any field has to be inferred. */
bool format_has_custom(const struct format *f);

/* Returns whether [off, off + size) is empty or lies inside one page. */
bool format_is_value_range(const struct format *f, uint64_t off, uint64_t size);

void format_fini(struct format *f);

#endif
