/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/machine/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fs/base/util/bytes.h"

/* Returns false if the path is too long. */
static bool path_below(const char *root, const char *path, char out[PATH_MAX])
{
	return snprintf(out, PATH_MAX, "%s%s", root, path) < PATH_MAX;
}

FILE *process_open_file(const char *root, const char *path)
{
	char full[PATH_MAX];

	return path_below(root, path, full) ? fopen(full, "re") : NULL;
}

/* "PID (NAME) STATE PARENT ...": the name may hold anything. */
static bool read_stat(const char *root, const char *path,
		      struct process_stat *out)
{
	unsigned long long user, system, started = 0;
	char text[1024], *open, *close;
	FILE *f = process_open_file(root, path);
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	int parent;

	if (f)
		fclose(f);
	text[n] = '\0';
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close ||
	    sscanf(close + 1,
		   " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu",
		   &parent, &user, &system, &started) < 3)
		return false;
	snprintf(out->name, sizeof(out->name), "%.*s",
		 (int)min_u64((uint64_t)(close - open - 1), 31), open + 1);
	out->parent = parent;
	out->cpu_ticks = user + system;
	out->cpu_s = (double)out->cpu_ticks / (double)sysconf(_SC_CLK_TCK);
	out->start_ticks = started;
	return true;
}

static bool read_process(const char *root, pid_t pid, struct process_stat *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return read_stat(root, path, out);
}

/* A directory whose entries are numbers: of processes, or of threads. */
static DIR *open_numbers(const char *root, const char *path)
{
	char full[PATH_MAX];

	return path_below(root, path, full) ? opendir(full) : NULL;
}

/* Reads the next number. Returns false at the end. */
static bool next_number(DIR *dir, pid_t *out)
{
	struct dirent *d;

	while ((d = readdir(dir))) {
		if (isdigit((unsigned char)d->d_name[0])) {
			*out = (pid_t)atoi(d->d_name);
			return true;
		}
	}
	return false;
}

void process_each_thread(const char *root, pid_t pid,
			 void (*thread)(void *arg, pid_t tid,
					const struct process_stat *stat),
			 void *arg)
{
	struct process_stat s;
	char path[64];
	pid_t tid;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = open_numbers(root, path);
	while (dir && next_number(dir, &tid)) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid,
			 (int)tid);
		if (read_stat(root, path, &s))
			thread(arg, tid, &s);
	}
	if (dir)
		closedir(dir);
}

static bool is_among(const pid_t *pids, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++) {
		if (pids[i] == pid)
			return true;
	}
	return false;
}

/* Makes one pass over all processes. Returns the number of descendants found so
   far. */
static size_t add_children(const char *root, pid_t *out, size_t n, size_t max)
{
	DIR *dir = open_numbers(root, "/proc");
	struct process_stat s;
	pid_t pid;

	while (dir && next_number(dir, &pid)) {
		if (n < max && read_process(root, pid, &s) &&
		    is_among(out, n, s.parent) && !is_among(out, n, pid))
			out[n++] = pid;
	}
	if (dir)
		closedir(dir);
	return n;
}

size_t process_family(const char *root, pid_t pid, pid_t *out, size_t max)
{
	size_t n = 0, before;

	out[n++] = pid;
	do {
		before = n;
		n = add_children(root, out, n, max);
	} while (n > before && n < max);
	return n;
}

double process_cpu_s(const char *root, pid_t pid)
{
	struct process_stat s;

	return read_process(root, pid, &s) ? s.cpu_s : 0;
}

double process_wanted_s(const char *root, pid_t pid, double cpu_s)
{
	unsigned long long ran, waited;
	char path[64];
	double s = cpu_s;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	f = process_open_file(root, path);
	if (f && fscanf(f, "%llu %llu", &ran, &waited) == 2)
		s = 1e-9 * (double)(ran + waited);
	if (f)
		fclose(f);
	return s;
}

void process_environment(const char *root, pid_t pid, const char *name,
			 char *out, size_t size)
{
	char path[64], *line = NULL;
	size_t room = 0, length = strlen(name);
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	f = process_open_file(root, path);
	while (f && getdelim(&line, &room, '\0', f) > 0) {
		if (!strncmp(line, name, length) && line[length] == '=' &&
		    line[length + 1])
			snprintf(out, size, "%s", line + length + 1);
	}
	free(line);
	if (f)
		fclose(f);
}

static uint64_t read_peak(pid_t pid)
{
	char path[64], line[256];
	unsigned long long kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "VmHWM: %llu kB", &kib) == 1)
			break;
	}
	if (f)
		fclose(f);
	return kib << 10;
}

int process_usage(pid_t pid, struct usage *out)
{
	struct timespec used;
	clockid_t clock;

	/* /proc counts ticks of 10 ms, which are too coarse for a short run. */
	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used))
		return -ESRCH;
	out->cpu_us =
		(uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
	out->peak_rss = read_peak(pid);
	return 0;
}

uint64_t process_age_us(void)
{
	uint64_t tick_us = 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec now;
	struct process_stat s;

	if (!read_process("", getpid(), &s) || !s.start_ticks)
		return 0;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000 -
	       s.start_ticks * tick_us;
}
