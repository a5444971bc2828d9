/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/util/bytes.h"
#include "fs/util/size.h"
#include "tests/unit/t.h"

static const struct {
	const char *text;
	uint64_t size;
} sizes[] = {
	{ "0", 0 },
	{ "00", 0 },
	{ "4096", 4096 },
	{ "0512", 512 },
	{ "1K", 1 << 10 },
	{ "1k", 1 << 10 },
	{ "3KiB", 3 << 10 },
	{ "512M", 512 << 20 },
	{ "512MiB", 512 << 20 },
	{ "2g", (uint64_t)2 << 30 },
	{ "2GiB", (uint64_t)2 << 30 },
	{ "5T", (uint64_t)5 << 40 },
	{ "5TiB", (uint64_t)5 << 40 },
	/* The largest of each unit. */
	{ "18446744073709551615", UINT64_MAX },
	{ "18014398509481983K", UINT64_MAX - 1023 },
	{ "17592186044415M", UINT64_MAX - ((uint64_t)1 << 20) + 1 },
	{ "17179869183G", UINT64_MAX - ((uint64_t)1 << 30) + 1 },
	{ "16777215TiB", UINT64_MAX - ((uint64_t)1 << 40) + 1 },
};

static const char *const wrong[] = {
	"",
	" ",
	"K",
	"KiB",
	"-1",
	"+1",
	" 1",
	"1 ",
	"1 K",
	"1B",
	"1KB",
	"1Ki",
	"1iB",
	"1KIB",
	"1kib",
	"1KiBs",
	"1KK",
	"1P",
	"1E",
	"1.5G",
	"0x10",
	"1e3",
	"1,024",
	"\xd9\xa1",
	"1\xc2\xa0",
	"1K\n",
	"max",
	/* One more than the largest, and what wraps to something small. */
	"18446744073709551616",
	"18446744073709551625",
	"184467440737095516150",
	"99999999999999999999999999999999",
	"18014398509481984K",
	"17592186044416MiB",
	"17179869184G",
	"16777216T",
	"16777217TiB",
};

int main(void)
{
	uint64_t size;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		size = 1;
		CHECK(size_parse(sizes[i].text, &size));
		CHECK(size == sizes[i].size);
	}
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		size = 77;
		CHECK(!size_parse(wrong[i], &size));
		CHECK(size == 77);
	}
	return 0;
}
