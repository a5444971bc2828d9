/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/files/acl.h"

#include <errno.h>
#include <stdint.h>
#include <sys/xattr.h>

#include "fs/base/util/bytes.h"

enum {
	HEAD_SIZE = 4, /* a version */
	ENTRY_SIZE = 8,
	/* If a list is longer, only the owner is admitted. */
	LIST_SIZE = 4096,
	/* Tags of entries; those of users and of groups have an ID. */
	TAG_USER = 0x02,
	TAG_OWNING_GROUP = 0x04,
	TAG_GROUP = 0x08,
};

/* Returns the bits that every entry with this tag permits, within the mask. */
static mode_t granted(const uint8_t *list, ssize_t n, unsigned tag, mode_t mask)
{
	mode_t all = 07;

	for (ssize_t at = HEAD_SIZE; at + ENTRY_SIZE <= n; at += ENTRY_SIZE) {
		if (load16(list + at) == tag)
			all &= load16(list + at + 2) & mask;
	}
	return all;
}

mode_t acl_mode(int fd, mode_t mode)
{
	static const char name[] = "system.posix_acl_access";
	const mode_t mask = mode >> 3 & 07;
	uint8_t list[LIST_SIZE];
	ssize_t n = fgetxattr(fd, name, list, sizeof(list));
	mode_t group, users, others;

	if (n < 0 && (errno == ENODATA || errno == ENOTSUP))
		return mode;
	if (n < 0)
		return mode & ~(mode_t)077;
	users = granted(list, n, TAG_USER, mask);
	group = users & granted(list, n, TAG_OWNING_GROUP, mask);
	others = users & granted(list, n, TAG_GROUP, mask);
	return mode & (~(mode_t)077 | group << 3 | others);
}
