/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/log.h"
#include "loader/run/jit/code_cache.h"
#include "loader/util/cancel.h"
#include "tests/unit/t.h"

enum { LIMIT = 1 << 20, NOBODY = 65534 };

static char dir[] = "/tmp/test_code_cache-XXXXXX";
static char inner[64];
static char logged[600];
static struct log silence;

static void on_log(void *arg, enum beton_log_level level, const char *message)
{
	(void)arg;
	(void)level;
	snprintf(logged, sizeof(logged), "%s", message);
}

/* Whether the only message since the last call has this text. */
static bool has_logged(const char *text)
{
	bool has = strstr(logged, text) != NULL;

	if (!has)
		fprintf(stderr, "no `%s' in `%s'\n", text, logged);
	*logged = '\0';
	return has;
}

static struct code_cache *open_limited(uint64_t limit)
{
	return code_cache_open("isa", limit, &silence);
}

static struct code_cache *open_all(void)
{
	struct code_cache *o = open_limited(LIMIT);

	CHECK(o);
	return o;
}

static int store(struct code_cache *o, const char *key, const char *object)
{
	return code_cache_store(o, key, (const uint8_t *)object,
				strlen(object));
}

/* Whether the key's object is this one. */
static bool holds(struct code_cache *o, const char *key, const char *object)
{
	uint8_t *bytes;
	size_t size;
	bool same;

	if (code_cache_load(o, key, &bytes, &size))
		return false;
	same = size == strlen(object) && !memcmp(bytes, object, size);
	free(bytes);
	return same;
}

