/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/loop/telemetry.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/base/util/cleanup.h"

/* Require a file of this user, so that no other user can make the loader write
   to a file. */
static struct telemetry *map(const char *path)
{
	cleanup_fd int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	void *at;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    st.st_uid != geteuid() || st.st_size != TELEMETRY_SIZE)
		return NULL;
	at = mmap(NULL, TELEMETRY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		  0);
	return at == MAP_FAILED ? NULL : at;
}

void telemetry_open(uint32_t rank, uint32_t world_size,
		    struct telemetry_slot *out)
{
	const char *path = secure_getenv("BETON_TELEMETRY");
	struct telemetry *b = path && *path ? map(path) : NULL;
	uint64_t i;

	*out = (struct telemetry_slot){ 0 };
	if (!b)
		return;
	i = atomic_load(&b->magic) == TELEMETRY_MAGIC
		    ? atomic_fetch_add(&b->taken, 1)
		    : TELEMETRY_ENTRIES;
	if (i >= TELEMETRY_ENTRIES) {
		munmap(b, TELEMETRY_SIZE);
		return;
	}
	out->telemetry = b;
	out->entry = &b->entries[i];
	atomic_store(&out->entry->rank, rank);
	atomic_store(&out->entry->world_size, world_size);
	atomic_store(&out->entry->pid, (uint64_t)getpid());
}

void telemetry_close(struct telemetry_slot *place)
{
	if (place->telemetry)
		munmap(place->telemetry, TELEMETRY_SIZE);
	*place = (struct telemetry_slot){ 0 };
}
