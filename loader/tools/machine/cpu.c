/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/machine/cpu.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/memory/cgroup.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/tools/machine/process.h"

enum { CPUS_MAX = CPU_SETSIZE };

/* Reads the first line of a file, without its end; "": there is none. */
static void read_word(const char *root, const char *path, char *out,
		      size_t size)
{
	FILE *f = process_open_file(root, path);

	*out = '\0';
	if (f && !fgets(out, (int)size, f))
		*out = '\0';
	out[strcspn(out, "\n")] = '\0';
	if (f)
		fclose(f);
}

/* --- how many ------------------------------------------------------------ */

/* Parses a list of CPUs, such as "0-3,8". */
static void parse_list(const char *text, cpu_set_t *out)
{
	unsigned first, last;
	int n;

	CPU_ZERO(out);
	while (sscanf(text, "%u%n", &first, &n) == 1) {
		text += n;
		last = first;
		if (sscanf(text, "-%u%n", &last, &n) == 1)
			text += n;
		for (unsigned i = first; i <= last && i < CPUS_MAX; i++)
			CPU_SET(i, out);
		if (*text++ != ',')
			break;
	}
}

/* Reads the CPUs that the kernel allows this process; in tests, those of a
   status file. */
static void read_allowed(const char *root, cpu_set_t *out)
{
	cleanup_free char *line = NULL;
	size_t size = 0;
	FILE *f;

	CPU_ZERO(out);
	if (!*root && !sched_getaffinity(0, sizeof(*out), out))
		return;
	f = process_open_file(root, "/proc/self/status");
	while (f && getline(&line, &size, f) > 0) {
		if (!strncmp(line, "Cpus_allowed_list:", 18))
			parse_list(line + 18 + strspn(line + 18, " \t"), out);
	}
	if (f)
		fclose(f);
}

/* Skip the first line, which contains sums. */
static bool is_processor(const char *line)
{
	return !strncmp(line, "cpu", 3) && line[3] >= '0' && line[3] <= '9';
}

static unsigned count_online(const char *root)
{
	FILE *f = process_open_file(root, "/proc/stat");
	cleanup_free char *line = NULL;
	unsigned n = 0, i;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0)
		n += is_processor(line) && sscanf(line, "cpu%u ", &i) == 1;
	if (f)
		fclose(f);
	return n;
}

static void read_nodes(const char *root, const cpu_set_t *allowed,
		       struct machine_cpu *out)
{
	char path[96], list[4096];
	cpu_set_t node, both;

	for (unsigned i = 0; i < 1024; i++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/system/node/node%u/cpulist", i);
		read_word(root, path, list, sizeof(list));
		if (!*list)
			continue;
		parse_list(list, &node);
		CPU_AND(&both, &node, allowed);
		out->nodes += CPU_COUNT(&node) > 0;
		out->nodes_used += CPU_COUNT(&both) > 0;
	}
	out->nodes = out->nodes ? out->nodes : 1;
	out->nodes_used = out->nodes_used ? out->nodes_used : 1;
}

static void read_frequency(const char *root, const cpu_set_t *allowed,
			   struct machine_cpu *out)
{
	char path[96], word[64];
	unsigned i = 0;

	while (i + 1 < CPUS_MAX && !CPU_ISSET(i, allowed))
		i++;
#define CPUFREQ "/sys/devices/system/cpu/cpu%u/cpufreq/"
	snprintf(path, sizeof(path), CPUFREQ "scaling_cur_freq", i);
	read_word(root, path, word, sizeof(word));
	out->mhz = atof(word) / 1e3;
	snprintf(path, sizeof(path), CPUFREQ "cpuinfo_max_freq", i);
	read_word(root, path, word, sizeof(word));
	out->mhz_max = atof(word) / 1e3;
	snprintf(path, sizeof(path), CPUFREQ "scaling_governor", i);
	read_word(root, path, out->governor, sizeof(out->governor));
#undef CPUFREQ
}

/* --- quotas -------------------------------------------------------------- */

static const struct cgroup_hierarchy first_generation = { "cgroup", "cpu" },
				     second_generation = { "cgroup2", "" };

static void take_quota(struct machine_cpu *out, double quota, const char *dir)
{
	if (out->quota > 0 && quota >= out->quota)
		return;
	out->quota = quota;
	snprintf(out->quota_of, sizeof(out->quota_of), "%.120s", dir);
}