/* The path of the only object. */
static const char *the_file(void)
{
	static char path[512];
	DIR *d = opendir(inner);
	struct dirent *e;
	int found = 0;

	CHECK(d);
	while ((e = readdir(d))) {
		if (!strstr(e->d_name, ".so"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", inner, e->d_name);
		found++;
	}
	closedir(d);
	CHECK(found == 1);
	return path;
}

static void empty(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", inner);
	CHECK(!system(command));
	CHECK(!chmod(dir, 0700));
}

static void stored_code_is_loaded_later(void)
{
	struct code_cache *o = open_all();
	uint8_t *bytes;
	size_t size;

	CHECK(code_cache_load(o, "key", &bytes, &size) == -ENOENT);
	CHECK(!store(o, "key", "first"));
	CHECK(!store(o, "other", ""));
	code_cache_close(o);
	o = open_all();
	CHECK(holds(o, "key", "first") && holds(o, "other", ""));
	CHECK(!holds(o, "kex", "first"));
	CHECK(!store(o, "key", "second") && holds(o, "key", "second"));
	code_cache_close(o);
	empty();
}

static void no_cache_is_an_empty_one(void)
{
	uint8_t *bytes;
	size_t size;

	CHECK(code_cache_load(NULL, "key", &bytes, &size) == -ENOENT);
	CHECK(store(NULL, "key", "x") < 0);
	CHECK(code_cache_lock(NULL, "key", 0, NULL) < 0);
	code_cache_close(NULL);
}

static void everything_is_the_users_alone(void)
{
	struct code_cache *o = open_all();
	struct stat st;

	CHECK(!store(o, "key", "x"));
	CHECK(!stat(inner, &st) && (st.st_mode & 0777) == 0700);
	CHECK(!stat(the_file(), &st) && (st.st_mode & 0777) == 0600);
	code_cache_close(o);
	empty();
}

static void a_directory_that_others_can_write_is_not_used(void)
{
	code_cache_close(open_all());
	CHECK(!chmod(inner, 0770));
	CHECK(!open_limited(LIMIT));
	/* The path as it is, with its mode. */
	CHECK(!strncmp(logged, inner, strlen(inner)));
	CHECK(has_logged("mode 0770"));
	CHECK(!chmod(inner, 0702));
	CHECK(!open_limited(LIMIT));
	CHECK(!chmod(inner, 0755));
	code_cache_close(open_all());
	CHECK(!chmod(dir, 0777));
	CHECK(!open_limited(LIMIT));
	CHECK(!strncmp(logged, dir, strlen(dir)) && has_logged("mode 0777"));
	empty();
}

static void a_directory_of_another_user_is_not_used(void)
{
	if (geteuid() != 0) {
		printf("skip: only root can give files away\n");
		return;
	}
	code_cache_close(open_all());
	CHECK(!chown(inner, NOBODY, NOBODY));
	CHECK(!open_limited(LIMIT));
	CHECK(!strncmp(logged, inner, strlen(inner)));
	CHECK(has_logged("belongs to user 65534, not to user 0"));
	empty();
}

/* As root with the environment of another user: `sudo -E`. */
static void nothing_is_made_in_the_home_of_another_user(void)
{
	char home[64], cache[80], own[80];

	if (geteuid() != 0) {
		printf("skip: only root can give files away\n");
		return;
	}
	snprintf(home, sizeof(home), "%s/home", dir);
	snprintf(cache, sizeof(cache), "%s/.cache", home);
	snprintf(own, sizeof(own), "%s/mine", home);
	CHECK(!mkdir(home, 0755) && !chown(home, NOBODY, NOBODY));
	setenv("HOME", home, 1);
	unsetenv("BETON_CACHE_DIR");
	CHECK(!open_limited(LIMIT) && access(cache, F_OK));
	CHECK(!strncmp(logged, home, strlen(home)));
	CHECK(has_logged("belongs to user 65534, not to user 0"));
	setenv("XDG_CACHE_HOME", cache, 1);
	CHECK(!open_limited(LIMIT) && access(cache, F_OK));
	unsetenv("XDG_CACHE_HOME");
	CHECK(!mkdir(cache, 0700) && !chown(cache, NOBODY, NOBODY));
	CHECK(!open_limited(LIMIT) && has_logged("65534"));
	CHECK(!rmdir(cache));
	/* A directory that was named is made wherever it is. */
	setenv("BETON_CACHE_DIR", own, 1);
	code_cache_close(open_all());
	CHECK(!access(own, F_OK) && !*logged);
	setenv("BETON_CACHE_DIR", dir, 1);
	snprintf(cache, sizeof(cache), "rm -r '%s'", home);
	CHECK(!system(cache));
}

static void a_file_that_another_could_have_written_is_not_loaded(void)
{
	struct code_cache *o = open_all();

	CHECK(!store(o, "key", "x"));
	CHECK(!chmod(the_file(), 0620) && !holds(o, "key", "x"));
	CHECK(!chmod(the_file(), 0600) && holds(o, "key", "x"));
	if (geteuid() == 0) {
		CHECK(!chown(the_file(), NOBODY, NOBODY));
		CHECK(!holds(o, "key", "x"));
	}
	CHECK(!store(o, "key", "y") && holds(o, "key", "y"));
	code_cache_close(o);
	empty();
}

static void a_link_is_not_followed(void)
{
	struct code_cache *o = open_all();
	char path[512], away[80];

	CHECK(!store(o, "key", "x"));
	snprintf(path, sizeof(path), "%s", the_file());
	snprintf(away, sizeof(away), "%s/away", dir);
	CHECK(!rename(path, away) && !symlink(away, path));
	CHECK(!holds(o, "key", "x"));
	CHECK(!store(o, "key", "y") && holds(o, "key", "y"));
	CHECK(!unlink(away));
	code_cache_close(o);
	empty();
}

static void incomplete_code_is_not_loaded(void)
{
	struct code_cache *o = open_all();
	struct stat st;
	uint8_t byte;
	int fd;

	CHECK(!store(o, "key", "some object"));
	CHECK(!stat(the_file(), &st));
	for (off_t i = 0; i < st.st_size; i++) {
		fd = open(the_file(), O_RDWR);
		CHECK(fd >= 0 && pread(fd, &byte, 1, i) == 1);
		byte ^= 4;
		CHECK(pwrite(fd, &byte, 1, i) == 1);
		CHECK(!holds(o, "key", "some object"));
		byte ^= 4;
		CHECK(pwrite(fd, &byte, 1, i) == 1);
		CHECK(holds(o, "key", "some object"));
		close(fd);
	}
	for (off_t size = st.st_size - 1; size >= 0; size--) {
		CHECK(!truncate(the_file(), size));
		CHECK(!holds(o, "key", "some object"));
	}
	CHECK(!store(o, "key", "new") && holds(o, "key", "new"));
	code_cache_close(o);
	empty();
}

/* A user whose home is read-only. */
static void where_nothing_can_be_written_there_is_no_cache(void)
{
	struct code_cache *o = open_all();
	int status;

	CHECK(!store(o, "key", "x"));
	code_cache_close(o);
	if (geteuid() == 0 && !fork()) {
		/* Root can write anywhere; no other user can write here. */
		if (seteuid(NOBODY))
			_exit(1);
		_exit(open_limited(LIMIT) ? 2 : 0);
	}
	CHECK(geteuid() != 0 || (wait(&status) > 0 && !status));
	setenv("BETON_CACHE_DIR", "/proc/no/such", 1);
	CHECK(!open_limited(LIMIT));
	unsetenv("BETON_CACHE_DIR");
	setenv("XDG_CACHE_HOME", "/proc/no", 1);
	CHECK(!open_limited(LIMIT));
	unsetenv("XDG_CACHE_HOME");
	setenv("HOME", "", 1);
	CHECK(!open_limited(LIMIT));
	setenv("HOME", dir, 1);
	o = open_all();
	CHECK(!store(o, "key", "x") && holds(o, "key", "x"));
	code_cache_close(o);
	setenv("BETON_CACHE_DIR", dir, 1);
	empty();
}

enum { LONG_AGO = 1000000 };

/* Sets the last use of each object that was used since LONG_AGO. */
static void set_last_use(time_t when)
{
	struct timespec times[2] = { { .tv_sec = when }, { .tv_sec = when } };
	DIR *d = opendir(inner);
	struct dirent *e;
	struct stat st;

	CHECK(d);
	while ((e = readdir(d))) {
		CHECK(!fstatat(dirfd(d), e->d_name, &st, 0));
		if (strstr(e->d_name, ".so") && st.st_mtime > LONG_AGO)
			CHECK(!utimensat(dirfd(d), e->d_name, times, 0));
	}
	closedir(d);
}

/* The limit has room for two of three objects. */
static void check_removed(bool loads_a, const char *removed, const char *stays)
{
	struct code_cache *o = open_limited(3000);
	char object[1001] = "";

	CHECK(o);
	memset(object, 'x', 1000);
	CHECK(!store(o, "a", object));
	set_last_use(1000);
	CHECK(!store(o, "b", object));
	set_last_use(2000);
	CHECK(!loads_a || holds(o, "a", object));
	CHECK(!store(o, "c", object) && holds(o, "c", object));
	CHECK(!holds(o, removed, object) && holds(o, stays, object));
	code_cache_close(o);
	empty();
}

static void the_oldest_make_room(void)
{
	struct code_cache *o;
	char object[1001] = "";

	memset(object, 'x', 1000);
	check_removed(false, "a", "b");
	/* Loading counts as using. */
	check_removed(true, "b", "a");
	o = open_all();
	CHECK(!store(o, "c", object));
	code_cache_close(o);
	o = open_limited(10);
	CHECK(!store(o, "d", object) && holds(o, "d", object));
	CHECK(!holds(o, "c", object) && strstr(the_file(), inner));
	code_cache_close(o);
	empty();
}

/* Makes a file that was last changed so many seconds ago. */
static void leave(const char *name, time_t age)
{
	time_t then = time(NULL) - age;
	struct timespec times[2] = { { .tv_sec = then }, { .tv_sec = then } };
	char path[128] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/%s", inner, name);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	CHECK(fd >= 0 && write(fd, path, 100) == 100);
	CHECK(!futimens(fd, times));
	close(fd);
}

static bool is_left(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", inner, name);
	return !access(path, F_OK);
}

/* Left by a killed process if they are old; a younger one may be in use. */
static void temporary_files_are_removed_once_they_are_old(void)
{
	struct code_cache *o = open_all();

	leave(".0123456789abcdef", 2 * 3600);
	leave(".0123456789abcdee", 1800);
	CHECK(!store(o, "key", "x"));
	CHECK(!is_left(".0123456789abcdef") && is_left(".0123456789abcdee"));
	code_cache_close(o);
	empty();
}

/* $BETON_CACHE_DIR may come to name a directory with other libraries. */
static void files_of_others_are_left_alone(void)
{
	static const char *const names[] = {
		"libz.so",
		"libz.so.1",
		".bashrc",
		".0123456789abcdeg",
		".0123456789abcdef0",
		"0123456789abcdef0123456789abcde.so",
		"0123456789abcdef0123456789abcdeg.so",
		"0123456789abcdef0123456789abcdef.so.1",
	};
	struct code_cache *o = open_limited(10);

	CHECK(o);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		leave(names[i], 1000000);
	leave("0123456789abcdef0123456789abcdef.so", 1000000);
	CHECK(!store(o, "key", "x"));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		CHECK(is_left(names[i]));
	CHECK(!is_left("0123456789abcdef0123456789abcdef.so"));
	code_cache_close(o);
	empty();
}

static void one_holds_the_lock_of_a_key(void)
{
	struct code_cache *o = open_all();
	struct cancel cancel = { .fd = eventfd(1, 0) };
	int a, b;

	a = code_cache_lock(o, "key", 0, NULL);
	CHECK(a >= 0);
	CHECK(code_cache_lock(o, "key", 40, NULL) == -ETIMEDOUT);
	CHECK(code_cache_lock(o, "key", 600000, &cancel) == -ECANCELED);
	b = code_cache_lock(o, "another", 0, NULL);
	CHECK(b >= 0);
	code_cache_unlock(a);
	code_cache_unlock(b);
	a = code_cache_lock(o, "key", 0, NULL);
	CHECK(a >= 0);
	code_cache_unlock(a);
	close(cancel.fd);
	code_cache_close(o);
	empty();
}

/* A child of fork() has the descriptor too, and keeps it. */
static void a_child_does_not_keep_the_lock(void)
{
	struct code_cache *o = open_all();
	int lock = code_cache_lock(o, "key", 0, NULL), status;
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(1);
	}
	CHECK(pid > 0 && lock >= 0);
	code_cache_unlock(lock);
	lock = code_cache_lock(o, "key", 0, NULL);
	CHECK(lock >= 0);
	code_cache_unlock(lock);
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid);
	code_cache_close(o);
	empty();
}

