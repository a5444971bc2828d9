/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/base/metrics/trace.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/util/clock.h"
#include "fs/base/util/thread.h"
#include "tests/unit/t.h"

enum { THREADS = 4, MANY = 50000 };

static char folder[] = "/tmp/test_trace.XXXXXX";
static char said[1024]; /* last */
static unsigned warnings;

static void note(void *arg, enum beton_log_level level, const char *message)
{
	(void)arg;
	snprintf(said, sizeof(said), "%s", message);
	warnings += level == BETON_LOG_WARNING;
}

static struct log log_;

static void path_of(char out[128], const char *name)
{
	snprintf(out, 128, "%s/%s", folder, name);
}

static struct trace *open_trace(const char *name)
{
	struct trace *trace;
	char path[128];

	path_of(path, name);
	CHECK(!trace_open(path, &log_, &trace));
	return trace;
}

/* The events of a file, which is valid. */
static json_t *events_of(const char *name, json_t **root)
{
	char path[128];
	json_t *events;

	path_of(path, name);
	*root = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
	CHECK(*root);
	events = json_object_get(*root, "traceEvents");
	CHECK(json_is_array(events));
	return events;
}

static bool is(const json_t *object, const char *key, const char *text)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value && !strcmp(value, text);
}

static uint64_t count(const json_t *events, const char *phase, const char *name)
{
	uint64_t n = 0;
	json_t *e;
	size_t i;

	json_array_foreach(events, i, e)
	{
		n += is(e, "ph", phase) && is(e, "name", name);
	}
	return n;
}

static const json_t *find(const json_t *events, const char *name)
{
	json_t *e;
	size_t i;

	json_array_foreach(events, i, e)
	{
		if (is(e, "name", name))
			return e;
	}
	CHECK(!"there");
	return NULL;
}

static double number(const json_t *o, const char *key)
{
	CHECK(json_is_number(json_object_get(o, key)));
	return json_number_value(json_object_get(o, key));
}

static void traced_events_are_in_the_file(void)
{
	struct trace *trace = open_trace("a.json");
	struct trace_track *t = trace_add(trace, "number %d", 7);
	uint64_t at = (uint64_t)clock_ns();
	struct timespec now;
	const json_t *e;
	json_t *root, *events;

	/* Valid from the beginning. */
	CHECK(json_array_size(events_of("a.json", &root)) == 1);
	json_decref(root);
	trace_here(t);
	trace_span(t, TRACE_DECODE, at, at + 1234567, 42, 1000);
	trace_count(t, TRACE_QUEUE, at + 5, 3);
	trace_span(t, TRACE_WAIT, at, at, 0, 0);
	trace_close(trace);
	clock_gettime(CLOCK_REALTIME, &now);
	events = events_of("a.json", &root);
	CHECK(json_array_size(events) == 5);
	CHECK(is(json_object_get(find(events, "thread_name"), "args"), "name",
		 "number 7"));
	e = find(events, "decode");
	CHECK(is(e, "ph", "X") && is(e, "cat", "beton"));
	CHECK(number(e, "pid") == getpid() && number(e, "tid") == gettid());
	CHECK(number(e, "dur") == 1234.567);
	CHECK(number(json_object_get(e, "args"), "sample") == 42);
	CHECK(number(json_object_get(e, "args"), "samples") == 1000);
	/* Times are those of the wall clock. */
	CHECK(now.tv_sec - (number(root, "baseTimeNanoseconds") / 1e9 +
			    number(e, "ts") / 1e6) <
	      60);
	e = find(events, "queue");
	CHECK(is(e, "ph", "C") && !json_object_get(e, "dur"));
	CHECK(number(json_object_get(e, "args"), "ready") == 3);
	CHECK(json_object_size(json_object_get(find(events, "wait"), "args")) ==
	      0);
	json_decref(root);
}

/* All at once, and faster than they can be written. */
struct writer {
	pthread_t thread;
	struct trace_track *track;
};

static void *write_many(void *arg)
{
	const struct writer *w = arg;
	uint64_t at = (uint64_t)clock_ns();

	trace_here(w->track);
	for (uint64_t i = 0; i < MANY; i++)
		trace_span(w->track, TRACE_SAMPLES, at + i, at + i + 1, i, i);
	return NULL;
}

static void dropped_events_are_counted(void)
{
	struct trace *trace = open_trace("b.json");
	struct writer writers[THREADS];
	json_t *root, *events, *e;
	uint64_t dropped = 0;
	size_t i;

	for (i = 0; i < THREADS; i++) {
		writers[i].track = trace_add(trace, "writer");
		CHECK(!thread_start(&writers[i].thread, write_many,
				    &writers[i]));
	}
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_join(writers[i].thread, NULL));
	trace_close(trace);
	events = events_of("b.json", &root);
	json_array_foreach(events, i, e)
	{
		if (is(e, "name", "dropped"))
			dropped += (uint64_t)number(json_object_get(e, "args"),
						    "events");
	}
	CHECK(count(events, "X", "samples") + dropped == THREADS * MANY);
	CHECK(count(events, "M", "thread_name") == THREADS);
	json_decref(root);
}