static void first_quota(const char *root, const char *dir, void *arg)
{
	uint64_t quota, period;

	/* Without a limit the file contains -1, which does not parse, or a huge
	   number. */
	if (cgroup_number(root, dir, "cpu.cfs_quota_us", &quota) &&
	    cgroup_number(root, dir, "cpu.cfs_period_us", &period) && quota &&
	    quota < INT64_MAX && period)
		take_quota(arg, (double)quota / (double)period, dir);
}

static void second_quota(const char *root, const char *dir, void *arg)
{
	char path[PATH_MAX], text[64];
	unsigned long long quota, period;

	if (snprintf(path, sizeof(path), "%s/cpu.max", dir) >=
	    (int)sizeof(path))
		return;
	read_word(root, path, text, sizeof(text));
	if (sscanf(text, "%llu %llu", &quota, &period) == 2 && quota && period)
		take_quota(arg, (double)quota / (double)period, dir);
}

int machine_cpu_read(const char *root, struct machine_cpu *out)
{
	struct machine_cpu cpu = { .online = count_online(root) };
	cpu_set_t allowed;

	if (!cpu.online)
		return -ENOENT;
	read_allowed(root, &allowed);
	cpu.allowed = (unsigned)CPU_COUNT(&allowed);
	if (!cpu.allowed)
		cpu.allowed = cpu.online;
	cgroup_each(root, &first_generation, first_quota, &cpu);
	cgroup_each(root, &second_generation, second_quota, &cpu);
	read_nodes(root, &allowed, &cpu);
	read_frequency(root, &allowed, &cpu);
	*out = cpu;
	return 0;
}

double machine_cpu_cores(const struct machine_cpu *cpu)
{
	return cpu->quota > 0 && cpu->quota < cpu->allowed ? cpu->quota
							   : cpu->allowed;
}

/* --- who uses them ------------------------------------------------------- */

static double tick_s(void)
{
	return 1.0 / (double)sysconf(_SC_CLK_TCK);
}

static void add_throttling(const char *root, const char *dir, void *arg)
{
	struct machine_times *t = arg;
	uint64_t n;

	if (cgroup_find(root, dir, "cpu.stat", "nr_periods", &n))
		t->periods += n;
	if (cgroup_find(root, dir, "cpu.stat", "nr_throttled", &n))
		t->throttled += n;
	/* Version 1 of control groups uses nanoseconds, version 2
	   microseconds. */
	if (cgroup_find(root, dir, "cpu.stat", "throttled_time", &n))
		t->throttled_s += 1e-9 * (double)n;
	if (cgroup_find(root, dir, "cpu.stat", "throttled_usec", &n))
		t->throttled_s += 1e-6 * (double)n;
}

/* Parses a line of /proc/stat about one CPU. */
static void add_processor(const char *line, const cpu_set_t *allowed,
			  struct machine_times *t)
{
	/* user nice system idle iowait irq softirq steal */
	unsigned long long n[8] = { 0 };
	double tick = tick_s(), busy, steal;
	unsigned i;

	if (!is_processor(line) ||
	    sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &i,
		   &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6],
		   &n[7]) < 5 ||
	    i >= CPUS_MAX || (CPU_COUNT(allowed) && !CPU_ISSET(i, allowed)))
		return;
	busy = tick * (double)(n[0] + n[1] + n[2] + n[5] + n[6]);
	steal = tick * (double)n[7];
	t->busy_s += busy;
	t->steal_s += steal;
	t->total_s += busy + steal + tick * (double)(n[3] + n[4]);
}

int machine_times_read(const char *root, struct machine_times *out)
{
	struct machine_times t = { 0 };
	cleanup_free char *line = NULL;
	size_t size = 0;
	cpu_set_t allowed;
	FILE *f = process_open_file(root, "/proc/stat");

	if (!f)
		return -ENOENT;
	read_allowed(root, &allowed);
	while (getline(&line, &size, f) > 0)
		add_processor(line, &allowed, &t);
	fclose(f);
	cgroup_each(root, &first_generation, add_throttling, &t);
	cgroup_each(root, &second_generation, add_throttling, &t);
	*out = t;
	return 0;
}
