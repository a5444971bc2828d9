/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/run/gpu/upload_memory.h"

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

enum {
	PAGE = 4096,
	/* The granularity of a GPU's memory, in size and for each tensor. */
	DEVICE_GRAIN = 512,
};

/* Adds pinned bytes, if the budget allows. */
static bool take_budget(struct upload *u, uint64_t size)
{
	scoped_lock(&u->lock);
	if (!range_ok(u->stats.pinned, size, u->budget)) {
		if (!u->is_logged)
			log_info(
				u->log,
				"upload: all %llu bytes that may be pinned are in use; other batches need one more copy on their way to the GPU",
				(unsigned long long)u->budget);
		u->is_logged = true;
		return false;
	}
	u->stats.pinned += size;
	return true;
}

void upload_count(struct upload *u, uint64_t *what, uint64_t by)
{
	scoped_lock(&u->lock);
	*what += by;
}

void upload_free_host(struct upload *u, struct upload_part *p)
{
	if (p->pinned) {
		cuda_host_free(u->cuda, p->host);
		upload_count(u, &u->stats.pinned, -p->host_capacity);
	} else {
		upload_count(u, &u->stats.ordinary, -p->ordinary.capacity);
		buffer_fini(&p->ordinary);
	}
	p->host = NULL;
	p->host_capacity = 0;
	p->pinned = false;
}

int upload_grow_host(struct upload *u, struct upload_part *p, uint64_t size)
{
	uint64_t capacity = align_up(size + size / 8, PAGE);
	int r;

	upload_free_host(u, p);
	if (take_budget(u, capacity)) {
		p->pinned = !cuda_host_alloc(u->cuda, capacity, &p->host);
		if (p->pinned) {
			p->host_capacity = capacity;
			return 0;
		}
		/* Memory that cannot be pinned may still be allocated. */
		upload_count(u, &u->stats.pinned, -capacity);
	}
	r = buffer_reserve(&p->ordinary, size);
	if (r)
		return r;
	p->host = p->ordinary.bytes;
	p->host_capacity = p->ordinary.capacity;
	upload_count(u, &u->stats.ordinary, p->host_capacity);
	return 0;
}

void upload_free_device(struct upload *u, struct upload_part *p)
{
	cuda_device_free(u->cuda, p->device);
	upload_count(u, &u->stats.device, -p->device_capacity);
	p->device = 0;
	p->device_capacity = 0;
}

int upload_grow_device(struct upload *u, struct upload_part *p, uint64_t size)
{
	uint64_t capacity = align_up(size + size / 8, DEVICE_GRAIN);
	int r;

	upload_free_device(u, p);
	r = cuda_device_alloc(u->cuda, capacity, &p->device);
	if (r)
		return r;
	p->device_capacity = capacity;
	upload_count(u, &u->stats.device, capacity);
	return 0;
}
