/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/image/jpeg/entry_store.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "loader/image/jpeg/baseline.h"
#include "loader/image/jpeg/entry_record.h"
#include "loader/util/value_store.h"

enum {
	/* The bits of a sample number in a key; a field's number follows. */
	ID_BITS = 48,
	/* Smaller images take less time than a record is worth. */
	MCUS_MIN = 64,
	/* Bytes to take at once. */
	GRAIN = 256 << 10,
};

struct entry_store {
	struct entry_store_options options;
	struct value_store *records;
	pthread_mutex_t lock; /* of `is_full`, and of the calls of take() */
	atomic_uint_fast64_t taken;
	atomic_uint_fast64_t hits;
	bool is_full;
};

int entry_store_open(const struct entry_store_options *options,
		     struct entry_store **out)
{
	struct entry_store *s = calloc(1, sizeof(*s));
	int r = s ? value_store_open(
			    max_u64(options->size, VALUE_STORE_SIZE_MIN),
			    &s->records)
		  : -ENOMEM;

	if (r) {
		free(s);
		return r;
	}
	s->options = *options;
	pthread_mutex_init(&s->lock, NULL);
	*out = s;
	return 0;
}

void entry_store_close(struct entry_store *s)
{
	if (!s)
		return;
	value_store_close(s->records);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void grow(struct entry_store *s, uint64_t used)
{
	scoped_lock(&s->lock);

	while (!s->is_full && used > s->taken) {
		uint64_t bytes = align_up(used - s->taken, GRAIN);

		s->is_full = s->options.take &&
			     !s->options.take(s->options.arg, bytes);
		if (!s->is_full)
			atomic_fetch_add(&s->taken, bytes);
	}
}

static bool has_room(struct entry_store *s, size_t size)
{
	struct value_store_stats stats;

	value_store_stats(s->records, &stats);
	if (stats.used + size > stats.size)
		return false;
	if (stats.used + size > atomic_load(&s->taken))
		grow(s, stats.used + size);
	return stats.used + size <= atomic_load(&s->taken);
}

static struct entry_record *find(struct entry_store *s, uint64_t key)
{
	const void *found;

	if (value_store_get(s->records, key, &found) != VALUE_STORE_VALUE)
		return NULL;
	/* A record is the only value that changes in place. */
	return (struct entry_record *)(uintptr_t)found;
}

static struct entry_record *make(struct entry_store *s, uint64_t key,
				 const struct entry_scan *scan)
{
	size_t size = entry_record_size(scan);
	struct entry_record *record = NULL;

	if (size && has_room(s, size))
		record = value_store_take(s->records, key, size);
	if (!record)
		return NULL;
	entry_record_init(record, scan);
	if (!value_store_put(s->records, record))
		return record;
	return NULL;
}

static bool is_worth_it(const struct baseline_image *image)
{
	return !image->restart_interval &&
	       (uint64_t)image->mcus_across * image->mcus_down >= MCUS_MIN;
}

struct entry_record *entry_store_get(struct entry_store *s, uint32_t field,
				     uint64_t id,
				     const struct baseline_image *image)
{
	uint64_t key = id | (uint64_t)field << ID_BITS;
	struct entry_scan scan = baseline_scan(image);
	struct entry_record *record;

	if (!is_worth_it(image))
		return NULL;
	record = find(s, key);
	if (!record)
		return make(s, key, &scan);
	if (!entry_record_is_of(record, &scan))
		return NULL;
	if (entry_record_rows(record))
		atomic_fetch_add_explicit(&s->hits, 1, memory_order_relaxed);
	return record;
}

void entry_store_stats(const struct entry_store *s,
		       struct entry_store_stats *out)
{
	struct value_store_stats stats;

	*out = (struct entry_store_stats){ 0 };
	if (!s)
		return;
	value_store_stats(s->records, &stats);
	*out = (struct entry_store_stats){
		.size = stats.size,
		.used = stats.used,
		.records = stats.values,
		.hits = atomic_load_explicit(&s->hits, memory_order_relaxed),
	};
}
