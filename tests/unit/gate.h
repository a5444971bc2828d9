/* SPDX-License-Identifier: Apache-2.0 */
/* A slow disk: reads of the records of some samples wait until the test lets
   them finish. */
#ifndef TESTS_UNIT_GATE_H
#define TESTS_UNIT_GATE_H

#include <pthread.h>
#include <time.h>

#include "fs/data/dataset/dataset.h"
#include "tests/unit/t.h"

struct gate {
	struct source_ops ops; /* first: the source points to it */
	const struct source_ops *real;
	struct source *source;
	uint64_t from, to; /* bytes whose reads wait */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_open;
	unsigned waiting;
};

static inline int gate_read(struct source *source, void *buf, size_t size,
			    uint64_t off)
{
	struct gate *g = (struct gate *)source->ops;

	pthread_mutex_lock(&g->lock);
	if (off < g->to && off + size > g->from) {
		g->waiting++;
		pthread_cond_broadcast(&g->changed);
		while (!g->is_open)
			pthread_cond_wait(&g->changed, &g->lock);
		g->waiting--;
	}
	pthread_mutex_unlock(&g->lock);
	return g->real->read(source, buf, size, off);
}

/* From now on reads of the records of the samples [first, end) wait. */
static inline void gate_shut(struct gate *g, struct dataset *ds, uint64_t first,
			     uint64_t end)
{
	const struct format *f = &ds->format;

	*g = (struct gate){
		.ops = *ds->source->ops,
		.real = ds->source->ops,
		.source = ds->source,
		.from = f->meta_off + first * f->itemsize,
		.to = f->meta_off + end * f->itemsize,
	};
	g->ops.read = gate_read;
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->changed, NULL);
	ds->source->ops = &g->ops;
}

/* Waits until so many reads wait. */
static inline void gate_wait(struct gate *g, unsigned n)
{
	struct timespec end;
	int r = 0;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 10;
	pthread_mutex_lock(&g->lock);
	while (g->waiting < n && !r)
		r = pthread_cond_timedwait(&g->changed, &g->lock, &end);
	pthread_mutex_unlock(&g->lock);
	CHECK(!r);
}

static inline void gate_open(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	g->is_open = true;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

/* The threads that read have ended. */
static inline void gate_remove(struct gate *g)
{
	g->source->ops = g->real;
	pthread_cond_destroy(&g->changed);
	pthread_mutex_destroy(&g->lock);
}

#endif
