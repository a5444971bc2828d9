/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dataset files with a header and descriptors that no writer makes. The rest of
 * the file is a hole, which takes no room on the disk.
 */
#ifndef TESTS_UNIT_CRAFTED_H
#define TESTS_UNIT_CRAFTED_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/data/dataset/format.h"
#include "tests/unit/t.h"

struct crafted {
	uint64_t samples;
	uint64_t table_off;
	uint64_t table_entries;
	uint32_t num_fields;
	/* The type and the name of a field. NULL: bytes, all called "x". */
	uint8_t (*field)(uint32_t i, char name[FORMAT_NAME_SIZE + 1]);
};

enum { CRAFTED_PAGE = 4096 };

/* Where the metadata of so many fields begins. */
static inline uint64_t crafted_meta(uint32_t fields)
{
	return FORMAT_HEADER_SIZE + (uint64_t)FORMAT_DESCRIPTOR_SIZE * fields;
}

static inline void craft(const char *path, const struct crafted *c)
{
	uint8_t header[FORMAT_HEADER_SIZE];
	FILE *f = fopen(path, "w");

	store16(header, FORMAT_VERSION);
	store16(header + 2, (uint16_t)c->num_fields);
	store32(header + 4, CRAFTED_PAGE);
	store64(header + 8, c->samples);
	store64(header + 16, c->table_off);
	CHECK(f && fwrite(header, sizeof(header), 1, f) == 1);
	for (uint32_t i = 0; i < c->num_fields; i++) {
		uint8_t d[FORMAT_DESCRIPTOR_SIZE] = { BETON_TYPE_BYTES };
		char name[FORMAT_NAME_SIZE + 1] = "x";

		if (c->field)
			d[0] = c->field(i, name);
		memcpy(d + 1, name, strnlen(name, FORMAT_NAME_SIZE));
		CHECK(fwrite(d, sizeof(d), 1, f) == 1);
	}
	CHECK(!fclose(f));
	CHECK(!truncate(path, (off_t)(c->table_off +
				      c->table_entries * FORMAT_ENTRY_SIZE)));
}

#endif
