/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/run/jit/compiler.h"
#include "loader/util/cancel.h"
#include "tests/unit/t.h"

enum { NOBODY = 65534 };

static char dir[] = "/tmp/test compiler-XXXXXX";
static const char *const no_flags[] = { NULL };

static struct compiler_job job_of(const char *source)
{
	return (struct compiler_job){ .source = source,
				      .isa_flags = no_flags,
				      .limit_ms = 600000 };
}

/* A compiler that is a script. */
static struct compiler script(const char *text)
{
	struct compiler c;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/my cc", dir);
	f = fopen(path, "w");
	CHECK(f && fprintf(f, "#!/bin/sh\n%s\n", text) > 0 && !fclose(f));
	CHECK(!chmod(path, 0755));
	setenv("BETON_CC", path, 1);
	CHECK(!compiler_find(&c));
	unsetenv("BETON_CC");
	return c;
}

/* Nothing stays but the script. */
static bool is_tidy(void)
{
	DIR *d = opendir(dir);
	int n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n <= 3;
}

static int run(const struct compiler *c, const struct compiler_job *job,
	       char *messages, size_t room)
{
	uint8_t *object = NULL;
	char *said = NULL;
	size_t size;
	int r = compiler_run(c, job, &object, &size, &said);

	CHECK(!r == (object != NULL) && !r == (said == NULL));
	snprintf(messages, room, "%s", said ? said : "");
	free(object);
	free(said);
	CHECK(is_tidy());
	return r;
}

static void source_becomes_an_object_or_messages(void)
{
	struct compiler_job job = job_of("int f(void) { return 3; }");
	struct compiler c;
	char said[2000];

	if (compiler_find(&c)) {
		printf("skip: no compiler\n");
		return;
	}
	CHECK(!run(&c, &job, said, sizeof(said)));
	job.source = "#line 7 \"mine.c\"\nint f(void) { return x; }";
	CHECK(run(&c, &job, said, sizeof(said)) == -EINVAL);
	CHECK(strstr(said, "mine.c:7") && strstr(said, "error"));
	job.source = "int f(void) { return unheard_of(); }";
	CHECK(run(&c, &job, said, sizeof(said)) == -EINVAL);
	CHECK(strstr(said, "unheard_of"));
}

static void a_compiler_is_found_by_its_environment(void)
{
	struct compiler a, b;
	char path[4096], own[64];

	a = script("exit 1");
	CHECK(strstr(a.path, "/my cc"));
	/* It is another one when the file is. */
	b = script("exit 1 # again");
	CHECK(!strcmp(a.path, b.path) && strcmp(a.identity, b.identity) != 0);
	setenv("BETON_CC", "/no/such/cc", 1);
	CHECK(compiler_find(&a) == -ENOENT);
	setenv("BETON_CC", dir, 1);
	CHECK(compiler_find(&a) == -ENOENT);
	unsetenv("BETON_CC");
	snprintf(path, sizeof(path), "%s", getenv("PATH"));
	setenv("PATH", "", 1);
	CHECK(compiler_find(&a) == -ENOENT);
	setenv("PATH", "relative:::/no/such", 1);
	CHECK(compiler_find(&a) == -ENOENT);
	snprintf(own, sizeof(own), "/no/such:%s", dir);
	setenv("PATH", own, 1);
	setenv("BETON_CC", "my cc", 1);
	CHECK(!compiler_find(&b) && strstr(b.path, "/my cc"));
	setenv("PATH", path, 1);
	/* It runs in another directory. */
	CHECK(!chdir(dir));
	setenv("BETON_CC", "./my cc", 1);
	CHECK(!compiler_find(&b) && *b.path == '/');
	CHECK(!chdir("/") && !access(b.path, X_OK));
	unsetenv("BETON_CC");
}

/*
 * Processes that a script leaves behind become children of the test. Waits for
 * them, and returns their number.
 */
static int orphans(int signal)
{
	int status, n = 0;

	for (; wait(&status) > 0; n++)
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal);
	CHECK(errno == ECHILD);
	return n;
}

static bool is_third(void *calls)
{
	return ++*(int *)calls == 3;
}

