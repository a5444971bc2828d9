/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/memory.h"

#include <errno.h>

#include "fs/base/memory/memory.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/log.h"
#include "fs/data/dataset/verify.h"
#include "fs/data/engine/pool.h"

enum {
	/* Without a process cache: bytes of slots that stay allocated for
	   reuse, and that loaders may hold. */
	SLOT_RESERVE = 256 << 20,
	/* The least budget without a process cache. */
	BUDGET_MIN = 64 << 20,
	/* Shares of the budget: all slots, and the minimum of a process
	   cache. */
	SLOTS_PART = 2,
	CACHE_PART = 8,
	/* Verified datasets may take this part of the budget. */
	VERIFY_SHARE = 16,
};

/* Returns half of the memory that is available to this process. */
static uint64_t half_of_memory(void)
{
	struct memory memory = { .available = 0 };

	memory_read("", &memory);
	return max_u64(BUDGET_MIN, memory.available / 2);
}

/* Chooses the caches, and how much memory this process may use. */
static int open_budget(struct engine_memory *m, struct dataset *const *datasets,
		       size_t n, struct log *log)
{
	uint64_t bytes = half_of_memory();

	if (m->choice.mode == CACHE_OS && cache_has_remote(datasets, n)) {
		log_error(
			log,
			"cache=os: the kernel caches files, and no URLs: use cache=process or cache=auto");
		return -EINVAL;
	}
	cache_choose(&m->choice, datasets, n, m->why);
	if (m->choice.mode == CACHE_PROCESS)
		bytes = m->choice.cache_size;
	/* The rest that is no whole piece of memory cannot be used. */
	m->slot_bytes = bytes / SLOTS_PART & ~(uint64_t)(POOL_ALIGN - 1);
	m->shareable_bytes = min_u64(m->slot_bytes / 2, SLOT_RESERVE);
	if (!m->slot_reserve)
		m->slot_reserve = m->choice.mode == CACHE_PROCESS
					  ? m->slot_bytes
					  : SLOT_RESERVE;
	return budget_open(bytes + m->choice.cold_size, log, &m->budget);
}

/* Gives memory to datasets that are verified. */
static int open_verify(struct engine_memory *m, struct dataset *const *datasets,
		       size_t n, struct log *log)
{
	uint64_t budget = m->choice.mode == CACHE_PROCESS ? m->choice.cache_size
							  : half_of_memory();
	uint64_t share = budget / VERIFY_SHARE / max_u64(1, n);
	uint64_t bytes;
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		bytes = verify_set_memory(datasets[i], share);
		r = budget_take(m->budget, BUDGET_VERIFY, bytes, 0);
		m->verify_bytes += r ? 0 : bytes;
	}
	if (r)
		log_error(
			log,
			"verify: %zu datasets need over %llu bytes of memory: raise cache_size",
			n, (unsigned long long)budget);
	return r;
}

/* Counts the memory of datasets behind URLs, which were opened before. The
   cache keeps half of its size, because an engine does not open without. */
static void open_remote(struct engine_memory *m,
			struct dataset *const *datasets, size_t n,
			struct log *log)
{
	uint64_t bytes = 0, most = m->choice.cache_size / 2;

	for (size_t i = 0; i < n; i++)
		bytes += dataset_memory(datasets[i]);
	if (bytes <= most && !budget_take(m->budget, BUDGET_REMOTE, bytes, 0))
		m->remote_bytes = bytes;
	else
		log_warning(
			log,
			"tables of URLs take up to %llu bytes beside a cache of %llu: set cache_size to %llu or more",
			(unsigned long long)bytes,
			(unsigned long long)m->choice.cache_size,
			(unsigned long long)(2 * bytes));
}

int engine_memory_open(struct engine_memory *m,
		       const struct cache_choice *choice,
		       struct dataset *const *datasets, size_t num_datasets,
		       uint64_t slot_bytes, struct log *log)
{
	int r;

	*m = (struct engine_memory){
		.choice = *choice,
		.slot_reserve = slot_bytes,
	};
	r = open_budget(m, datasets, num_datasets, log);
	if (!r)
		r = open_verify(m, datasets, num_datasets, log);
	if (!r)
		open_remote(m, datasets, num_datasets, log);
	return r;
}

void engine_memory_close(struct engine_memory *m)
{
	budget_give(m->budget, BUDGET_VERIFY, m->verify_bytes);
	budget_give(m->budget, BUDGET_REMOTE, m->remote_bytes);
	budget_close(m->budget);
}

uint64_t engine_memory_cache_min(const struct engine_memory *m)
{
	return m->choice.cache_size / CACHE_PART;
}
