/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/memory/memory.h"
#include "tests/unit/t.h"

static const uint64_t MIB = 1 << 20;
static char root[] = "/tmp/test_memory.XXXXXX";

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
	made("proc/meminfo", "MemTotal:       8388608 kB\n"
			     "MemFree:        1048576 kB\n"
			     "MemAvailable:   6291456 kB\n"
			     "Cached:         2097152 kB\n");
}

static void check(uint64_t total_mib, uint64_t available_mib, const char *why)
{
	struct memory m;

	CHECK(!memory_read(root, &m));
	CHECK(m.total == total_mib * MIB);
	CHECK(m.available == available_mib * MIB);
	CHECK(!strcmp(m.why, why));
}

static void the_machine_decides_where_there_are_no_groups(void)
{
	struct memory m = { .total = 5 };

	afresh();
	check(8192, 6144, "MemAvailable of /proc/meminfo");
	made("proc/self/cgroup", "nonsense\n0::/a\n::\n:\n\n4:memory:/\n");
	check(8192, 6144, "MemAvailable of /proc/meminfo");
	made("proc/self/mountinfo", "nonsense\n1 2 - cgroup2\n - \n");
	check(8192, 6144, "MemAvailable of /proc/meminfo");
	made("proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 1048576 kB\n"
			     "Cached: 2097152 kB\n");
	check(8192, 3072, "MemFree of /proc/meminfo");
	made("proc/meminfo", "MemTotal: lots\n");
	CHECK(memory_read(root, &m) == -ENOENT && m.total == 5);
	CHECK(memory_read("/proc/nonexistent", &m) == -ENOENT);
}

static void second_generation(void)
{
	made("proc/self/cgroup", "0::/user/job\n");
	made("proc/self/mountinfo",
	     "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
}

static void groups_of_the_second_generation_count(void)
{
	afresh();
	second_generation();
	made("sys/fs/cgroup/user/job/memory.max", "max\n");
	made("sys/fs/cgroup/user/job/memory.current", "5000000000\n");
	check(8192, 6144, "MemAvailable of /proc/meminfo");
	made("sys/fs/cgroup/user/job/memory.max", "2147483648\n");
	made("sys/fs/cgroup/user/job/memory.current", "1073741824\n");
	check(2048, 1024, "cgroup limit 2.0 GiB of /sys/fs/cgroup/user/job");
	made("sys/fs/cgroup/user/job/memory.stat",
	     "anon 1\nfile 999999999\ninactive_file 536870912\nx\n");
	check(2048, 1536, "cgroup limit 2.0 GiB of /sys/fs/cgroup/user/job");
	made("sys/fs/cgroup/user/job/memory.high", "1610612736\n");
	check(1536, 1024, "cgroup limit 1.5 GiB of /sys/fs/cgroup/user/job");
}

static void the_tightest_group_decides(void)
{
	afresh();
	second_generation();
	made("sys/fs/cgroup/user/job/memory.max", "2147483648\n");
	made("sys/fs/cgroup/user/job/memory.current", "0\n");
	made("sys/fs/cgroup/user/memory.max", "4294967296\n");
	made("sys/fs/cgroup/user/memory.current", "4294967297\n");
	check(2048, 0, "cgroup limit 4.0 GiB of /sys/fs/cgroup/user");
}

static void groups_of_the_first_generation_count(void)
{
	afresh();
	made("proc/self/cgroup", "9:name=systemd:/\n5:cpu,memory:/a b/c\n"
				 "1:cpuset:/a b\n0::/\n");
	made("proc/self/mountinfo",
	     "32 31 0:29 / /sys/cpuset rw - cgroup cgroup rw,cpuset\n"
	     "35 31 0:32 / /sys/my\\040mem rw - cgroup cgroup rw,cpu,memory\n");
	/* No limit is a number near 2^63. */
	made("sys/my mem/memory.limit_in_bytes", "9223372036854771712\n");
	made("sys/my mem/memory.usage_in_bytes", "99999\n");
	check(8192, 6144, "MemAvailable of /proc/meminfo");
	made("sys/my mem/a b/memory.limit_in_bytes", "3221225472\n");
	made("sys/my mem/a b/memory.usage_in_bytes", "2147483648\n");
	made("sys/my mem/a b/memory.stat",
	     "inactive_file 4096\ntotal_inactive_file 1073741824\n");
	check(3072, 2048, "cgroup limit 3.0 GiB of /sys/my mem/a b");
	made("sys/my mem/a b/c/memory.limit_in_bytes", "1073741824\n");
	check(1024, 1024, "cgroup limit 1.0 GiB of /sys/my mem/a b/c");
}

/* A container sees its own group as the mount point. */
static void a_mounted_control_group_may_be_a_part(void)
{
	afresh();
	made("proc/self/cgroup", "4:memory:/docker/id/in\n");
	made("proc/self/mountinfo",
	     "35 31 0:32 /docker/id /sys/mem ro - cgroup cgroup rw,memory\n");
	made("sys/mem/memory.limit_in_bytes", "2147483648\n");
	made("sys/mem/in/memory.limit_in_bytes", "1073741824\n");
	check(1024, 1024, "cgroup limit 1.0 GiB of /sys/mem/in");
	made("proc/self/cgroup", "4:memory:/elsewhere\n");
	check(2048, 2048, "cgroup limit 2.0 GiB of /sys/mem");
	made("proc/self/cgroup", "4:memory:/../../in\n");
	check(2048, 2048, "cgroup limit 2.0 GiB of /sys/mem");
}

static void long_names_are_cut(void)
{
	char line[400], name[301];
	struct memory m;

	afresh();
	memset(name, 'x', 200);
	name[200] = '\0';
	snprintf(line, sizeof(line), "0::/%s\n", name);
	made("proc/self/cgroup", line);
	made("proc/self/mountinfo", "1 2 0:1 / /sys rw - cgroup2 none rw\n");
	snprintf(line, sizeof(line), "sys/%s/memory.max", name);
	made(line, "1048576\n");
	CHECK(!memory_read(root, &m) && m.total == MIB);
	name[96 - 5] = '\0';
	snprintf(line, sizeof(line), "cgroup limit 1.0 MiB of /sys/%s", name);
	CHECK(!strcmp(m.why, line));
}

/* Sane values on every machine. */
static void this_machine_has_memory(void)
{
	struct memory m;

	CHECK(!memory_read("", &m));
	CHECK(m.total && m.available <= m.total && *m.why);
}

int main(void)
{
	CHECK(mkdtemp(root));
	the_machine_decides_where_there_are_no_groups();
	groups_of_the_second_generation_count();
	the_tightest_group_decides();
	groups_of_the_first_generation_count();
	a_mounted_control_group_may_be_a_part();
	long_names_are_cut();
	this_machine_has_memory();
	afresh();
	CHECK(!chdir(root) && !system("rm -rf proc sys") && !rmdir(root));
	return 0;
}
