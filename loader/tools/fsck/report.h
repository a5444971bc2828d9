/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The findings of fsck.beton in one dataset: counts per check, the damaged
 * samples, and lines for the user, few per check. One thread.
 */
#ifndef LOADER_TOOLS_FSCK_REPORT_H
#define LOADER_TOOLS_FSCK_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/tools/fsck/bad_set.h"
#include "loader/tools/fsck/check.h"
#include "loader/tools/ui/progress.h"

#define NO_SAMPLE UINT64_MAX
#define NO_FIELD UINT32_MAX

enum { FINDING_WHY_SIZE = 200 };

struct finding {
	enum check_id check;
	uint32_t field;	 /* or NO_FIELD */
	uint64_t sample; /* or NO_SAMPLE */
	uint64_t off;	 /* in the file; 0: the finding has no offset */
	uint64_t size;
	char why[FINDING_WHY_SIZE];
};

struct report {
	const char *path;
	const struct format *format; /* for the names of fields */
	uint64_t limit;		     /* of lines per check */
	bool shows_details;
	bool is_silent; /* print no lines */
	json_t *json;	/* array of findings, or NULL */
	struct progress *progress;
	uint64_t counts[NUM_CHECKS];
	struct bad_set bad;
};

/* Counts a finding, marks its sample, and prints it. */
void report_add(struct report *r, const struct finding *f);

/* report_add() of a finding about the file. */
void report_file(struct report *r, enum check_id check, uint64_t off,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Prints how many lines were left out. */
void report_rest(const struct report *r);

/* Sums of all findings that are damage, or notes and details. */
uint64_t report_errors(const struct report *r);
uint64_t report_notes(const struct report *r);

/* Returns whether a copy without the damaged samples can be written. */
bool report_can_repair(const struct report *r);

/* Returns a JSON object with a member per check that found something. */
json_t *report_counts(const struct report *r);

#endif
