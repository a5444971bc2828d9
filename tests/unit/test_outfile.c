/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/util/outfile.h"
#include "tests/unit/t.h"

enum { OTHER_USER = 65534, PATH_SIZE = 128 };

static char folder[] = "/tmp/test_outfile.XXXXXX";
static char target[PATH_SIZE];

/* --- helpers ------------------------------------------------------------- */

/* The name's path in the folder, in one of some buffers that take turns. */
static const char *path_of(const char *name)
{
	static char paths[4][PATH_SIZE];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	snprintf(path, PATH_SIZE, "%s/%s", folder, name);
	return path;
}

static unsigned files_in(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void make_file(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0 && write(fd, "old", 3) == 3);
	CHECK(!fchmod(fd, mode) && !close(fd));
}

static struct stat look_at(const char *path)
{
	struct stat st;

	CHECK(!lstat(path, &st));
	return st;
}

static int write_file(const char *path)
{
	struct outfile *f;
	int r = outfile_open(path, NULL, &f);

	if (r)
		return r;
	CHECK(!outfile_write(f, "new text", 8, 0));
	return outfile_publish(&f);
}

static bool has_text(const char *path, const char *text)
{
	char bytes[16] = "";
	int fd = open(path, O_RDONLY);

	CHECK(fd >= 0 && read(fd, bytes, sizeof(bytes) - 1) >= 0);
	close(fd);
	return !strcmp(bytes, text);
}

static bool is_root(const char *test)
{
	if (!geteuid())
		return true;
	printf("%s: skipped: needs root\n", test);
	return false;
}

/* Runs a test as another user, who owns the folder meanwhile. */
static void run_as_other(void (*test)(void))
{
	int status;
	pid_t pid;

	CHECK(!chown(folder, OTHER_USER, OTHER_USER));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK(!setgroups(0, NULL) && !setgid(OTHER_USER));
		CHECK(!setuid(OTHER_USER));
		test();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(!chown(folder, 0, 0));
}

/* --- places -------------------------------------------------------------- */

static void a_link_is_followed(void)
{
	const char *link = path_of("link"), *second = path_of("second");

	CHECK(!symlink("out", link) && !symlink(link, second));
	CHECK(!write_file(second) && has_text(target, "new text"));
	CHECK(!unlink(target));
	CHECK(!write_file(second) && has_text(target, "new text"));
	CHECK(S_ISLNK(look_at(link).st_mode));
	CHECK(S_ISLNK(look_at(second).st_mode));
	CHECK(!unlink(target) && !unlink(link) && !unlink(second));
	CHECK(!symlink("link", link));
	CHECK(write_file(link) == -ELOOP);
	CHECK(!unlink(link));
}

/* As /dev/stdout is such a link, and must stay one. */
static void a_link_to_a_pipe_is_no_place(void)
{
	const char *link = path_of("link");
	char fd_path[32];
	int pipes[2];

	CHECK(!pipe(pipes));
	snprintf(fd_path, sizeof(fd_path), "/proc/self/fd/%d", pipes[1]);
	CHECK(!symlink(fd_path, link));
	CHECK(write_file(link) == -EINVAL);
	CHECK(write_file(fd_path) == -EINVAL);
	CHECK(S_ISLNK(look_at(link).st_mode));
	CHECK(!unlink(link) && !close(pipes[0]) && !close(pipes[1]));
	CHECK(files_in(folder) == 0);
}

static void an_open_file_is_found_by_its_name(void)
{
	char fd_path[32];
	int fd;

	make_file(target, 0600);
	fd = open(target, O_RDWR);
	snprintf(fd_path, sizeof(fd_path), "/proc/self/fd/%d", fd);
	CHECK(!write_file(fd_path) && has_text(target, "new text"));
	/* Its name ends in " (deleted)" now. */
	CHECK(write_file(fd_path) == -ESTALE);
	CHECK(!unlink(target) && files_in(folder) == 0);
	close(fd);
}

