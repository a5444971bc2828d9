/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/machine/process.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Of a process, or of one of its threads. */
struct stat_line {
	unsigned long long ticks;   /* of CPU time, user and system */
	unsigned long long started; /* ticks after the machine did */
};

static FILE *open_file(const char *root, const char *path)
{
	char full[PATH_MAX];

	if (snprintf(full, sizeof(full), "%s%s", root, path) >=
	    (int)sizeof(full))
		return NULL;
	return fopen(full, "re");
}

/* "PID (NAME) STATE PARENT ...": the name may hold anything. */
static bool read_stat(const char *root, const char *path, struct stat_line *out)
{
	unsigned long long user, system;
	char text[1024], *after;
	FILE *f = open_file(root, path);
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (f)
		fclose(f);
	text[n] = '\0';
	after = strrchr(text, ')');
	if (!after ||
	    sscanf(after + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu",
		   &user, &system, &out->started) != 3)
		return false;
	out->ticks = user + system;
	return true;
}

static bool read_process(const char *root, pid_t pid, struct stat_line *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return read_stat(root, path, out);
}

double process_cpu_s(const char *root, pid_t pid)
{
	struct stat_line s;

	if (!read_process(root, pid, &s))
		return 0;
	return (double)s.ticks / (double)sysconf(_SC_CLK_TCK);
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
	uint64_t tick_us = 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	struct stat_line s;

	if (!read_process("", pid, &s))
		return -ESRCH;
	out->cpu_us = s.ticks * tick_us;
	out->peak_rss = read_peak(pid);
	return 0;
}

uint64_t process_age_us(void)
{
	uint64_t tick_us = 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec now;
	struct stat_line s;

	if (!read_process("", getpid(), &s))
		return 0;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000 -
	       s.started * tick_us;
}
