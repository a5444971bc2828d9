/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/machine/usage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The fields of /proc/PID/stat behind the command's name, from the state on. */
static int read_stat(pid_t pid, unsigned long long *utime,
		     unsigned long long *stime, unsigned long long *started)
{
	char path[64], text[1024], *after;
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -ESRCH;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	after = strrchr(text, ')');
	if (!after ||
	    sscanf(after + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu",
		   utime, stime, started) != 3)
		return -ESRCH;
	return 0;
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

int usage_of(pid_t pid, struct usage *out)
{
	unsigned long long utime, stime, started;
	uint64_t tick_us = 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	int r = read_stat(pid, &utime, &stime, &started);

	if (r)
		return r;
	out->cpu_us = (utime + stime) * tick_us;
	out->peak_rss = read_peak(pid);
	return 0;
}

uint64_t usage_age_us(void)
{
	unsigned long long utime, stime, started;
	uint64_t tick_us = 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec now;

	if (read_stat(getpid(), &utime, &stime, &started))
		return 0;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000 -
	       started * tick_us;
}
