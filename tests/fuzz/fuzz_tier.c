/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the index of a disk tier: as they are, and with the right head
   before them. A tier never delivers a wrong byte. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/crc32c.h"
#include "fs/source/tier/index.h"
#include "tests/fuzz/fuzz.h"

enum { SIZE = 5 * TIER_PAGE + 77 };

static void parse(const uint8_t *data, size_t size)
{
	uint8_t head[TIER_PAGE] = { 0 };
	uint64_t object = 7;

	memcpy(head, data, size < TIER_PAGE ? size : TIER_PAGE);
	if (!tier_head_parse(head, &object))
		MUST(object == 7);
	store32(head + TIER_PAGE - 4, crc32c(0, head, TIER_PAGE - 4));
	tier_head_parse(head, &object);
}

/* All numbers that are read from a file. */
static void use(int fd, const struct tier_identity *identity)
{
	struct tier_index index;
	uint32_t sums[8];

	MUST(!tier_index_init(&index, fd, identity));
	tier_index_is_right(&index, identity);
	tier_index_allowed(fd);
	tier_index_read(&index, 0, index.num_pages, sums);
	tier_index_read(&index, index.num_pages, 8, sums);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct tier_identity identity = { "http://a/b", "\"1\"", SIZE };
	uint8_t head[TIER_PAGE];
	int fd = memfd_create("index", MFD_CLOEXEC);

	parse(data, size);
	MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	use(fd, &identity);
	MUST(!tier_head_make(&identity, head));
	MUST(pwrite(fd, head, sizeof(head), 0) == sizeof(head));
	use(fd, &identity);
	close(fd);
	return 0;
}
