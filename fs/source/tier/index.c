/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/tier/index.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/crc32c.h"

enum {
	LAYOUT = 1,
	TEXTS = 32, /* offset of the URL */
	HEAD_SUM = TIER_PAGE - 4,
};

static const char magic[8] = "betondt\n";

static uint64_t pages_of(uint64_t size)
{
	return size / TIER_PAGE + (size % TIER_PAGE != 0);
}

uint64_t tier_index_size(uint64_t size)
{
	return TIER_HEAD + 4 * pages_of(size);
}

int tier_head_make(const struct tier_identity *identity,
		   uint8_t head[TIER_PAGE])
{
	size_t url = strlen(identity->url), version = strlen(identity->version);

	if (url > TIER_URL_MAX || version > TIER_VERSION_MAX)
		return -ENAMETOOLONG;
	memset(head, 0, TIER_PAGE);
	memcpy(head, magic, sizeof(magic));
	store32(head + 8, LAYOUT);
	store32(head + 12, TIER_PAGE);
	store64(head + 16, identity->size);
	store32(head + 24, (uint32_t)url);
	store32(head + 28, (uint32_t)version);
	memcpy(head + TEXTS, identity->url, url);
	memcpy(head + TEXTS + url, identity->version, version);
	store32(head + HEAD_SUM, crc32c(0, head, HEAD_SUM));
	return 0;
}

bool tier_head_parse(const uint8_t head[TIER_PAGE], uint64_t *size)
{
	if (memcmp(head, magic, sizeof(magic)) || load32(head + 8) != LAYOUT ||
	    load32(head + 12) != TIER_PAGE ||
	    load32(head + 24) > TIER_URL_MAX ||
	    load32(head + 28) > TIER_VERSION_MAX ||
	    load32(head + HEAD_SUM) != crc32c(0, head, HEAD_SUM))
		return false;
	*size = load64(head + 16);
	return true;
}

int tier_index_init(struct tier_index *index, int fd,
		    const struct tier_identity *identity)
{
	uint8_t head[TIER_PAGE];
	int r = tier_head_make(identity, head);

	*index = (struct tier_index){
		.fd = fd,
		.size = identity->size,
		.num_pages = pages_of(identity->size),
	};
	if (!r)
		index->key = load32(head + HEAD_SUM);
	return r;
}

bool tier_index_is_right(const struct tier_index *index,
			 const struct tier_identity *identity)
{
	uint8_t head[TIER_PAGE], right[TIER_PAGE];
	struct stat st;

	return !fstat(index->fd, &st) &&
	       (uint64_t)st.st_size == tier_index_size(identity->size) &&
	       pread(index->fd, head, sizeof(head), 0) == sizeof(head) &&
	       !tier_head_make(identity, right) &&
	       !memcmp(head, right, sizeof(head));
}

/* The head comes last: without it, an index that was begun is reset again. */
int tier_index_reset(const struct tier_index *index,
		     const struct tier_identity *identity)
{
	uint8_t head[TIER_PAGE];
	ssize_t n;
	int r = tier_head_make(identity, head);

	if (r)
		return r;
	if (ftruncate(index->fd, 0) ||
	    ftruncate(index->fd, (off_t)tier_index_size(identity->size)))
		return -errno;
	n = pwrite(index->fd, head, sizeof(head), 0);
	if (n < 0)
		return -errno;
	return n == sizeof(head) ? 0 : -ENOSPC;
}

uint64_t tier_index_allowed(int fd)
{
	uint8_t bytes[12];

	if (pread(fd, bytes, sizeof(bytes), TIER_PAGE) != sizeof(bytes) ||
	    load32(bytes + 8) != crc32c(0, bytes, 8))
		return 0;
	return load64(bytes);
}

int tier_index_set_allowed(int fd, uint64_t allowed)
{
	uint8_t bytes[12];
	ssize_t n;

	store64(bytes, allowed);
	store32(bytes + 8, crc32c(0, bytes, 8));
	n = pwrite(fd, bytes, sizeof(bytes), TIER_PAGE);
	if (n < 0)
		return -errno;
	return n == sizeof(bytes) ? 0 : -ENOSPC;
}

static off_t offset_of(uint64_t page)
{
	return (off_t)(TIER_HEAD + 4 * page);
}

void tier_index_read(const struct tier_index *index, uint64_t first, size_t n,
		     uint32_t *out)
{
	ssize_t got = pread(index->fd, out, 4 * n, offset_of(first));
	size_t known = got < 0 ? 0 : (size_t)got / 4;

	memset(out + known, 0, 4 * (n - known));
}

int tier_index_write(const struct tier_index *index, uint64_t first, size_t n,
		     const uint32_t *sums)
{
	ssize_t got = pwrite(index->fd, sums, 4 * n, offset_of(first));

	if (got < 0)
		return -errno;
	return (size_t)got == 4 * n ? 0 : -ENOSPC;
}

size_t tier_page_size(const struct tier_index *index, uint64_t page)
{
	return (size_t)min_u64(TIER_PAGE, index->size - page * TIER_PAGE);
}

/* A page of another place has another checksum, also if its bytes are equal. */
static uint32_t sum_begin(const struct tier_index *index, uint64_t page)
{
	return index->key ^ (uint32_t)(page * 0x9e3779b97f4a7c15u >> 32);
}

/* 0 stands for a page that is absent. */
static uint32_t sum_end(uint32_t crc)
{
	return crc ? crc : 1;
}

uint32_t tier_page_sum(const struct tier_index *index, uint64_t page,
		       const uint8_t *bytes)
{
	return sum_end(crc32c(sum_begin(index, page), bytes,
			      tier_page_size(index, page)));
}

void tier_page_sums3(const struct tier_index *index, uint64_t first,
		     const uint8_t *const bytes[3], uint32_t out[3])
{
	for (unsigned i = 0; i < 3; i++)
		out[i] = sum_begin(index, first + i);
	crc32c_three(out, bytes, TIER_PAGE);
	for (unsigned i = 0; i < 3; i++)
		out[i] = sum_end(out[i]);
}