static void files_that_are_in_use_are_left_alone(void)
{
	struct trace *a = open_trace("c.json"), *b = open_trace("c.json");
	struct trace *c = open_trace("c.json"), *d = open_trace("plain");
	struct trace *e = open_trace("plain");
	json_t *root;

	trace_span(trace_add(b, "b"), TRACE_SAMPLES, 1, 2, 3, 4);
	trace_close(a);
	trace_close(b);
	trace_close(c);
	trace_close(d);
	trace_close(e);
	CHECK(json_array_size(events_of("c.json", &root)) == 1);
	json_decref(root);
	CHECK(count(events_of("c.2.json", &root), "X", "samples") == 1);
	json_decref(root);
	CHECK(json_array_size(events_of("c.3.json", &root)) == 1);
	json_decref(root);
	CHECK(json_array_size(events_of("plain.2", &root)) == 1);
	json_decref(root);
	/* No process writes it any more: it is begun again. */
	trace_close(open_trace("c.2.json"));
	CHECK(!count(events_of("c.2.json", &root), "X", "samples"));
	json_decref(root);
}

static void other_than_regular_files_are_refused(void)
{
	struct trace *trace = NULL;
	char path[128], huge[5000];

	CHECK(trace_open(folder, &log_, &trace) == -EISDIR);
	CHECK(strstr(said, folder));
	CHECK(trace_open("/dev/null", &log_, &trace) == -EINVAL);
	path_of(path, "fifo");
	CHECK(!mkfifo(path, 0600));
	CHECK(trace_open(path, &log_, &trace) < 0);
	path_of(path, "none/a.json");
	CHECK(trace_open(path, &log_, &trace) == -ENOENT);
	memset(huge, 'x', sizeof(huge));
	huge[sizeof(huge) - 1] = '\0';
	CHECK(trace_open(huge, &log_, &trace) == -ENAMETOOLONG);
	CHECK(!trace);
}

/* A trace is written in its place, so also a file there is refused. */
static void a_file_of_another_user_is_refused(void)
{
	enum { OTHER_USER = 65534 };
	struct trace *trace = NULL;
	char path[128], link[128];
	struct stat st;
	FILE *f;

	if (geteuid()) {
		puts("a_file_of_another_user_is_refused: skipped: needs root");
		return;
	}
	path_of(path, "victim");
	path_of(link, "link");
	f = fopen(path, "w");
	CHECK(f && fputs("old", f) >= 0 && !fclose(f));
	CHECK(!symlink("victim", link));
	CHECK(!lchown(link, OTHER_USER, OTHER_USER) && !chmod(folder, 01777));
	CHECK(trace_open(link, &log_, &trace) == -EPERM);
	CHECK(strstr(said, "another user"));
	CHECK(!lchown(link, 0, 0) && !chown(path, OTHER_USER, 0));
	CHECK(trace_open(link, &log_, &trace) == -EPERM);
	CHECK(!stat(path, &st) && st.st_size == 3 && !trace);
	CHECK(!chown(path, 0, 0));
	CHECK(!trace_open(link, &log_, &trace));
	trace_close(trace);
	CHECK(!chmod(folder, 0700));
}

/* A disk that is full ends the trace, not its validity. */
static void a_full_disk_leaves_a_valid_file(void)
{
	struct rlimit before, small = { 100000, 100000 };
	struct trace_track *t;
	struct trace *trace;
	json_t *root;
	uint64_t n;

	signal(SIGXFSZ, SIG_IGN);
	CHECK(!getrlimit(RLIMIT_FSIZE, &before));
	small.rlim_max = before.rlim_max;
	CHECK(!setrlimit(RLIMIT_FSIZE, &small));
	warnings = 0;
	trace = open_trace("d.json");
	t = trace_add(trace, "d");
	for (uint64_t i = 0; i < 4000; i++)
		trace_span(t, TRACE_SAMPLES, i, i + 1, i, i);
	trace_close(trace);
	CHECK(!setrlimit(RLIMIT_FSIZE, &before));
	CHECK(warnings == 1 && strstr(said, "the trace is incomplete"));
	n = count(events_of("d.json", &root), "X", "samples");
	CHECK(n > 0 && n < 4000);
	json_decref(root);
}

static void without_a_trace_there_are_no_tracks(void)
{
	struct trace_track *t = trace_add(NULL, "none");

	CHECK(!t);
	trace_here(t);
	trace_span(t, TRACE_READ, 1, 2, 3, 4);
	trace_count(t, TRACE_QUEUE, 1, 2);
	trace_close(NULL);
}

int main(void)
{
	char command[128];

	CHECK(mkdtemp(folder));
	log_init(&log_, note, NULL);
	traced_events_are_in_the_file();
	dropped_events_are_counted();
	files_that_are_in_use_are_left_alone();
	other_than_regular_files_are_refused();
	a_file_of_another_user_is_refused();
	a_full_disk_leaves_a_valid_file();
	without_a_trace_there_are_no_tracks();
	log_fini(&log_);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	CHECK(!system(command));
	return 0;
}
