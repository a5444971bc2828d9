/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Infers the layout of records with custom fields (type 255), whose size the
 * file does not contain. A layout is accepted if no other fits the file and
 * explains its first allocations: each must be a pointer in its sample's
 * record.
 */
#ifndef FS_DATA_DATASET_CUSTOM_FIELD_H
#define FS_DATA_DATASET_CUSTOM_FIELD_H

#include "fs/data/dataset/format.h"
#include "fs/source/local/source.h"

/*
 * Lays out a format with custom fields. If no layout or more than one is
 * accepted, marks all fields unusable with the reason and leaves itemsize 0.
 * Fails only if the allocation table cannot be read.
 */
int custom_infer(struct source *source, struct format *format, struct log *log);

/* Requests what custom_infer() reads first, without waiting. */
void custom_prefetch(struct source *source, const struct format *format);

#endif
