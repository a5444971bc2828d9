/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for tests of credentials: variables, files, programs and
   answers of servers, and a clock. Thread-safe. */
#ifndef TESTS_UNIT_OUTSIDE_H
#define TESTS_UNIT_OUTSIDE_H

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "fs/source/keys/outside.h"
#include "tests/unit/t.h"

enum { TABLE_MAX = 16, SENT_MAX = 65536 };

struct fake_row {
	const char *name;
	const char *value;
};

/* An answer to requests whose "METHOD URL" begins with `to`. */
struct fake_answer {
	const char *to;
	int status; /* below 0: -errno */
	const char *body;
};

struct fake {
	struct outside outside;
	pthread_mutex_t lock;
	struct fake_row variables[TABLE_MAX];
	struct fake_row files[TABLE_MAX];
	struct fake_row programs[TABLE_MAX];
	struct fake_answer answers[TABLE_MAX];
	time_t now;
	unsigned num_fetches;
	bool is_slow; /* answers wait until it is false */
	/* All requests: "METHOD URL", lines, body. */
	char sent[SENT_MAX];
};

static inline struct fake *fake_locked(void *arg)
{
	struct fake *f = arg;

	pthread_mutex_lock(&f->lock);
	return f;
}

static inline const char *fake_find(const struct fake_row *rows,
				    const char *name)
{
	for (size_t i = 0; i < TABLE_MAX; i++) {
		if (rows[i].name && !strcmp(rows[i].name, name))
			return rows[i].value;
	}
	return NULL;
}

static inline void fake_set(struct fake *f, struct fake_row *rows,
			    const char *name, const char *value)
{
	size_t i = 0;

	pthread_mutex_lock(&f->lock);
	while (rows[i].name && strcmp(rows[i].name, name) != 0)
		i++;
	CHECK(i < TABLE_MAX);
	rows[i] = (struct fake_row){ name, value };
	pthread_mutex_unlock(&f->lock);
}

static inline void fake_answer(struct fake *f, const char *to, int status,
			       const char *body)
{
	size_t i = 0;

	pthread_mutex_lock(&f->lock);
	while (f->answers[i].to && strcmp(f->answers[i].to, to) != 0)
		i++;
	CHECK(i < TABLE_MAX);
	f->answers[i] = (struct fake_answer){ to, status, body };
	pthread_mutex_unlock(&f->lock);
}

static inline const char *fake_environment(void *arg, const char *name)
{
	struct fake *f = fake_locked(arg);
	const char *value = fake_find(f->variables, name);

	pthread_mutex_unlock(&f->lock);
	return value;
}

static inline int fake_copy(const char *value, char **text, size_t *size)
{
	if (!value)
		return -ENOENT;
	*text = strdup(value);
	CHECK(*text);
	*size = strlen(value);
	return 0;
}

static inline int fake_read(void *arg, const char *path, char **text,
			    size_t *size)
{
	struct fake *f = fake_locked(arg);
	int r = fake_copy(fake_find(f->files, path), text, size);

	pthread_mutex_unlock(&f->lock);
	return r;
}

static inline int fake_run(void *arg, const char *command, const bool *stop,
			   char **text, size_t *size)
{
	struct fake *f = fake_locked(arg);
	int r = fake_copy(fake_find(f->programs, command), text, size);

	(void)stop;
	pthread_mutex_unlock(&f->lock);
	return r;
}

static inline void fake_record(struct fake *f, const struct outside_fetch *q)
{
	size_t used = strlen(f->sent);
	FILE *out = fmemopen(f->sent + used, SENT_MAX - used, "w");

	CHECK(out);
	fprintf(out, "%s %s\n", q->method, q->url);
	for (size_t i = 0; i < q->num_lines; i++)
		fprintf(out, "%s\n", q->lines[i]);
	if (q->body)
		fprintf(out, "%.*s\n", (int)q->body_size, q->body);
	fclose(out);
}

/* Waits without the lock while the outside is slow. */
static inline void fake_wait(struct fake *f)
{
	while (f->is_slow) {
		pthread_mutex_unlock(&f->lock);
		usleep(1000);
		pthread_mutex_lock(&f->lock);
	}
}

static inline int fake_fetch(void *arg, struct outside_fetch *q)
{
	struct fake *f = fake_locked(arg);
	const struct fake_answer *best = NULL;
	char to[2048];
	int r = -ECONNREFUSED;

	snprintf(to, sizeof(to), "%s %s", q->method, q->url);
	fake_record(f, q);
	f->num_fetches++;
	fake_wait(f);
	for (size_t i = 0; i < TABLE_MAX; i++) {
		const struct fake_answer *a = &f->answers[i];

		if (a->to && !strncmp(to, a->to, strlen(a->to)) &&
		    (!best || strlen(a->to) > strlen(best->to)))
			best = a;
	}
	if (best && best->status > 0) {
		q->status = best->status;
		q->got = strlen(best->body);
		CHECK(q->got <= q->size);
		memcpy(q->buf, best->body, q->got);
		r = 0;
	} else if (best) {
		r = best->status;
	}
	pthread_mutex_unlock(&f->lock);
	return r;
}

static inline time_t fake_now(void *arg)
{
	struct fake *f = fake_locked(arg);
	time_t now = f->now;

	pthread_mutex_unlock(&f->lock);
	return now;
}

static inline void fake_set_now(struct fake *f, time_t now)
{
	pthread_mutex_lock(&f->lock);
	f->now = now;
	pthread_mutex_unlock(&f->lock);
}

static inline void fake_init(struct fake *f)
{
	*f = (struct fake){
		.outside = { .environment = fake_environment,
			     .read = fake_read,
			     .run = fake_run,
			     .fetch = fake_fetch,
			     .now = fake_now,
			     .pause_ms = 1,
			     .arg = f,
			     .fetch_arg = f },
		.now = 1700000000, /* 2023-11-14T22:13:20Z */
	};
	pthread_mutex_init(&f->lock, NULL);
	fake_set(f, f->variables, "HOME", "/home/me");
}

#endif
