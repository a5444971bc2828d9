/* SPDX-License-Identifier: Apache-2.0 */
/* A remote source for tests: a local file that counts what is read from it,
   and that can fail or hold its requests. */
#ifndef TESTS_UNIT_COUNTED_H
#define TESTS_UNIT_COUNTED_H

#include <stdatomic.h>
#include <string.h>

#include "fs/source/local/file.h"
#include "tests/unit/t.h"

enum { HELD_MAX = 64 };

struct counted {
	struct source base;
	struct source *file;
	atomic_uint_fast64_t bytes, requests;
	atomic_int fail; /* the result of all reads, unless 0 */
	pthread_mutex_t lock;
	bool holds;
	struct source_request *held[HELD_MAX];
	unsigned num_held;
};

static inline struct counted *counted_of(struct source *source)
{
	return (struct counted *)source;
}

static inline void counted_submit(struct source *source,
				  struct source_request *q)
{
	struct counted *c = counted_of(source);
	bool held = false;
	int fail = atomic_load(&c->fail);

	atomic_fetch_add(&c->bytes, q->need ? q->need : q->size);
	atomic_fetch_add(&c->requests, 1);
	pthread_mutex_lock(&c->lock);
	if (c->holds) {
		CHECK(c->num_held < HELD_MAX);
		c->held[c->num_held++] = q;
		held = true;
	}
	pthread_mutex_unlock(&c->lock);
	if (!held && fail)
		q->done(q, fail);
	else if (!held)
		source_submit(c->file, q);
}

static inline bool counted_take(struct counted *c, struct source_request *q)
{
	bool found = false;

	pthread_mutex_lock(&c->lock);
	for (unsigned i = 0; i < c->num_held && !found; i++)
		if (c->held[i] == q) {
			c->held[i] = c->held[--c->num_held];
			found = true;
		}
	pthread_mutex_unlock(&c->lock);
	return found;
}

static inline void counted_cancel(struct source *source,
				  struct source_request *q)
{
	if (counted_take(counted_of(source), q))
		q->done(q, -ECANCELED);
	else
		source_cancel(counted_of(source)->file, q);
}

static inline int counted_read(struct source *source, void *buf, size_t size,
			       uint64_t off)
{
	struct counted *c = counted_of(source);
	int fail = atomic_load(&c->fail);

	atomic_fetch_add(&c->bytes, size);
	atomic_fetch_add(&c->requests, 1);
	return fail ? fail : source_read(c->file, buf, size, off);
}

static inline bool counted_is_direct(const struct source *source)
{
	(void)source;
	return false;
}

static inline void counted_close(struct source *source)
{
	struct counted *c = counted_of(source);

	while (c->num_held)
		counted_cancel(source, c->held[0]);
	source_close(c->file);
	pthread_mutex_destroy(&c->lock);
}

static const struct source_ops counted_ops = {
	.name = "counted",
	.submit = counted_submit,
	.cancel = counted_cancel,
	.read = counted_read,
	.is_direct = counted_is_direct,
	.close = counted_close,
};

static inline struct counted *counted_open(const char *path, struct log *log)
{
	struct counted *c = calloc(1, sizeof(*c));

	CHECK(c && !file_source_open(path, NULL, log, &c->file));
	c->base.ops = &counted_ops;
	c->base.path = strdup(path);
	c->base.log = log;
	c->base.stat = c->file->stat;
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

/* Submits the requests that were held. */
static inline void counted_release(struct counted *c)
{
	struct source_request *q;

	pthread_mutex_lock(&c->lock);
	c->holds = false;
	pthread_mutex_unlock(&c->lock);
	while (c->num_held) {
		q = c->held[0];
		counted_take(c, q);
		source_submit(c->file, q);
	}
}

#endif
