/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fs/base/files/outfile.h"
#include "fs/base/util/bytes.h"
#include "tests/unit/t.h"

enum { OTHER_USER = 65534, OTHER_GROUP = 2345, PATH_SIZE = 128 };

static char folder[] = "/tmp/test_outfile.XXXXXX";
static char target[PATH_SIZE];

/* --- helpers ------------------------------------------------------------- */

/* The path of a name in the directory, in one of several buffers in turn. */
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
	int r = outfile_open(path, false, NULL, &f);

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

/* Runs a test as another user, who owns the directory meanwhile. */
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

/* --- access -------------------------------------------------------------- */

static void a_new_file_has_the_usual_mode(void)
{
	mode_t before = umask(027);

	CHECK(!write_file(target));
	CHECK((look_at(target).st_mode & 07777) == 0640);
	umask(before);
	CHECK(!unlink(target));
}

static void the_mode_stays(void)
{
	static const mode_t modes[] = { 0600, 0640, 0644, 0666, 0444, 0200 };

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		make_file(target, modes[i]);
		CHECK(!write_file(target));
		CHECK((look_at(target).st_mode & 07777) == modes[i]);
		CHECK(!unlink(target));
	}
}

/* It may change while the new file is written. */
static void the_last_mode_counts(void)
{
	struct outfile *f;

	make_file(target, 0644);
	CHECK(!outfile_open(target, false, NULL, &f));
	CHECK(!chmod(target, 0600));
	CHECK(!outfile_publish(&f));
	CHECK((look_at(target).st_mode & 0777) == 0600);
	CHECK(!chmod(target, 0640));
	CHECK(!outfile_open(target, false, NULL, &f));
	CHECK(!unlink(target));
	CHECK(!outfile_publish(&f));
	CHECK((look_at(target).st_mode & 0777) == 0640);
	CHECK(!unlink(target));
}

static void owner_and_group_stay(void)
{
	struct stat st;

	if (!can_be_another_user(__func__))
		return;
	make_file(target, 0640);
	CHECK(!chown(target, OTHER_USER, OTHER_GROUP));
	CHECK(!write_file(target) && has_text(target, "new text"));
	st = look_at(target);
	CHECK(st.st_uid == OTHER_USER && st.st_gid == OTHER_GROUP);
	CHECK((st.st_mode & 07777) == 0640);
	CHECK(!unlink(target));
}

static void write_over(void)
{
	CHECK(!write_file(target));
}

/* The group's rights must not go to another group. */
static void a_group_that_cannot_stay_takes_its_rights_with_it(void)
{
	struct stat st;

	if (!can_be_another_user(__func__))
		return;
	make_file(target, 0664);
	CHECK(!chown(target, 0, OTHER_GROUP));
	run_as_other(write_over);
	st = look_at(target);
	CHECK(st.st_uid == OTHER_USER && st.st_gid == OTHER_USER);
	CHECK((st.st_mode & 07777) == 0644);
	CHECK(!unlink(target));
}

/* If a file has an access control list, the mode's bits of the group are those
   of its mask. */
static void the_access_control_list_stays(void)
{
	static const char name[] = "system.posix_acl_access";
	static const uint8_t list[] = {
		2,  0, 0, 0,			     /* version */
		1,  0, 6, 0, 0xff, 0xff, 0xff, 0xff, /* owner: rw */
		2,  0, 6, 0, 0x29, 0x09, 0,    0,    /* a user: rw */
		4,  0, 0, 0, 0xff, 0xff, 0xff, 0xff, /* group: none */
		16, 0, 6, 0, 0xff, 0xff, 0xff, 0xff, /* mask: rw */
		32, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, /* others: none */
	};
	uint8_t got[2 * sizeof(list)];

	make_file(target, 0600);
	if (setxattr(target, name, list, sizeof(list), 0)) {
		printf("%s: skipped: %s\n", __func__, strerror(errno));
		CHECK(!unlink(target));
		return;
	}
	CHECK(!write_file(target) && has_text(target, "new text"));
	CHECK(getxattr(target, name, got, sizeof(got)) == sizeof(list));
	CHECK(!memcmp(got, list, sizeof(list)));
	CHECK((look_at(target).st_mode & 07777) == 0660);
	CHECK(!unlink(target));
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
	CHECK(write_file("") == -ENOENT && write_file("/") == -EISDIR);
	CHECK(write_file(path_of("no/such")) == -ENOENT);
	CHECK(write_file(path_of("fifo/x")) == -ENOTDIR);
	CHECK(!unlink(fifo) && files_in(folder) == 0);
}

