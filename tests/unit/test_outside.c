/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/keys/outside.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/clock.h"
#include "fs/source/net/secret.h"
#include "tests/unit/t.h"
#include "tests/unit/write_file.h"

static char folder[] = "/tmp/test_outside.XXXXXX";

static const char *path_of(const char *name)
{
	static char path[100];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* The text of a file of `size` bytes, or its -errno. */
static int reads(const char *path, const char *expected, size_t size)
{
	char *text = NULL;
	size_t got = 0;
	int r = outside_read(&outside_own, path, &text, &got);

	if (!r) {
		CHECK(got == size && !memcmp(text, expected, size));
		CHECK(text[size] == '\0');
		secret_free_bytes(text, got);
	}
	return r;
}

static void files_are_read(void)
{
	char *big = calloc(1, OUTSIDE_TEXT_MAX + 1);

	CHECK(big);
	memset(big, 'x', OUTSIDE_TEXT_MAX + 1);
	write_file(path_of("a"), "text\n", 5);
	CHECK(!reads(path_of("a"), "text\n", 5));
	for (size_t n = 4090; n < 4100; n++) {
		write_file(path_of("a"), big, n);
		CHECK(!reads(path_of("a"), big, n));
	}
	write_file(path_of("a"), big, OUTSIDE_TEXT_MAX - 1);
	CHECK(!reads(path_of("a"), big, OUTSIDE_TEXT_MAX - 1));
	write_file(path_of("a"), big, OUTSIDE_TEXT_MAX + 1);
	CHECK(reads(path_of("a"), "", 0) == -EFBIG);
	write_file(path_of("a"), "a\0b", 3);
	CHECK(reads(path_of("a"), "", 0) == -EINVAL);
	CHECK(!reads("/dev/null", "", 0));
	CHECK(reads(path_of("none"), "", 0) == -ENOENT);
	CHECK(reads(folder, "", 0) == -EISDIR);
	CHECK(!mkfifo(path_of("fifo"), 0600));
	CHECK(reads(path_of("fifo"), "", 0) == -ENOSTR);
	CHECK(!strcmp(outside_why(-ENOSTR), "it is not a regular file"));
	CHECK(!strcmp(outside_why(-ENOENT), strerror(ENOENT)));
	CHECK(!unlink(path_of("fifo")));
	free(big);
}

static void a_tilde_is_the_home_directory(void)
{
	const struct passwd *user = getpwuid(geteuid());
	char path[200];

	CHECK(!setenv("HOME", folder, 1));
	write_file(path_of("a"), "x", 1);
	CHECK(!reads("~/a", "x", 1));
	CHECK(reads("~a", "", 0) == -ENOENT);
	CHECK(!unsetenv("HOME"));
	CHECK(reads("~/none.of/a", "", 0) == -ENOENT);
	/* The entry of the user counts then. */
	if (user && !access(user->pw_dir, X_OK)) {
		snprintf(path, sizeof(path), "~/../../../../../..%s",
			 path_of("a"));
		CHECK(!reads(path, "x", 1));
	}
}

static bool stop;

static int runs(const char *command, const char *expected)
{
	char *text = NULL;
	size_t size = 0;
	int r = outside_own.run(NULL, command, &stop, &text, &size);

	if (!r && strcmp(text, expected) != 0)
		fprintf(stderr, "%s: %s\n", command, text);
	CHECK(r || !strcmp(text, expected));
	if (!r)
		secret_free_bytes(text, size);
	return r;
}

static void programs_are_run(void)
{
	CHECK(!runs("echo a  b", "a b\n"));
	CHECK(!runs("printf '%s.' 'a  b' \"c 'd\" e\\ f \"\" '\\'",
		    "a  b.c 'd.e f..\\."));
	CHECK(!runs("  printf a'b'\"c\" ", "abc"));
	CHECK(!runs("cat", ""));
	CHECK(!runs("sh -c 'echo $0 # no comment'", "sh\n"));
	CHECK(runs("sh -c 'echo a; exit 1'", "") == -EIO);
	CHECK(runs("sh -c 'kill -9 $$'", "") == -EIO);
	CHECK(runs("/no/such/program", "") == -ENOENT);
	CHECK(runs("echo 'a", "") == -EINVAL);
	CHECK(runs("", "") == -EINVAL);
	CHECK(runs("yes", "") == -EFBIG);
}

static void programs_are_ended(void)
{
	int64_t begin = clock_ns();

	stop = true;
	CHECK(runs("sleep 100", "") == -ECANCELED);
	CHECK(runs("sh -c 'sleep 100; echo'", "") == -ECANCELED);
	stop = false;
	CHECK(clock_ns() - begin < 10000000000LL);
}

int main(void)
{
	CHECK(mkdtemp(folder));
	files_are_read();
	a_tilde_is_the_home_directory();
	programs_are_run();
	programs_are_ended();
	CHECK(!unlink(path_of("a")) && !rmdir(folder));
	return 0;
}
