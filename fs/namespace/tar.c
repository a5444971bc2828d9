/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/namespace/tar.h"

#include <stdio.h>
#include <string.h>

#include "fs/util/bytes.h"

/* Octal digits and a NUL; a sum of 512 bytes needs no more than six. */
struct ustar {
	char name[100];
	char mode[8];
	char uid[8];
	char gid[8];
	char size[12];
	char time[12];
	char sum[8];
	char type;
	char link[100];
	char magic[6];
	char version[2];
	char user[32];
	char group[32];
	char major[8];
	char minor[8];
	char prefix[155];
	char padding[12];
};

_Static_assert(sizeof(struct ustar) == TAR_BLOCK, "a header is one block");

static void put_octal(char *out, size_t size, uint64_t number)
{
	out[--size] = '\0';
	for (; size; number >>= 3)
		out[--size] = (char)('0' + (number & 7));
}

void tar_header(char out[TAR_BLOCK], const char *name, uint64_t size,
		int64_t time)
{
	struct ustar h = { .type = '0', .magic = "ustar", .version = "00" };
	const unsigned char *bytes = (const unsigned char *)&h;
	unsigned sum = 0;

	snprintf(h.name, sizeof(h.name), "%s", name);
	put_octal(h.mode, sizeof(h.mode), 0444);
	put_octal(h.uid, sizeof(h.uid), 0);
	put_octal(h.gid, sizeof(h.gid), 0);
	put_octal(h.size, sizeof(h.size), size);
	put_octal(h.time, sizeof(h.time),
		  time < 0 ? 0 : min_u64((uint64_t)time, TAR_SIZE_MAX));
	put_octal(h.major, sizeof(h.major), 0);
	put_octal(h.minor, sizeof(h.minor), 0);
	/* Its own field counts as spaces, and keeps the last one. */
	memset(h.sum, ' ', sizeof(h.sum));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += bytes[i];
	put_octal(h.sum, sizeof(h.sum) - 1, sum);
	memcpy(out, &h, sizeof(h));
}
