/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a side file of checksums: as they are, and with a right CRC at
   their end, so that the other checks decide. */
#include "fs/base/util/bytes.h"
#include "fs/base/util/crc32c.h"
#include "fs/data/dataset/sums.h"
#include "tests/fuzz/fuzz.h"

static void parse(const uint8_t *bytes, size_t size)
{
	char why[SUMS_WHY_SIZE] = "";
	struct sums *s;
	uint64_t all = 0;

	if (sums_parse(bytes, size, &s, why)) {
		MUST(why[0]);
		return;
	}
	MUST(size == SUMS_HEAD_SIZE + 4 * s->num + 4);
	for (uint64_t i = 0; i < s->num; i++) {
		MUST(s->crc[i] == load32(bytes + SUMS_HEAD_SIZE + 4 * i));
		MUST(sums_block_size(s, i) > 0);
		all += sums_block_size(s, i);
	}
	MUST(all == s->size);
	sums_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *sealed;

	parse(data, size);
	if (size < 4)
		return 0;
	sealed = malloc(size);
	MUST(sealed);
	memcpy(sealed, data, size);
	store32(sealed + size - 4, crc32c(0, sealed, size - 4));
	parse(sealed, size);
	free(sealed);
	return 0;
}
