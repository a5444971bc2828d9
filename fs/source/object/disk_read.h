/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of a disk tier's source. Each one is divided into parts, which come
 * from the tier or from the inner source, and is done when all of them are.
 */
#ifndef FS_SOURCE_OBJECT_DISK_READ_H
#define FS_SOURCE_OBJECT_DISK_READ_H

#include "fs/source/object/disk_pages.h"

/* Like source_submit() and source_cancel(). */
void disk_read_submit(struct disk_source *d, struct source_request *request);
void disk_read_cancel(struct disk_source *d, struct source_request *request);

#endif
