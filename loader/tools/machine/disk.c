/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/machine/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/rng.h"
#include "fs/base/util/thread.h"

enum { THREADS_MAX = 16, ALIGN = 4096, WINDOWS = 256, WINDOW = 64 };

/* Types of file systems whose bytes come over a network; a * ends a prefix. */
static const char *const networks[] = {
	"nfs*",
	"cifs",
	"smb*",
	"ceph",
	"lustre",
	"gpfs",
	"beegfs",
	"9p",
	"afs",
	"fuse.ceph*",
	"fuse.sshfs",
	"fuse.s3fs",
	"fuse.gcsfuse",
	"fuse.goofys",
	"fuse.juicefs*",
	"fuse.JuiceFS*",
	"fuse.gluster*",
	"fuse.rclone",
	"fuse.mountpoint*",
	"fuse.blobfuse*",
};

static bool is_network(const char *type)
{
	for (size_t i = 0; i < ARRAY_LEN(networks); i++) {
		size_t n = strcspn(networks[i], "*");

		if (networks[i][n] ? !strncmp(type, networks[i], n)
				   : !strcmp(type, networks[i]))
			return true;
	}
	return false;
}

/* --- where it lies ------------------------------------------------------- */

struct mount_line {
	char point[PATH_MAX];
	char type[48];
	char source[PATH_MAX];
	unsigned major, minor;
};

static bool parse_line(const char *line, struct mount_line *out)
{
	const char *rest = strstr(line, " - ");

	_Static_assert(PATH_MAX == 4096, "the widths below");
	return rest &&
	       sscanf(line, "%*s %*s %u:%u %*s %4095s", &out->major,
		      &out->minor, out->point) == 3 &&
	       sscanf(rest, " - %47s %4095s", out->type, out->source) == 2;
}

/* Finds the last mount of a device, or of a path, because it hides earlier
   ones. */
static bool find_mount(const char *root, const char *path, dev_t device,
		       struct mount_line *out)
{
	char name[PATH_MAX];
	cleanup_free char *line = NULL;
	struct mount_line m;
	bool found = false;
	size_t size = 0;
	FILE *f;

	snprintf(name, sizeof(name), "%s/proc/self/mountinfo", root);
	f = fopen(name, "re");
	while (f && getline(&line, &size, f) > 0) {
		if (!parse_line(line, &m))
			continue;
		if (path ? strcmp(m.point, path) != 0
			 : makedev(m.major, m.minor) != device)
			continue;
		*out = m;
		found = true;
	}
	if (f)
		fclose(f);
	return found;
}

/* A partition's queue is that of the disk above it. */
static bool rotates(const char *root, dev_t device)
{
	static const char *const places[] = { "queue", "../queue" };
	char path[PATH_MAX];
	int c = '0';
	FILE *f;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		snprintf(path, sizeof(path),
			 "%s/sys/dev/block/%u:%u/%s/rotational", root,
			 major(device), minor(device), places[i]);
		f = fopen(path, "re");
		if (!f)
			continue;
		c = fgetc(f);
		fclose(f);
		break;
	}
	return c == '1';
}

/* Examines windows that are spread over the file. */
static double resident_share(const char *path, uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t pages = (size + page - 1) / page, seen = 0, there = 0;
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t windows = min_u64(WINDOWS, (pages + WINDOW - 1) / WINDOW);
	unsigned char state[WINDOW];
	void *map;

	if (fd < 0 || !size)
		return -1;
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -1;
	for (uint64_t i = 0; i < windows; i++) {
		uint64_t at = i * (pages / windows);
		uint64_t n = min_u64(WINDOW, pages - at);

		if (mincore((uint8_t *)map + at * page, n * page, state))
			continue;
		for (uint64_t k = 0; k < n; k++)
			there += state[k] & 1;
		seen += n;
	}
	munmap(map, size);
	return seen ? (double)there / (double)seen : -1;
}

int machine_disk_read(const char *root, const char *path,
		      struct machine_disk *out)
{
	struct machine_disk d = { .resident = -1 };
	struct mount_line m;
	struct stat st;

