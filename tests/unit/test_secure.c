/* SPDX-License-Identifier: Apache-2.0 */
/* A program that has a group which its user does not have (setgid) loads and
   runs nothing that the environment names. */
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/log.h"
#include "loader/run/gpu/cuda.h"
#include "loader/run/jit/code_cache.h"
#include "loader/run/jit/compiler.h"
#include "tests/unit/t.h"

enum { OTHER = 65534, NOT_SECURE = 77 };

#define MARK "test-secure-"

static char dir[] = "/tmp/" MARK "XXXXXX";

static void no_evil(void *arg, enum beton_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	CHECK(!strstr(message, MARK));
}

/* --- with rights of its own --- */

static void nothing_is_of_the_environment(void)
{
	struct compiler c;
	struct code_cache *cache;
	struct cuda *cuda;
	struct log log;

	log_init(&log, no_evil, NULL);
	if (!compiler_find(&c))
		CHECK(!strstr(c.path, MARK));
	cache = code_cache_open("generic", 1 << 20, &log);
	CHECK(!cache);
	CHECK(cuda_open(0, &log, &cuda) < 0);
	log_fini(&log);
}

static int be_secure(void)
{
	if (!getauxval(AT_SECURE))
		return NOT_SECURE;
	nothing_is_of_the_environment();
	return 0;
}

/* --- a copy of this program --- */

static void copy_self(const char *path)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	struct stat st;

	CHECK(from >= 0 && to >= 0 && !fstat(from, &st));
	while (sendfile(to, from, NULL, (size_t)st.st_size) > 0)
		;
	CHECK(!fchown(to, 0, 0) && !fchmod(to, 02755));
	CHECK(!close(from) && !close(to));
}

/* All variables that name something to load, run or write. */
static char **make_environment(void)
{
	static const char *const names[] = {
		"BETON_CC", "PATH",   "BETON_CACHE_DIR",   "XDG_CACHE_HOME",
		"HOME",	    "TMPDIR", "BETON_CUDA_LIBRARY"
	};
	static char *out[ARRAY_LEN(names) + 1];

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		CHECK(asprintf(&out[i], "%s=%s%s", names[i], dir,
			       i ? "" : "/cc") > 0);
	return out;
}

static int run_as_other(const char *path)
{
	char **environment = make_environment();
	char name[] = "test_secure", child[] = "child";
	char *const argv[] = { name, child, NULL };
	pid_t pid = fork();
	int status;

	if (!pid) {
		CHECK(!setgroups(0, NULL) && !setgid(OTHER) && !setuid(OTHER));
		execve(path, argv, environment);
		_exit(NOT_SECURE);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	for (size_t i = 0; environment[i]; i++)
		free(environment[i]);
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	char path[64], cc[64];
	int r;

	(void)argv;
	/* A program that may not be traced cannot look for leaks as it ends. */
	if (argc > 1)
		_exit(be_secure());
	if (!can_be_another_user("a program that is setgid"))
		return 0;
	CHECK(mkdtemp(dir) && !chmod(dir, 0755));
	snprintf(path, sizeof(path), "%s/program", dir);
	copy_self(path);
	snprintf(cc, sizeof(cc), "%s/cc", dir);
	CHECK(!symlink("/bin/true", cc) && !chmod(dir, 0777));
	r = run_as_other(path);
	CHECK(!unlink(path) && !unlink(cc) && !rmdir(dir));
	if (r == NOT_SECURE)
		puts("skipped: this file system ignores setgid");
	else
		CHECK(!r);
	return 0;
}
