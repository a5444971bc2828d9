/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a list of sample ids. An accepted list has the position of each
   id, and never samples an id whose weight is 0. */
#include <sys/mman.h>
#include <unistd.h>

#include "fs/base/order/subset.h"
#include "fs/base/util/rng.h"
#include "tests/fuzz/fuzz.h"

enum { SAMPLES = 300 };

static void check_subset(const struct subset *s)
{
	uint64_t place, found = 0, n;

	MUST(s->n);
	for (uint64_t i = 0; i < s->n; i++)
		MUST(s->ids[i] < SAMPLES);
	for (uint64_t id = 0; id <= SAMPLES; id++) {
		for (n = 0; subset_place(s, id, n, &place); n++)
			MUST(s->ids[place] == id);
		MUST(n < 2 || s->repeats);
		found += n;
	}
	MUST(found == s->n);
	for (uint64_t i = 0; s->sums && i < 64; i++)
		MUST(subset_weight(s, subset_draw(s, rng_mix(i))));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("list", MFD_CLOEXEC);
	struct subset *s = NULL;
	char text[64];

	MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(text, sizeof(text), "few:/proc/self/fd/%d", fd);
	if (!subset_open(text, SAMPLES, NULL, &s))
		check_subset(s);
	subset_close_all(s);
	close(fd);
	return 0;
}