static void one_that_takes_too_long_is_ended(void)
{
	struct compiler c = script("sleep 20 & echo begun; wait");
	struct compiler_job job = job_of("");
	int calls = 0;
	struct cancel by_thread = { .fd = eventfd(1, 0) };
	struct cancel by_caller = { .fd = -1,
				    .asked = is_third,
				    .arg = &calls };
	char said[100];

	job.limit_ms = 300;
	CHECK(run(&c, &job, said, sizeof(said)) == -ETIMEDOUT);
	/* None, if the script was too slow to begin. */
	CHECK(orphans(SIGKILL) <= 1);
	job.limit_ms = 600000;
	job.cancel = &by_thread;
	CHECK(run(&c, &job, said, sizeof(said)) == -ECANCELED);
	CHECK(orphans(SIGKILL) <= 1);
	close(by_thread.fd);
	job.cancel = &by_caller;
	CHECK(run(&c, &job, said, sizeof(said)) == -ECANCELED);
	CHECK(calls == 3 && orphans(SIGKILL) <= 1);
}

/* The end of the compiler counts, not that of all who write its messages. */
static void one_that_leaves_a_process_behind_has_ended(void)
{
	struct compiler_job job = job_of("");
	char said[100];
	struct compiler c = script("sleep 20 & echo x > \"$2\"");

	job.limit_ms = 10000;
	CHECK(!run(&c, &job, said, sizeof(said)));
	CHECK(orphans(SIGKILL) == 1);
	c = script("sleep 20 & echo bad; exit 1");
	CHECK(run(&c, &job, said, sizeof(said)) == -EINVAL);
	CHECK(!strcmp(said, "bad\n"));
	CHECK(orphans(SIGKILL) == 1);
	/* In a group of its own, and one that never stops writing. */
	c = script("setsid sh -c ': > begun; exec yes' &"
		   "until [ -e begun ]; do sleep 0.01; done;"
		   "echo x > \"$2\"");
	CHECK(!run(&c, &job, said, sizeof(said)));
	CHECK(orphans(SIGPIPE) == 1);
}

static void one_that_closes_its_output_has_not_ended(void)
{
	struct compiler_job job = job_of("");
	char said[100];
	struct compiler c = script("exec >&- 2>&-; sleep 0.1; echo x > \"$2\"");

	CHECK(!run(&c, &job, said, sizeof(said)));
	c = script("exec >&- 2>&-; sleep 20; :");
	job.limit_ms = 300;
	CHECK(run(&c, &job, said, sizeof(said)) == -ETIMEDOUT);
	CHECK(orphans(SIGKILL) <= 1);
}

