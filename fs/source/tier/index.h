/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of a disk tier: which object the data file holds, and the checksum
 * of each of its pages.
 *
 *	0	8	magic
 *	8	4	version of this layout
 *	12	4	TIER_PAGE
 *	16	8	size of the object
 *	24	4	size of the URL
 *	28	4	size of the version
 *	32		URL, version, zeros
 *	4092	4	CRC-32C of all bytes before
 *	4096	8	bytes that the data may occupy
 *	4104	4	CRC-32C of the 8 bytes before
 *	8192	4	for each page: its checksum, or 0 if it is absent
 *
 * Integers are little-endian. Each write stays within 4 KiB, or writes
 * checksums alone, so a process that is killed leaves no half of a number. The
 * index is read by pread() for each request and never kept in memory.
 */
#ifndef FS_SOURCE_TIER_INDEX_H
#define FS_SOURCE_TIER_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TIER_PAGE = 4096,
	TIER_HEAD = 2 * TIER_PAGE, /* bytes before the checksums */
	TIER_URL_MAX = 3072,
	TIER_VERSION_MAX = 900,
};

/* The object of a tier. Objects that differ in any member have tiers of their
   own. */
struct tier_identity {
	const char *url;     /* without query and secrets */
	const char *version; /* differs for other bytes (identity.h) */
	uint64_t size;
};

struct tier_index {
	int fd; /* the owner's */
	uint64_t size;
	uint64_t num_pages;
	uint32_t key; /* begins all checksums, so that they fit no other object
		       */
};

/* Returns the size of the whole index of an object. */
uint64_t tier_index_size(uint64_t size);

/* Writes the first page of an index. -ENAMETOOLONG. */
int tier_head_make(const struct tier_identity *identity,
		   uint8_t head[TIER_PAGE]);
/* Returns whether the page is the head of an index, and of which size. Any
   bytes are allowed. */
bool tier_head_parse(const uint8_t head[TIER_PAGE], uint64_t *size);

/* Sets up an index of an open file. -ENAMETOOLONG. */
int tier_index_init(struct tier_index *index, int fd,
		    const struct tier_identity *identity);
/* Returns whether the file is the index of this object. */
bool tier_index_is_right(const struct tier_index *index,
			 const struct tier_identity *identity);
/* Makes the file an index in which all pages are absent. */
int tier_index_reset(const struct tier_index *index,
		     const struct tier_identity *identity);

/* The bytes that the data may occupy; 0 if unknown. */
uint64_t tier_index_allowed(int fd);
int tier_index_set_allowed(int fd, uint64_t bytes);

/* Reads the checksums of `n` pages. Pages that cannot be read are absent. */
void tier_index_read(const struct tier_index *index, uint64_t first, size_t n,
		     uint32_t *out);
int tier_index_write(const struct tier_index *index, uint64_t first, size_t n,
		     const uint32_t *sums);

/* Returns the bytes of a page: fewer than TIER_PAGE at the end. */
size_t tier_page_size(const struct tier_index *index, uint64_t page);
/* Returns the checksum of a page, never 0. */
uint32_t tier_page_sum(const struct tier_index *index, uint64_t page,
		       const uint8_t *bytes);
/* Computes the checksums of three adjacent whole pages in about the time of
   one. */
void tier_page_sums3(const struct tier_index *index, uint64_t first,
		     const uint8_t *const bytes[3], uint32_t out[3]);

#endif
