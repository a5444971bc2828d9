/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where custom fields (type 255) lie: their size is not in the file, so it is
 * inferred. A layout is believed when it alone fits the file and makes the
 * first allocations of the table appear as pointers in the records of the
 * samples that they belong to.
 */
#ifndef FS_DATASET_CUSTOM_FIELD_H
#define FS_DATASET_CUSTOM_FIELD_H

#include "fs/dataset/format.h"
#include "fs/dataset/source.h"

/*
 * Lays out a format with custom fields. Where no layout or more than one fits,
 * the fields are marked unusable with the reason and the itemsize stays 0.
 * Fails only for I/O and memory, and for files that no layout fits at all.
 */
int custom_infer(struct source *source, struct format *format, struct log *log);

#endif