static void only_files_are_replaced(void)
{
	const char *fifo = path_of("fifo");

	CHECK(!mkfifo(fifo, 0600));
	CHECK(write_file(fifo) == -EINVAL);
	CHECK(write_file("/dev/full") == -EINVAL);
	CHECK(write_file(folder) == -EISDIR);
	CHECK(write_file(path_of("new/")) == -EISDIR);
	CHECK(write_file(path_of("no/such")) == -ENOENT);
	CHECK(write_file(path_of("fifo/x")) == -ENOTDIR);
	CHECK(!unlink(fifo) && files_in(folder) == 0);
}

/* What takes the name while the file is written is not replaced if that fails,
   and nothing else is left. */
static void a_folder_may_come_meanwhile(void)
{
	struct outfile *f;

	CHECK(!outfile_open(target, NULL, &f));
	CHECK(!mkdir(target, 0700));
	CHECK(outfile_publish(&f) == -EISDIR);
	CHECK(!rmdir(target) && files_in(folder) == 0);
}

static void an_exchanged_folder_leads_nowhere(void)
{
	const char *in = path_of("in"), *moved = path_of("moved");
	struct outfile *f;

	CHECK(!mkdir(in, 0700) && !mkdir(path_of("trap"), 0700));
	CHECK(!outfile_open(path_of("in/out"), NULL, &f));
	in = path_of("in");
	moved = path_of("moved");
	CHECK(!rename(in, moved) && !symlink("trap", in));
	CHECK(!outfile_publish(&f));
	CHECK(files_in(path_of("trap")) == 0);
	CHECK(!unlink(path_of("in")) && !unlink(path_of("moved/out")));
	CHECK(!rmdir(path_of("moved")) && !rmdir(path_of("trap")));
}

/* --- other users --------------------------------------------------------- */

static void a_link_of_another_user_is_refused(void)
{
	const char *link = path_of("link");

	if (!is_root(__func__))
		return;
	make_file(target, 0600);
	CHECK(!symlink(target, link) && !lchown(link, OTHER_USER, OTHER_USER));
	CHECK(!chmod(folder, 01777));
	CHECK(write_file(link) == -EPERM && has_text(target, "old"));
	/* The folder's owner may do everything in it anyway. */
	CHECK(!chown(folder, OTHER_USER, 0));
	CHECK(!write_file(link) && has_text(target, "new text"));
	CHECK(!chown(folder, 0, 0) && !lchown(link, 0, 0));
	CHECK(!write_file(link));
	CHECK(!chmod(folder, 0700) && !lchown(link, OTHER_USER, OTHER_USER));
	CHECK(!write_file(link));
	CHECK(!unlink(link) && !unlink(target));
}

static void write_where_others_may_not(void)
{
	CHECK(!chmod(folder, 0500));
	CHECK(write_file(target) == -EACCES);
	CHECK(!chmod(folder, 0600));
	CHECK(write_file(target) == -EACCES);
	/* A folder may be written to and not listed. */
	CHECK(!chmod(folder, 0300));
	CHECK(!write_file(target));
	CHECK(!chmod(folder, 0700));
	CHECK(files_in(folder) == 1 && !unlink(target));
}

static void permissions_of_folders_count(void)
{
	if (is_root(__func__))
		run_as_other(write_where_others_may_not);
}

int main(void)
{
	umask(022);
	CHECK(mkdtemp(folder));
	snprintf(target, sizeof(target), "%s/out", folder);
	a_link_is_followed();
	a_link_to_a_pipe_is_no_place();
	an_open_file_is_found_by_its_name();
	only_files_are_replaced();
	a_folder_may_come_meanwhile();
	an_exchanged_folder_leads_nowhere();
	a_link_of_another_user_is_refused();
	permissions_of_folders_count();
	CHECK(rmdir(folder) == 0);
	return 0;
}
