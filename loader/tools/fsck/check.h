/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of fsck.beton: one row each. fsck.beton(8) has the same table, and
 * a test compares the two.
 */
#ifndef LOADER_TOOLS_FSCK_CHECK_H
#define LOADER_TOOLS_FSCK_CHECK_H

#include "fs/data/dataset/format.h"

enum severity {
	SEVERITY_ERROR,	 /* a rule is broken */
	SEVERITY_SAMPLE, /* an error, by which a sample is damaged */
	SEVERITY_NOTE,	 /* odd but harmless */
	SEVERITY_DETAIL, /* a note that FFCV's own files cause */
};

enum cure {
	CURE_NONE, /* no copy can be written */
	CURE_DROP, /* a copy leaves the sample out */
	CURE_COPY, /* any copy is right */
};

enum check_id {
	CHECK_VERSION,
	CHECK_UNFINISHED,
	CHECK_FIELDS,
	CHECK_PAGE_SIZE,
	CHECK_SAMPLES,
	CHECK_CUT_OFF,
	CHECK_TABLE_OFFSET,
	CHECK_FIELD_TYPE,
	CHECK_FIELD_NAME,
	CHECK_FIELD_ARGUMENTS,
	CHECK_ARRAY_SIZE,
	CHECK_METADATA_SIZE,
	CHECK_PAGES,
	CHECK_TABLE_SIZE,
	CHECK_UNUSED_ARGUMENTS,
	CHECK_CLASS_NAMES,
	CHECK_NAME_TWICE,
	CHECK_NAME_PADDING,
	CHECK_ARGUMENT_PADDING,
	CHECK_CUSTOM,
	CHECK_TABLE_REST,
	CHECK_TABLE_COUNT,
	CHECK_TABLE_ORDER,
	CHECK_ENTRY_SAMPLE,
	CHECK_ENTRY_PLACE,
	CHECK_ENTRY_OVERLAP,
	CHECK_ENTRY_UNUSED,
	CHECK_IMAGE_MODE,
	CHECK_IMAGE_SIDES,
	CHECK_VALUE_SIZE,
	CHECK_VALUE_PLACE,
	CHECK_VALUE_ENTRY,
	CHECK_VALUE_SAMPLE,
	CHECK_VALUE_TWICE,
	CHECK_SAMPLE_PAGES,
	CHECK_RECORD_PADDING,
	CHECK_JPEG_START,
	CHECK_JPEG_HEADER,
	CHECK_JPEG_SIDES,
	CHECK_JPEG_SCAN,
	CHECK_JPEG_END,
	CHECK_JPEG_DECODE,
	CHECK_JPEG_ODD,
	CHECK_JPEG_INDEX,
	CHECK_JSON_END,
	CHECK_JSON_TEXT,
	CHECK_BYTES_ARRAY,
	CHECK_HEAD_PADDING,
	CHECK_UNUSED_BYTES,
	CHECK_PAGE_REST,
	CHECK_TOO_LARGE,
	CHECK_READ,
	CHECK_SUMS_FILE,
	CHECK_SUMS_BLOCK,
	CHECK_SUMS_HEAD,
	CHECK_SUMS_VALUE,
	NUM_CHECKS,
};

struct check {
	const char *name; /* as printed and in the manual */
	enum severity severity;
	enum cure cure;
};

const struct check *check_row(enum check_id id);

/* Returns the check of a rule of the header, the descriptors or the layout. */
enum check_id check_of_rule(enum format_rule rule);

/* Returns whether a finding is damage, not a note. */
static inline bool check_is_error(enum check_id id)
{
	return check_row(id)->severity <= SEVERITY_SAMPLE;
}

/* Prints a line per check for the test of the manual. */
void check_list(void);

#endif
