/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one dataset of several files, without decoding anything. The samples
 * follow each other in the order of the files. The new file is the same as if
 * one writer had written all samples, so that the merged parts of a job are the
 * file that one process writes. Memory does not depend on the number of
 * samples.
 *
 * The first file determines the fields. Every other file needs the same fields,
 * by name and type, in any order. If integers have class names, the new file
 * has the names of the first file, then new names of the others in their order,
 * and the integers of the others are renumbered by name.
 *
 * The output may be the first file, which appends the others to it. It replaces
 * the old file when it is complete.
 */
#ifndef FS_DATA_WRITER_MERGE_H
#define FS_DATA_WRITER_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/base/util/log.h"

struct merge_options {
	uint64_t page_size; /* 0: the largest of the files, 2 MiB at least */
	/* Do not renumber integers; the class names are those of the first file
	   that has any. */
	bool keep_numbers;
	/* Called now and then with the number of samples; again and again with
	   the same one while a server lets the merge wait. -errno ends the
	   merge and is not logged. NULL: none. */
	int (*progress)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};

struct merge_result {
	uint64_t files;
	uint64_t samples;
	uint64_t size; /* bytes of the new file */
};

/*
 * Merges `num` paths, each a file or a pattern (fs/base/files/paths.h), into
 * `out`. Failures are logged, with the file:
 *
 *   -EINVAL           fields or class names do not match; the output is a
 *                     source, but not the first one; the page size is invalid
 *   -EOPNOTSUPP       a field cannot be copied
 *   -BETON_ECORRUPT   a sample is damaged
 *   -BETON_ETOOLARGE  a sample does not fit into a page of the given size
 *   -ESTALE           the output was the first file, and changed meanwhile
 *
 * and errors of files. After an error the output is unchanged.
 */
int merge_files(const char *const *paths, size_t num, const char *out,
		const struct merge_options *options, struct log *log,
		struct merge_result *result);

#endif
