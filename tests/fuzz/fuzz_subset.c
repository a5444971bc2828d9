/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a list of sample ids. What is accepted has each id once, and
   knows its place. */
#include <sys/mman.h>
#include <unistd.h>

#include "fs/subset.h"
#include "tests/fuzz/fuzz.h"

enum { SAMPLES = 300 };

static void check_subset(const struct subset *s)
{
	uint64_t place, found = 0;

	MUST(s->n && s->n <= SAMPLES);
	for (uint64_t i = 0; i < s->n; i++) {
		MUST(s->ids[i] < SAMPLES);
		MUST(subset_place(s, s->ids[i], &place) && place == i);
	}
	for (uint64_t id = 0; id <= SAMPLES; id++)
		found += subset_place(s, id, &place);
	MUST(found == s->n);
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
