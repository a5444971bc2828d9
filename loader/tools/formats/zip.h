/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a zip archive, stored or deflated, with or without zip64.
   Input is hostile. */
#ifndef LOADER_TOOLS_FORMATS_ZIP_H
#define LOADER_TOOLS_FORMATS_ZIP_H

#include <stdbool.h>

#include "loader/tools/formats/file.h"

enum { ZIP_NAME_SIZE = 512, ZIP_WHY_SIZE = 120 };

struct zip {
	const struct file *file;
	uint64_t at;   /* of the next record of the directory */
	uint64_t end;  /* of the directory */
	uint64_t left; /* members that follow */
	char why[ZIP_WHY_SIZE];
};

struct zip_member {
	char name[ZIP_NAME_SIZE];
	bool deflated;
	uint32_t crc;
	uint64_t off;	 /* of its bytes in the file */
	uint64_t packed; /* their number in the file */
	uint64_t size;	 /* the number that they become */
};

/* Finds the directory. -errno with z->why; -EBADMSG if the file is no zip
   archive. */
int zip_open(const struct file *file, struct zip *z);

/* Finds the next member. Returns 1, 0 at the end, or -errno with z->why. */
int zip_next(struct zip *z, struct zip_member *out);

/*
 * Appends the bytes of a deflated member to a file whose size it updates.
 * Checks size and CRC. -errno with z->why.
 */
int zip_inflate(struct zip *z, const struct zip_member *m, struct file *to);

#endif
