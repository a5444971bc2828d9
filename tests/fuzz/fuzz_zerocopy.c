/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a message to the daemon. An accepted one is bounded text. */
#include "fs/data/wire/zerocopy_message.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct zerocopy_message m;
	struct zerocopy_get get;
	const char *why = NULL;
	int n;

	if (zerocopy_parse(data, size, &m, &why)) {
		MUST(why && why[0]);
		return 0;
	}
	MUST(memchr(m.job, '\0', sizeof(m.job)));
	MUST(memchr(m.path, '\0', sizeof(m.path)));
	MUST(!m.world_size || m.rank < m.world_size);
	for (size_t i = 0; i < FIGURES; i++)
		MUST(m.figures.n[i] <= RANK_FIGURES_MAX);
	if (m.kind != ZEROCOPY_GET)
		return 0;
	n = zerocopy_make_get(&get, m.number, m.path);
	MUST(n == (int)size && !memcmp(&get, data, size));
	return 0;
}
