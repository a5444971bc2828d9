/* SPDX-License-Identifier: Apache-2.0 */
/* The device and file system of a file, the share of it in the page cache, and
   the speed of reads that bypass the cache. No state; any thread. */
#ifndef LOADER_TOOLS_MACHINE_DISK_H
#define LOADER_TOOLS_MACHINE_DISK_H

#include <stdbool.h>
#include <stdint.h>

struct machine_disk {
	char type[48];	  /* of the file system, "ext4", "nfs4", "fuse.sshfs" */
	char source[128]; /* what is mounted, "/dev/sda1", "server:/export" */
	bool network;
	bool rotates; /* a hard disk */
	uint64_t size;
	double resident; /* share that the page cache holds; -1: unknown */
};

/* `root` has proc/ and sys/: "" except in tests. Returns 0 or -errno of the
   file. */
int machine_disk_read(const char *root, const char *path,
		      struct machine_disk *out);

/* Finds the file of the dataset of a betonfs mount. -ENOENT: not such a
   mount. */
int machine_disk_backing(const char *root, const char *mount, char *out,
			 uint64_t size);

struct disk_probe {
	uint64_t piece;	       /* bytes of a read */
	unsigned threads;      /* that read at once, at most 16 */
	unsigned milliseconds; /* after which no read is begun */
	uint64_t seed;
};

struct disk_rate {
	double bytes;	  /* a second */
	double reads;	  /* a second */
	double latency_s; /* of one read, in the mean */
	bool direct;	  /* the reads bypassed the page cache */
};

/* Reads pieces of the file at random places. 0 or -errno; -ENODATA: nothing
   was read. */
int machine_disk_probe(const char *path, const struct disk_probe *probe,
		       struct disk_rate *out);

#endif