/* Then the kernel collects the status, and the object decides. */
static void a_program_may_ignore_its_children(void)
{
	struct compiler_job job = job_of("");
	char said[100];
	struct compiler c = script("echo x > \"$2\"");

	CHECK(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	CHECK(!run(&c, &job, said, sizeof(said)));
	c = script("exit 0");
	CHECK(run(&c, &job, said, sizeof(said)) == -EINVAL);
	CHECK(signal(SIGCHLD, SIG_DFL) != SIG_ERR);
}

static void one_that_fails_reports_why(void)
{
	struct compiler_job job = job_of("");
	struct compiler c = script("echo out; echo err >&2; exit 3");
	char said[20000];

	CHECK(run(&c, &job, said, sizeof(said)) == -EINVAL);
	CHECK(!strcmp(said, "out\nerr\n"));
	/* Too much is cut, not kept waiting. */
	c = script("yes | head -c 1000000; exit 1");
	CHECK(run(&c, &job, said, sizeof(said)) == -EINVAL);
	CHECK(strlen(said) > 10000 && strlen(said) < sizeof(said) - 1);
	c = script("kill -9 $$");
	CHECK(run(&c, &job, said, sizeof(said)) == -EINVAL);
	/* Content, but nothing made. */
	c = script("exit 0");
	CHECK(run(&c, &job, said, sizeof(said)) == -EINVAL);
	c = script(": > \"$2\"");
	CHECK(run(&c, &job, said, sizeof(said)) == -EINVAL);
	c = script("echo x > \"$2\"");
	CHECK(run(&c, &job, said, sizeof(said)) == 0);
}

static void it_runs_in_a_namespace_of_its_own(void)
{
	struct compiler_job job = job_of("");
	struct compiler c = script("[ \"$TMPDIR\" = \"${2%/*}\" ] || echo tmp;"
				   "[ -d \"$TMPDIR\" ] || echo dir;"
				   "[ -z \"$LD_PRELOAD\" ] || echo preload;"
				   "[ \"$LC_ALL\" = C ] || echo locale;"
				   "[ \"$MINE\" = 5 ] || echo mine;"
				   "read line && echo input; : > \"$TMPDIR/x\";"
				   "mkdir -p a/b; : > a/b/x; ln -s .. a/c;"
				   "kill -TERM $$; exit 1");
	char said[200];

	setenv("MINE", "5", 1);
	setenv("LD_PRELOAD", "libc.so.6", 1);
	/* Also with signals blocked, as in a thread of the library. */
	sigset_t all, old;

	sigfillset(&all);
	CHECK(!pthread_sigmask(SIG_SETMASK, &all, &old));
	CHECK(run(&c, &job, said, sizeof(said)) == -EINVAL);
	CHECK(!pthread_sigmask(SIG_SETMASK, &old, NULL));
	CHECK(!strcmp(said, ""));
	unsetenv("LD_PRELOAD");
}

/* Runs the compiler and returns whether the object is this text. */
static bool makes(const struct compiler *c, const char *source,
		  const char *object)
{
	struct compiler_job job = job_of(source);
	uint8_t *bytes = NULL;
	size_t size;
	bool same;

	if (compiler_run(c, &job, &bytes, &size, NULL))
		return false;
	same = size == strlen(object) && !memcmp(bytes, object, size);
	free(bytes);
	return same;
}

static bool is_there(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !access(path, F_OK);
}

/*
 * If others may write in $TMPDIR, they can put a directory of theirs in place
 * of ours.
 */
static void a_replaced_directory_changes_nothing(void)
{
	/* The name differs from run to run: the test needs fixed ones. */
	struct compiler c =
		script("d=$(cd \"$TMPDIR\" && pwd -P); t=${d%/*};"
		       "mv \"$d\" \"$t/away\"; mkdir \"$t/theirs\";"
		       "ln -s theirs \"$d\"; ln -s \"$d\" \"$t/link\";"
		       "echo theirs > \"$t/theirs/kernel.so\";"
		       "echo ours > \"$t/away/kernel.so\"");
	char command[256];

	CHECK(makes(&c, "", "ours\n"));
	/* Nothing stays in our directory, nothing of theirs is touched. */
	CHECK(!is_there("away/kernel.so") && !is_there("away/kernel.c"));
	CHECK(is_there("theirs/kernel.so") && is_there("link/kernel.so"));
	snprintf(command, sizeof(command),
		 "cd '%s' && rm -r away theirs link betonfs-*", dir);
	CHECK(!system(command) && is_tidy());
}

/* Puts directories with a source and an object of its own in place of ours. */
static void replace_directories(void)
{
	struct dirent *e;
	char path[512], away[600];
	DIR *d = opendir(dir);

	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, "betonfs-", 8) != 0 ||
		    strstr(e->d_name, ".away"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		snprintf(away, sizeof(away), "%s.away", path);
		if (rename(path, away) || mkdir(path, 0777))
			continue;
		for (int i = 0; i < 2; i++) {
			snprintf(away, sizeof(away), "%s/%s", path,
				 i ? "kernel.c" : "kernel.so");
			close(open(away, O_CREAT | O_WRONLY, 0666));
		}
	}
	if (d)
		closedir(d);
}

static pid_t start_racer(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	/* In this order: a change of user clears the signal. */
	if (setuid(NOBODY) || prctl(PR_SET_PDEATHSIG, SIGKILL))
		_exit(1);
	umask(0);
	for (;;)
		replace_directories();
}

static void a_user_that_replaces_directories_gets_nowhere(void)
{
	struct compiler c = script("cat \"$5\" > \"$2\"");
	char source[32], command[64];
	int status;
	pid_t racer;

	if (!can_be_another_user("directories replaced meanwhile"))
		return;
	CHECK(!chmod(dir, 0777));
	racer = start_racer();
	CHECK(racer > 0);
	for (int i = 0; i < 100; i++) {
		snprintf(source, sizeof(source), "%d", i);
		CHECK(makes(&c, source, source));
	}
	CHECK(!kill(racer, SIGKILL) && waitpid(racer, &status, 0) == racer);
	CHECK(WIFSIGNALED(status) && !chmod(dir, 0700));
	snprintf(command, sizeof(command), "rm -rf '%s'/betonfs-*", dir);
	CHECK(!system(command) && is_tidy());
}

int main(void)
{
	char command[64];

	CHECK(mkdtemp(dir) && !prctl(PR_SET_CHILD_SUBREAPER, 1));
	setenv("TMPDIR", dir, 1);
	source_becomes_an_object_or_messages();
	a_compiler_is_found_by_its_environment();
	one_that_takes_too_long_is_ended();
	one_that_leaves_a_process_behind_has_ended();
	one_that_closes_its_output_has_not_ended();
	a_program_may_ignore_its_children();
	one_that_fails_reports_why();
	it_runs_in_a_namespace_of_its_own();
	a_replaced_directory_changes_nothing();
	a_user_that_replaces_directories_gets_nowhere();
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	CHECK(!system(command));
	return 0;
}
