/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/local/source.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/source/local/net_stats.h"

void source_close(struct source *source)
{
	if (!source)
		return;
	source->ops->close(source);
	free(source->path);
	free(source);
}

void source_submit(struct source *source, struct source_request *request)
{
	source->ops->submit(source, request);
}

int source_read(struct source *source, void *buf, size_t size, uint64_t off)
{
	return source->ops->read(source, buf, size, off);
}

int source_read_cached(struct source *source, void *buf, size_t size,
		       uint64_t off)
{
	return source->ops->read_cached
		       ? source->ops->read_cached(source, buf, size, off)
		       : -EAGAIN;
}

bool source_is_direct(const struct source *source)
{
	return source->ops->is_direct(source);
}

int source_descriptor(const struct source *source, uint64_t off, uint64_t *at,
		      uint64_t *left)
{
	return source->ops->descriptor
		       ? source->ops->descriptor(source, off, at, left)
		       : -1;
}

unsigned source_depth(const struct source *source)
{
	return source->ops->depth ? source->ops->depth(source) : SOURCE_DEPTH;
}

size_t source_best_read(const struct source *source)
{
	return source->ops->best_read ? source->ops->best_read(source)
				      : SOURCE_BEST_READ;
}

void source_prefetch(struct source *source, uint64_t off, uint64_t size)
{
	if (source->ops->prefetch)
		source->ops->prefetch(source, off, size);
}

bool source_prefetches(const struct source *source)
{
	return source->ops->prefetch != NULL;
}

void source_note_tables(struct source *source,
			const struct source_range *tables, size_t n)
{
	if (source->ops->note_tables)
		source->ops->note_tables(source, tables, n);
}

void source_cancel(struct source *source, struct source_request *request)
{
	source->ops->cancel(source, request);
}

const struct counters *source_reads(const struct source *source)
{
	return source->inner ? source_reads(source->inner) : &source->reads;
}

void source_pause(struct source *source)
{
	for (; source; source = source->inner) {
		if (source->ops->pause)
			source->ops->pause(source);
	}
}

bool source_needs_program(const struct source *source)
{
	for (; source; source = source->inner) {
		if (source->ops->needs_program &&
		    source->ops->needs_program(source))
			return true;
	}
	return false;
}

void source_halt(struct source *source)
{
	for (; source; source = source->inner) {
		if (source->ops->halt)
			source->ops->halt(source);
	}
}

bool source_net_stats(const struct source *source, struct source_net_stats *out)
{
	for (; source; source = source->inner) {
		if (!source->ops->net_stats)
			continue;
		source->ops->net_stats(source, out);
		return true;
	}
	return false;
}

void source_wait_init(struct source_wait *wait)
{
	pthread_mutex_init(&wait->lock, NULL);
	clock_cond_init(&wait->idle);
	wait->pending = 0;
}

void source_wait_add(struct source_wait *wait)
{
	scoped_lock(&wait->lock);
	wait->pending++;
}

/* Signals under the lock: the waiter may destroy `wait` as soon as it runs. */
void source_wait_done(struct source_wait *wait)
{
	scoped_lock(&wait->lock);
	if (!--wait->pending)
		pthread_cond_signal(&wait->idle);
}

void source_wait_idle(struct source_wait *wait)
{
	scoped_lock(&wait->lock);
	while (wait->pending)
		pthread_cond_wait(&wait->idle, &wait->lock);
}

bool source_wait_some(struct source_wait *wait, int64_t ms)
{
	const struct timespec end = clock_in_ms(ms);
	scoped_lock(&wait->lock);

	while (wait->pending) {
		if (pthread_cond_timedwait(&wait->idle, &wait->lock, &end))
			break;
	}
	return !wait->pending;
}

void source_wait_fini(struct source_wait *wait)
{
	pthread_cond_destroy(&wait->idle);
	pthread_mutex_destroy(&wait->lock);
}
