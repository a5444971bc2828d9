/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/files/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/t.h"

static void make_file(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);

	CHECK(fd >= 0);
	close(fd);
}

/* The first executable file counts, but none of the working directory. */
static void test_find(const char *folder)
{
	char list[256], path[PATH_MAX], wanted[PATH_MAX];

	make_file("tool", 0700);
	make_file("data/tool", 0600);
	make_file("programs/tool", 0700);
	CHECK(!mkdir("more/tool", 0700));
	CHECK(program_find("tool", NULL, path) == -ENOENT);
	CHECK(program_find("tool", "", path) == -ENOENT);
	CHECK(program_find("tool", ":.::./programs:programs:", path) ==
	      -ENOENT);
	snprintf(list, sizeof(list), ":none:%s/none:%s/more:%s/data", folder,
		 folder, folder);
	CHECK(program_find("tool", list, path) == -ENOENT);
	snprintf(list, sizeof(list), "%s/more:%s/data:.:%s/programs:%s", folder,
		 folder, folder, folder);
	snprintf(wanted, sizeof(wanted), "%s/programs/tool", folder);
	CHECK(!program_find("tool", list, path) && !strcmp(path, wanted));
	CHECK(program_find("too", list, path) == -ENOENT);
}

int main(void)
{
	static const char *const files[] = { "tool", "data/tool",
					     "programs/tool" };
	static const char *const folders[] = { "data", "programs", "more" };
	char folder[] = "/tmp/test_program.XXXXXX";

	CHECK(mkdtemp(folder) && !chdir(folder));
	for (int i = 0; i < 3; i++)
		CHECK(!mkdir(folders[i], 0700));
	test_find(folder);
	for (int i = 0; i < 3; i++)
		CHECK(!unlink(files[i]));
	CHECK(!rmdir("more/tool"));
	for (int i = 0; i < 3; i++)
		CHECK(!rmdir(folders[i]));
	CHECK(!rmdir(folder));
	return 0;
}
