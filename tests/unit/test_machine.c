/* SPDX-License-Identifier: Apache-2.0 */
/* Facts out of trees that look like /proc and /sys. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/tools/machine/cpu.h"
#include "loader/tools/machine/disk.h"
#include "loader/tools/machine/gpu.h"
#include "loader/tools/machine/memory.h"
#include "loader/tools/machine/process.h"
#include "tests/unit/t.h"

static char root[] = "/tmp/test_machine.XXXXXX";

/* A file below the root, with its directories. */
static void made(const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		CHECK(!mkdir(path, 0700) || errno == EEXIST);
		*p = '/';
	}
	f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

static void afresh(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s/*", root);
	CHECK(!system(command));
	made("proc/stat", "cpu  400 0 400 400 0 0 0 0 0 0\n"
			  "cpu0 100 0 100 100 0 0 0 0 0 0\n"
			  "cpu1 100 0 100 100 0 0 0 0 0 0\n"
			  "cpu2 100 0 100 100 0 0 0 0 0 0\n"
			  "cpu3 100 0 100 100 0 0 0 0 0 0\n"
			  "intr 1 2 3\n");
}

static struct machine_cpu read_cpu(void)
{
	struct machine_cpu cpu;

	CHECK(!machine_cpu_read(root, &cpu));
	return cpu;
}

static void cpus_that_are_there(void)
{
	struct machine_cpu cpu;

	afresh();
	cpu = read_cpu();
	CHECK(cpu.online == 4 && cpu.allowed == 4 && cpu.quota == 0);
	CHECK(cpu.nodes == 1 && cpu.nodes_used == 1 && cpu.mhz == 0);
	CHECK(machine_cpu_cores(&cpu) == 4);
	made("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0,2-3\n");
	made("sys/devices/system/node/node0/cpulist", "0-1\n");
	made("sys/devices/system/node/node1/cpulist", "2-3\n");
	made("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
	     "1200000\n");
	made("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
	     "3600000\n");
	made("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
	     "powersave\n");
	cpu = read_cpu();
	CHECK(cpu.allowed == 3 && cpu.nodes == 2 && cpu.nodes_used == 2);
	CHECK(cpu.mhz == 1200 && cpu.mhz_max == 3600);
	CHECK(!strcmp(cpu.governor, "powersave"));
	made("proc/self/status", "Cpus_allowed_list:\t3\n");
	cpu = read_cpu();
	CHECK(cpu.allowed == 1 && cpu.nodes_used == 1);
	made("proc/self/status", "Cpus_allowed_list:\tall of them\n");
	CHECK(read_cpu().allowed == 4);
	CHECK(machine_cpu_read("/proc/nonexistent", &cpu) == -ENOENT);
}

static void quotas_of_both_generations(void)
{
	struct machine_cpu cpu;

	afresh();
	made("proc/self/cgroup", "2:cpu:/a/b\n0::/c\n");
	made("proc/self/mountinfo",
	     "1 0 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	     "2 0 0:2 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
	made("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n");
	made("sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
	CHECK(read_cpu().quota == 0);
	/* The one that it is in has less. */
	made("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "150000\n");
	made("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
	cpu = read_cpu();
	CHECK(cpu.quota == 1.5 && machine_cpu_cores(&cpu) == 1.5);
	CHECK(!strcmp(cpu.quota_of, "/sys/fs/cgroup/cpu/a"));
	made("sys/fs/cgroup/unified/c/cpu.max", "max 100000\n");
	CHECK(read_cpu().quota == 1.5);
	made("sys/fs/cgroup/unified/c/cpu.max", "50000 100000\n");
	CHECK(read_cpu().quota == 0.5);
	made("sys/fs/cgroup/unified/c/cpu.max", "900000 100000\n");
	made("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "0\n");
	cpu = read_cpu();
	CHECK(cpu.quota == 9 && machine_cpu_cores(&cpu) == 4);
}

static void users_of_cpus(void)
{
	double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
	struct machine_times t;

	afresh();
	CHECK(!machine_times_read(root, &t));
	CHECK(fabs(t.busy_s - 800 * tick) < 1e-9);
	CHECK(fabs(t.total_s - 1200 * tick) < 1e-9 && t.steal_s == 0);
	/* Load on other CPUs does not count for us. */
	made("proc/self/status", "Cpus_allowed_list:\t1\n");
	made("proc/stat", "cpu  0 0 0 0\n"
			  "cpu0 900 900 900 900 900 900 900 900 0 0\n"
			  "cpu1 10 1 20 100 5 2 3 7 0 0\ncpu2\ncpu\n");
	made("proc/self/cgroup", "2:cpu:/a\n");
	made("proc/self/mountinfo",
	     "1 0 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
	made("sys/fs/cgroup/cpu/a/cpu.stat",
	     "nr_periods 50\nnr_throttled 40\nthrottled_time 2000000000\n");
	CHECK(!machine_times_read(root, &t));
	CHECK(fabs(t.busy_s - 36 * tick) < 1e-9);
	CHECK(fabs(t.steal_s - 7 * tick) < 1e-9);
	CHECK(t.periods == 50 && t.throttled == 40);
	CHECK(fabs(t.throttled_s - 2) < 1e-9);
	made("proc/77/stat", "77 (a) b) S 1 1 1 0 -1 0 0 0 0 0 30 12 0 0 0 0 "
			     "20 0 1 0 5");
	CHECK(fabs(process_cpu_s(root, 77) - 42 * tick) < 1e-9);
	CHECK(process_cpu_s(root, 78) == 0);
	CHECK(machine_times_read("/proc/nonexistent", &t) == -ENOENT);
}

static void add_thread(void *arg, pid_t tid, const struct process_stat *s)
{
	double *ticks = arg;

	ticks[strcmp(s->name, "worker (1)") ? 0 : 1] +=
		(double)s->cpu_ticks + (double)tid / 1000;
}

static void processes_and_threads(void)
{
	double tick = 1.0 / (double)sysconf(_SC_CLK_TCK), ticks[2] = { 0, 0 };
	char job[8] = "none";
	pid_t family[8];

	afresh();
	made("proc/77/stat", "77 (a) S 1 1 1 0 -1 0 0 0 0 0 30 12\n");
	made("proc/80/stat", "80 (b) S 79 1 1 0 -1 0 0 0 0 0 1 1\n");
	made("proc/79/stat", "79 (c) d 7) S 77 1 1 0 -1 0 0 0 0 0 1 1\n");
	made("proc/81/stat", "81 (stranger) S 1 1 1 0 -1 0 0 0 0 0 1 1\n");
	made("proc/82/stat", "no process at all");
	made("proc/uptime", "1 1\n");
	CHECK(process_family(root, 77, family, 8) == 3);
	CHECK(family[0] == 77 && family[1] == 79 && family[2] == 80);
	CHECK(process_family(root, 77, family, 2) == 2);
	CHECK(process_family(root, 99, family, 8) == 1 && family[0] == 99);

	made("proc/77/task/77/stat", "77 (a) S 1 1 1 0 -1 0 0 0 0 0 20 3\n");
	made("proc/77/task/78/stat",
	     "78 (worker (1)) S 1 1 1 0 -1 0 0 0 0 0 5 5\n");
	process_each_thread(root, 77, add_thread, ticks);
	CHECK(fabs(ticks[0] - 23.077) < 1e-9 && fabs(ticks[1] - 10.078) < 1e-9);
	process_each_thread(root, 99, add_thread, ticks);

	CHECK(process_wanted_s(root, 77, 42 * tick) == 42 * tick);
	made("proc/77/schedstat", "1000000000 500000000 9\n");
	CHECK(process_wanted_s(root, 77, 0) == 1.5);

	process_environment(root, 77, "BETON_JOB", job, sizeof(job));
	made("proc/77/environ", "BETON_JOBS=x");
	process_environment(root, 77, "BETON_JOB", job, sizeof(job));
	made("proc/77/environ", "BETON_JOB=");
	process_environment(root, 77, "BETON_JOB", job, sizeof(job));
	CHECK(!strcmp(job, "none"));
	made("proc/77/environ", "BETON_JOB=resnet-50");
	process_environment(root, 77, "BETON_JOB", job, sizeof(job));
	CHECK(!strcmp(job, "resnet-"));
}

static void disks(void)
{
	struct disk_probe probe = { 4096, 2, 20, 1 };
	char path[128], line[512], backing[64];
	struct machine_disk d;
	struct disk_rate rate;
	struct stat st;
	FILE *f;

	afresh();
	snprintf(path, sizeof(path), "%s/file", root);
	f = fopen(path, "w");
	CHECK(f && !fseek(f, (1 << 20) - 1, SEEK_SET) && fputc(0, f) == 0 &&
	      !fclose(f) && !stat(path, &st));
	CHECK(!machine_disk_read(root, path, &d));
	CHECK(d.size == 1 << 20 && !*d.type && !d.network && !d.rotates);
	CHECK(d.resident >= 0 && d.resident <= 1);
#define MOUNT(type, source)                                                    \
	snprintf(line, sizeof(line),                                           \
		 "9 1 %u:%u / /data rw - " type " " source " rw\n",            \
		 (unsigned)(st.st_dev >> 8 & 0xfff),                           \
		 (unsigned)(st.st_dev & 0xff));                                \
	made("proc/self/mountinfo", line)
	MOUNT("nfs4", "server:/export");
	CHECK(!machine_disk_read(root, path, &d));
	CHECK(d.network && !strcmp(d.type, "nfs4"));
	CHECK(!strcmp(d.source, "server:/export"));
	MOUNT("fuse.sshfs", "host:");
	CHECK(!machine_disk_read(root, path, &d) && d.network);
	MOUNT("ext4", "/dev/sda1");
	CHECK(!machine_disk_read(root, path, &d) && !d.network);
	CHECK(machine_disk_read(root, "/proc/nonexistent", &d) == -ENOENT);
	CHECK(!machine_disk_probe(path, &probe, &rate));
	CHECK(rate.bytes > 0 && rate.reads > 0 && rate.latency_s > 0);
	CHECK(machine_disk_probe("/proc/nonexistent", &probe, &rate) ==
	      -ENOENT);
	made("proc/self/mountinfo",
	     "9 1 0:9 / /tmp rw - fuse.betonfs /data/x.beton rw\n");
	CHECK(!machine_disk_backing(root, "/tmp", backing, sizeof(backing)));
	CHECK(!strcmp(backing, "/data/x.beton"));
	CHECK(machine_disk_backing(root, "/tmp", backing, 4) == -ENOENT);
	CHECK(machine_disk_backing(root, "/", backing, 64) == -ENOENT);
}

static void memory(void)
{
	struct machine_memory m;

	afresh();
	made("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 500 kB\n");
	CHECK(!machine_memory_read(root, &m));
	CHECK(m.size.available == 500 << 10 && m.files > 0);
	CHECK(machine_memory_read("/proc/nonexistent", &m) == -ENOENT);
	CHECK(machine_memory_rate(1, 1) > 1e6);
}

static void gpus(void)
{
	struct machine_gpu g[MACHINE_GPUS_MAX];
	char self[512] = "";

	setenv("BETON_NVML_LIBRARY", "/proc/nonexistent", 1);
	CHECK(machine_gpu_read(g, MACHINE_GPUS_MAX) == 0);
	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 32) > 0);
	strcpy(strrchr(self, '/'), "/standin/nvml.so");
	setenv("BETON_NVML_LIBRARY", self, 1);
	setenv("STANDIN_NVML", "55 1000 2 4 8 40", 1);
	CHECK(machine_gpu_read(g, MACHINE_GPUS_MAX) == 1);
	CHECK(!strcmp(g[0].name, "Stand-in") && g[0].busy == 55);
	CHECK(g[0].clock == 1000 && g[0].clock_max == 1980);
	CHECK(g[0].state == 2 && g[0].link == 4 && g[0].link_max == 5);
	CHECK(g[0].width == 8 && g[0].width_max == 16);
	CHECK(g[0].memory_used == 50 && machine_gpu_is_slowed(&g[0]));
	setenv("STANDIN_NVML", "55 1000 2 4 8 1", 1);
	CHECK(machine_gpu_read(g, 1) == 1 && !machine_gpu_is_slowed(&g[0]));
	CHECK(machine_gpu_read(g, 0) == 0);
}

int main(void)
{
	CHECK(mkdtemp(root));
	cpus_that_are_there();
	quotas_of_both_generations();
	users_of_cpus();
	processes_and_threads();
	disks();
	memory();
	gpus();
	{
		char command[128];

		snprintf(command, sizeof(command), "rm -rf %s", root);
		CHECK(!system(command));
	}
	return 0;
}