static void a_stopped_process_does_not_hold_up_others_indefinitely(void)
{
	struct code_cache *o = open_all();
	int status, fd;
	pid_t pid = fork();

	if (!pid) {
		if (code_cache_lock(o, "key", 0, NULL) < 0)
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	CHECK(code_cache_lock(o, "key", 60, NULL) == -ETIMEDOUT);
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid);
	fd = code_cache_lock(o, "key", 60000, NULL);
	CHECK(fd >= 0);
	code_cache_unlock(fd);
	code_cache_close(o);
	empty();
}

/* There is no lock: a reader gets one of the objects, or none. */
static void writers_at_once_do_no_harm(void)
{
	struct code_cache *o = open_all();
	char object[20001];
	int status;

	for (int k = 0; k < 3; k++) {
		if (fork())
			continue;
		memset(object, 'a' + k, 20000);
		object[20000] = '\0';
		for (int i = 0; i < 200; i++) {
			uint8_t *bytes;
			size_t size;

			if (store(o, "key", object))
				_exit(1);
			if (code_cache_load(o, "key", &bytes, &size))
				_exit(2);
			if (size != 20000 || bytes[0] != bytes[19999])
				_exit(3);
			free(bytes);
		}
		_exit(0);
	}
	for (int k = 0; k < 3; k++)
		CHECK(wait(&status) > 0 && !status);
	the_file();
	code_cache_close(o);
	empty();
}

int main(void)
{
	char command[64];

	CHECK(mkdtemp(dir));
	snprintf(inner, sizeof(inner), "%s/isa", dir);
	log_init(&silence, on_log, NULL);
	setenv("BETON_CACHE_DIR", dir, 1);
	stored_code_is_loaded_later();
	no_cache_is_an_empty_one();
	everything_is_the_users_alone();
	a_directory_that_others_can_write_is_not_used();
	a_directory_of_another_user_is_not_used();
	nothing_is_made_in_the_home_of_another_user();
	a_file_that_another_could_have_written_is_not_loaded();
	a_link_is_not_followed();
	incomplete_code_is_not_loaded();
	where_nothing_can_be_written_there_is_no_cache();
	the_oldest_make_room();
	temporary_files_are_removed_once_they_are_old();
	files_of_others_are_left_alone();
	one_holds_the_lock_of_a_key();
	a_child_does_not_keep_the_lock();
	a_stopped_process_does_not_hold_up_others_indefinitely();
	writers_at_once_do_no_harm();
	log_fini(&silence);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	CHECK(!system(command));
	return 0;
}