static void a_dataset_is_replaced_by_datasets_alone(void)
{
	static const struct {
		const char *old;
		size_t size;
		bool is_dataset;
		int result;
	} rows[] = {
		{ "<!DOCTYPE", 9, false, 0 },
		{ "", 0, false, 0 },
		{ "\2", 1, false, 0 },
		{ "\0\0x", 3, false, 0 },
		{ "\2\0", 2, true, 0 },
		{ "text", 4, true, -EEXIST },
		{ "", 0, true, 0 },
		{ "\0", 1, true, 0 },
		{ "\0\0x", 3, true, 0 },
		{ "\2", 1, true, -EEXIST },
		{ "\2\0x", 3, false, -EEXIST },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct outfile *f;
		int fd = open(target, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		CHECK(write(fd, rows[i].old, rows[i].size) ==
		      (ssize_t)rows[i].size);
		CHECK(!close(fd));
		CHECK(outfile_open(target, rows[i].is_dataset, NULL, &f) ==
		      rows[i].result);
		if (!rows[i].result)
			outfile_abort(&f);
		CHECK(look_at(target).st_size == (off_t)rows[i].size);
	}
	CHECK(!unlink(target));
}

/* If another file takes the name meanwhile and the write fails, that file
   stays, and nothing else is left. */
static void a_directory_may_come_meanwhile(void)
{
	struct outfile *f;

	CHECK(!outfile_open(target, false, NULL, &f));
	CHECK(!mkdir(target, 0700));
	CHECK(outfile_publish(&f) == -EISDIR);
	CHECK(!rmdir(target) && files_in(folder) == 0);
}

/* Another writer may replace the file at any moment. */
static void a_file_may_be_replaced_meanwhile(void)
{
	const char *made = path_of("made");
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			make_file(made, 0600);
			rename(made, target);
		}
	}
	make_file(target, 0600);
	for (int i = 0; i < 3000; i++) {
		struct outfile *f;

		CHECK(!outfile_open(target, false, NULL, &f));
		outfile_abort(&f);
	}
	kill(child, SIGKILL);
	CHECK(waitpid(child, NULL, 0) == child);
	unlink(made);
	CHECK(!unlink(target));
}

static struct outfile *open_expecting(const struct stat *old)
{
	struct outfile *f;

	CHECK(!outfile_open(target, false, NULL, &f));
	outfile_expect(f, old);
	CHECK(!outfile_write(f, "new!", 4, 0));
	return f;
}

/* Two programs expect the same file: the first one replaces it. */
static void only_the_expected_file_is_replaced(void)
{
	struct outfile *first, *second;
	struct stat old;
	int fd;

	make_file(target, 0600);
	old = look_at(target);
	first = open_expecting(&old);
	second = open_expecting(&old);
	CHECK(!outfile_publish(&first));
	CHECK(outfile_publish(&second) == -ESTALE);
	CHECK(look_at(target).st_size == 4 && files_in(folder) == 1);

	/* Another program is about to replace it. */
	old = look_at(target);
	first = open_expecting(&old);
	fd = open(target, O_RDONLY);
	CHECK(fd >= 0 && !flock(fd, LOCK_EX));
	CHECK(outfile_publish(&first) == -ESTALE);
	close(fd);

	first = open_expecting(&old);
	CHECK(!unlink(target));
	CHECK(outfile_publish(&first) == -ESTALE && files_in(folder) == 0);
}

static void an_exchanged_directory_leads_nowhere(void)
{
	const char *in = path_of("in"), *moved = path_of("moved");
	struct outfile *f;

	CHECK(!mkdir(in, 0700) && !mkdir(path_of("trap"), 0700));
	CHECK(!outfile_open(path_of("in/out"), false, NULL, &f));
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

	if (!can_be_another_user(__func__))
		return;
	make_file(target, 0600);
	CHECK(!symlink(target, link) && !lchown(link, OTHER_USER, OTHER_USER));
	CHECK(!chmod(folder, 01777));
	CHECK(write_file(link) == -EPERM && has_text(target, "old"));
	/* The directory's owner may do everything in it anyway. */
	CHECK(!chown(folder, OTHER_USER, 0));
	CHECK(!write_file(link) && has_text(target, "new text"));
	CHECK(!chown(folder, 0, 0) && !lchown(link, 0, 0));
	CHECK(!write_file(link));
	CHECK(!chmod(folder, 0700) && !lchown(link, OTHER_USER, OTHER_USER));
	CHECK(!write_file(link));
	CHECK(!unlink(link) && !unlink(target));
}

/* A file that was left there for root must not give away what root writes. */
static void a_file_of_another_user_gives_no_access(void)
{
	struct stat st;

	if (!can_be_another_user(__func__))
		return;
	make_file(target, 0666);
	CHECK(!chown(target, OTHER_USER, OTHER_USER));
	CHECK(!chmod(folder, 01777));
	CHECK(!write_file(target));
	st = look_at(target);
	CHECK(st.st_uid == 0 && st.st_gid == 0);
	CHECK((st.st_mode & 07777) == 0644);
	CHECK(!chmod(folder, 0700) && !unlink(target));
}

static void write_where_others_may_not(void)
{
	CHECK(!chmod(folder, 0500));
	CHECK(write_file(target) == -EACCES);
	CHECK(!chmod(folder, 0600));
	CHECK(write_file(target) == -EACCES);
	/* A directory can be writable without being readable. */
	CHECK(!chmod(folder, 0300));
	CHECK(!write_file(target));
	CHECK(!chmod(folder, 0700));
	CHECK(files_in(folder) == 1 && !unlink(target));
}

static void permissions_of_directories_count(void)
{
	if (can_be_another_user(__func__))
		run_as_other(write_where_others_may_not);
}

int main(void)
{
	umask(022);
	CHECK(mkdtemp(folder));
	snprintf(target, sizeof(target), "%s/out", folder);
	a_new_file_has_the_usual_mode();
	the_mode_stays();
	the_last_mode_counts();
	owner_and_group_stay();
	a_group_that_cannot_stay_takes_its_rights_with_it();
	the_access_control_list_stays();
	a_link_is_followed();
	a_link_to_a_pipe_is_no_place();
	an_open_file_is_found_by_its_name();
	only_files_are_replaced();
	a_dataset_is_replaced_by_datasets_alone();
	a_directory_may_come_meanwhile();
	a_file_may_be_replaced_meanwhile();
	only_the_expected_file_is_replaced();
	an_exchanged_directory_leads_nowhere();
	a_link_of_another_user_is_refused();
	a_file_of_another_user_gives_no_access();
	permissions_of_directories_count();
	CHECK(rmdir(folder) == 0);
	return 0;
}