	if (stat(path, &st))
		return -errno;
	d.size = (uint64_t)st.st_size;
	if (find_mount(root, NULL, st.st_dev, &m)) {
		snprintf(d.type, sizeof(d.type), "%s", m.type);
		snprintf(d.source, sizeof(d.source), "%.127s", m.source);
	}
	d.network = is_network(d.type);
	d.rotates = rotates(root, st.st_dev);
	if (S_ISREG(st.st_mode))
		d.resident = resident_share(path, d.size);
	*out = d;
	return 0;
}

int machine_disk_backing(const char *root, const char *mount, char *out,
			 uint64_t size)
{
	char real[PATH_MAX];
	struct mount_line m;

	if (!realpath(mount, real))
		return -errno;
	if (!find_mount(root, real, 0, &m) || strcmp(m.type, "fuse.betonfs") ||
	    m.source[0] != '/' || strlen(m.source) >= size)
		return -ENOENT;
	strcpy(out, m.source);
	return 0;
}

/* --- how fast it reads --------------------------------------------------- */

struct disk_reader {
	pthread_t thread;
	const struct disk_probe *probe;
	int fd;
	uint64_t places; /* pieces of the file */
	uint64_t seed;
	int64_t end_ns;
	uint64_t reads, bytes;
	int64_t busy_ns;
};

static void *run_reader(void *arg)
{
	struct disk_reader *r = arg;
	uint64_t piece = align_up(r->probe->piece, ALIGN);
	struct rng rng = { .key = rng_mix(r->seed) };
	void *buffer;

	if (posix_memalign(&buffer, ALIGN, piece))
		return NULL;
	do {
		uint64_t at = rng_next(&rng) % r->places * piece;
		int64_t start = clock_ns();
		ssize_t n = pread(r->fd, buffer, piece, (off_t)at);

		r->busy_ns += clock_ns() - start;
		if (n <= 0)
			break;
		r->reads++;
		r->bytes += (uint64_t)n;
	} while (clock_ns() < r->end_ns);
	free(buffer);
	return NULL;
}

static int open_direct(const char *path, bool *direct)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);

	*direct = fd >= 0;
	return fd >= 0 ? fd : open(path, O_RDONLY | O_CLOEXEC);
}

static int sum_up(const struct disk_reader *readers, unsigned n,
		  int64_t took_ns, struct disk_rate *out)
{
	uint64_t reads = 0, bytes = 0;
	int64_t busy_ns = 0;

	for (unsigned i = 0; i < n; i++) {
		reads += readers[i].reads;
		bytes += readers[i].bytes;
		busy_ns += readers[i].busy_ns;
	}
	if (!reads || took_ns <= 0)
		return -ENODATA;
	out->bytes = 1e9 * (double)bytes / (double)took_ns;
	out->reads = 1e9 * (double)reads / (double)took_ns;
	out->latency_s = 1e-9 * (double)busy_ns / (double)reads;
	return 0;
}

int machine_disk_probe(const char *path, const struct disk_probe *probe,
		       struct disk_rate *out)
{
	struct disk_reader readers[THREADS_MAX] = { 0 };
	struct disk_rate rate = { 0 };
	cleanup_fd int fd = open_direct(path, &rate.direct);
	uint64_t piece = align_up(max_u64(probe->piece, 1), ALIGN);
	int64_t start = clock_ns();
	unsigned n = 0;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	while (n < probe->threads && n < THREADS_MAX) {
		readers[n] = (struct disk_reader){
			.probe = probe,
			.fd = fd,
			.places = max_u64((uint64_t)st.st_size / piece, 1),
			.seed = probe->seed + n,
			.end_ns =
				start + (int64_t)probe->milliseconds * 1000000,
		};
		if (thread_start(&readers[n].thread, run_reader, &readers[n]))
			break;
		n++;
	}
	for (unsigned i = 0; i < n; i++)
		pthread_join(readers[i].thread, NULL);
	r = sum_up(readers, n, clock_ns() - start, &rate);
	if (!r)
		*out = rate;
	return r;
}
