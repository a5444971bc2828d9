/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/fsck/check.h"

#include <stdio.h>

#define ERROR_NONE SEVERITY_ERROR, CURE_NONE
#define ERROR_COPY SEVERITY_ERROR, CURE_COPY
#define SAMPLE SEVERITY_SAMPLE, CURE_DROP
#define NOTE SEVERITY_NOTE, CURE_COPY
#define DETAIL SEVERITY_DETAIL, CURE_COPY

static const struct check rows[NUM_CHECKS] = {
	[CHECK_VERSION] = { "version", ERROR_NONE },
	[CHECK_UNFINISHED] = { "unfinished", ERROR_NONE },
	[CHECK_FIELDS] = { "fields", ERROR_NONE },
	[CHECK_PAGE_SIZE] = { "page-size", ERROR_NONE },
	[CHECK_SAMPLES] = { "samples", ERROR_NONE },
	[CHECK_CUT_OFF] = { "cut-off", ERROR_NONE },
	[CHECK_TABLE_OFFSET] = { "table-offset", ERROR_NONE },
	[CHECK_FIELD_TYPE] = { "field-type", ERROR_NONE },
	[CHECK_FIELD_NAME] = { "field-name", ERROR_NONE },
	[CHECK_FIELD_ARGUMENTS] = { "field-arguments", ERROR_NONE },
	[CHECK_ARRAY_SIZE] = { "array-size", ERROR_NONE },
	[CHECK_METADATA_SIZE] = { "metadata-size", ERROR_NONE },
	[CHECK_PAGES] = { "pages", ERROR_NONE },
	[CHECK_TABLE_SIZE] = { "table-size", ERROR_NONE },
	[CHECK_UNUSED_ARGUMENTS] = { "unused-arguments", ERROR_COPY },
	[CHECK_CLASS_NAMES] = { "class-names", ERROR_COPY },
	[CHECK_NAME_TWICE] = { "name-twice", NOTE },
	[CHECK_NAME_PADDING] = { "name-padding", NOTE },
	[CHECK_ARGUMENT_PADDING] = { "argument-padding", NOTE },
	[CHECK_CUSTOM] = { "custom", SEVERITY_NOTE, CURE_NONE },
	[CHECK_TABLE_REST] = { "table-rest", ERROR_COPY },
	[CHECK_TABLE_COUNT] = { "table-count", ERROR_COPY },
	[CHECK_TABLE_ORDER] = { "table-order", ERROR_NONE },
	[CHECK_ENTRY_SAMPLE] = { "entry-sample", ERROR_COPY },
	[CHECK_ENTRY_PLACE] = { "entry-place", ERROR_COPY },
	[CHECK_ENTRY_OVERLAP] = { "entry-overlap", SAMPLE },
	[CHECK_ENTRY_UNUSED] = { "entry-unused", ERROR_COPY },
	[CHECK_IMAGE_MODE] = { "image-mode", SAMPLE },
	[CHECK_IMAGE_SIDES] = { "image-sides", SAMPLE },
	[CHECK_VALUE_SIZE] = { "value-size", SAMPLE },
	[CHECK_VALUE_PLACE] = { "value-place", SAMPLE },
	[CHECK_VALUE_ENTRY] = { "value-entry", SAMPLE },
	[CHECK_VALUE_SAMPLE] = { "value-sample", SAMPLE },
	[CHECK_VALUE_TWICE] = { "value-twice", SAMPLE },
	[CHECK_SAMPLE_PAGES] = { "sample-pages", ERROR_COPY },
	[CHECK_RECORD_PADDING] = { "record-padding", NOTE },
	[CHECK_JPEG_START] = { "jpeg-start", SAMPLE },
	[CHECK_JPEG_HEADER] = { "jpeg-header", SAMPLE },
	[CHECK_JPEG_SIDES] = { "jpeg-sides", SAMPLE },
	[CHECK_JPEG_SCAN] = { "jpeg-scan", SAMPLE },
	[CHECK_JPEG_END] = { "jpeg-end", SAMPLE },
	[CHECK_JPEG_DECODE] = { "jpeg-decode", SAMPLE },
	[CHECK_JPEG_ODD] = { "jpeg-odd", NOTE },
	[CHECK_JPEG_INDEX] = { "jpeg-index", SAMPLE },
	[CHECK_JSON_END] = { "json-end", SAMPLE },
	[CHECK_JSON_TEXT] = { "json-text", SAMPLE },
	[CHECK_BYTES_ARRAY] = { "bytes-array", NOTE },
	[CHECK_HEAD_PADDING] = { "head-padding", NOTE },
	[CHECK_UNUSED_BYTES] = { "unused-bytes", NOTE },
	[CHECK_PAGE_REST] = { "page-rest", DETAIL },
	[CHECK_TOO_LARGE] = { "too-large", NOTE },
	[CHECK_READ] = { "read", ERROR_NONE },
	[CHECK_SUMS_FILE] = { "sums-file", ERROR_COPY },
	[CHECK_SUMS_BLOCK] = { "sums-block", ERROR_COPY },
	[CHECK_SUMS_HEAD] = { "sums-head", ERROR_NONE },
	[CHECK_SUMS_VALUE] = { "sums-value", SAMPLE },
};

/* A file of another version is no file of this format at all. */
static const enum check_id of_rule[] = {
	[FORMAT_RULE_VERSION] = CHECK_VERSION,
	[FORMAT_RULE_FINISHED] = CHECK_UNFINISHED,
	[FORMAT_RULE_FIELDS] = CHECK_FIELDS,
	[FORMAT_RULE_PAGE_SIZE] = CHECK_PAGE_SIZE,
	[FORMAT_RULE_SAMPLES] = CHECK_SAMPLES,
	[FORMAT_RULE_WHOLE] = CHECK_CUT_OFF,
	[FORMAT_RULE_TABLE_PLACE] = CHECK_TABLE_OFFSET,
	[FORMAT_RULE_TYPE] = CHECK_FIELD_TYPE,
	[FORMAT_RULE_NAME] = CHECK_FIELD_NAME,
	[FORMAT_RULE_ARGUMENTS] = CHECK_FIELD_ARGUMENTS,
	[FORMAT_RULE_TABLE_SIZE] = CHECK_TABLE_SIZE,
	[FORMAT_RULE_METADATA] = CHECK_METADATA_SIZE,
	[FORMAT_RULE_PAGES] = CHECK_PAGES,
	[FORMAT_RULE_ARRAY_SIZE] = CHECK_ARRAY_SIZE,
};

const struct check *check_row(enum check_id id)
{
	return &rows[id];
}

enum check_id check_of_rule(enum format_rule rule)
{
	return of_rule[rule];
}

void check_list(void)
{
	static const char *const severities[] = { "error", "sample", "note",
						  "detail" };
	static const char *const cures[] = { "none", "drop", "copy" };

	for (int i = 0; i < NUM_CHECKS; i++)
		printf("%s %s %s\n", rows[i].name, severities[rows[i].severity],
		       cures[rows[i].cure]);
}
