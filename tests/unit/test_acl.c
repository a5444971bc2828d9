/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fs/base/files/acl.h"
#include "fs/base/util/bytes.h"
#include "tests/unit/t.h"

enum {
	OWNER = 1,
	USER = 2,
	OWNING_GROUP = 4,
	GROUP = 8,
	MASK = 16,
	OTHER = 32
};

struct entry {
	uint16_t tag, permissions;
	uint32_t id;
};

static int file;

/* The mode of a file with this list. -1: the file system has no lists. */
static int mode_with(const struct entry *entries, size_t n)
{
	static const char name[] = "system.posix_acl_access";
	uint8_t list[4 + 8 * 16];
	struct stat st;

	store32(list, 2);
	for (size_t i = 0; i < n; i++) {
		store16(list + 4 + 8 * i, entries[i].tag);
		store16(list + 6 + 8 * i, entries[i].permissions);
		store32(list + 8 + 8 * i, entries[i].id);
	}
	if (fsetxattr(file, name, list, 4 + 8 * n, 0)) {
		CHECK(errno == ENOTSUP);
		return -1;
	}
	CHECK(!fstat(file, &st));
	CHECK((acl_mode(file, st.st_mode) & S_IFMT) == S_IFREG);
	return acl_mode(file, st.st_mode) & 0777;
}

#define NOBODY UINT32_MAX
#define CHECK_MODE(mode, ...)                                                  \
	do {                                                                   \
		const struct entry e[] = { __VA_ARGS__ };                      \
		int got = mode_with(e, ARRAY_LEN(e));                          \
		CHECK(got < 0 || got == (mode));                               \
	} while (0)

static void without_a_list_the_mode_holds(void)
{
	CHECK(!fchmod(file, 0640));
	CHECK(acl_mode(file, S_IFREG | 0640) == (S_IFREG | 0640));
	CHECK_MODE(0644, { OWNER, 6, NOBODY }, { OWNING_GROUP, 4, NOBODY },
		   { OTHER, 4, NOBODY });
}

/* The mode of this file is 0640, as if its group might read it. */
static void the_group_is_not_the_mask(void)
{
	CHECK_MODE(0600, { OWNER, 6, NOBODY }, { USER, 4, 77 },
		   { OWNING_GROUP, 0, NOBODY }, { MASK, 4, NOBODY },
		   { OTHER, 0, NOBODY });
	CHECK_MODE(0640, { OWNER, 6, NOBODY }, { USER, 4, 77 },
		   { OWNING_GROUP, 4, NOBODY }, { MASK, 4, NOBODY },
		   { OTHER, 0, NOBODY });
	CHECK_MODE(0604, { OWNER, 6, NOBODY }, { OWNING_GROUP, 4, NOBODY },
		   { MASK, 0, NOBODY }, { OTHER, 4, NOBODY });
}

/* They may be of the owning group, or are others. */
static void users_whom_the_list_refuses_stay_out(void)
{
	CHECK_MODE(0600, { OWNER, 6, NOBODY }, { USER, 0, 77 },
		   { OWNING_GROUP, 4, NOBODY }, { MASK, 4, NOBODY },
		   { OTHER, 4, NOBODY });
	CHECK_MODE(0600, { OWNER, 6, NOBODY }, { USER, 4, 77 },
		   { OWNING_GROUP, 4, NOBODY }, { MASK, 0, NOBODY },
		   { OTHER, 4, NOBODY });
	CHECK_MODE(0640, { OWNER, 6, NOBODY }, { OWNING_GROUP, 4, NOBODY },
		   { GROUP, 4, 7 }, { GROUP, 0, 77 }, { MASK, 4, NOBODY },
		   { OTHER, 4, NOBODY });
}

int main(void)
{
	char path[] = "/tmp/test_acl_XXXXXX";

	file = mkstemp(path);
	CHECK(file >= 0 && !unlink(path));
	without_a_list_the_mode_holds();
	the_group_is_not_the_mask();
	users_whom_the_list_refuses_stay_out();
	close(file);
	return 0;
}
