/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dataset with outputs of all kinds, loaders of it that are alone, and
 * trainers with makers in threads of this process. A relay can stand between
 * both ends of a link, and cut or freeze it after some bytes of the maker.
 */
#ifndef TESTS_UNIT_LINKED_H
#define TESTS_UNIT_LINKED_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "beton/loader.h"
#include "fs/base/util/bytes.h"
#include "fs/base/util/crc32c.h"
#include "fs/base/util/rng.h"
#include "fs/data/writer/writer.h"
#include "loader/image/codec/codec.h"
#include "tests/unit/t.h"

enum {
	LINKED_SAMPLES = 61,
	LINKED_BATCH = 8,
	LINKED_SIDE_MAX = 40,
	LINKED_RECORDS_MAX = 64,
	LINKED_MAKERS_MAX = 4,
	LINKED_DEADLINE_S = 120,
};

/* Unreadable samples of a damaged dataset. */
static inline bool linked_is_bad(uint32_t sample)
{
	return sample == 5 || sample == 6 || sample == 41;
}

/* --- the dataset --- */

static inline size_t linked_text(uint32_t sample, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size, "[");

	for (uint32_t i = 0; i < sample % 7; i++)
		n += (size_t)snprintf(out + n, size - n, "%s[%u, %u.5]",
				      i ? ", " : "", sample, i);
	return n + (size_t)snprintf(out + n, size - n, "]");
}

static inline void linked_append(struct writer *w, struct codec *codec,
				 struct rng *rng, uint32_t i, bool damaged)
{
	static uint8_t pixels[LINKED_SIDE_MAX * LINKED_SIDE_MAX * 3];
	const struct image image = { pixels, 24 + i % 16, 40 - i % 7,
				     3 * (24 + (size_t)i % 16) };
	bool bad = damaged && linked_is_bad(i);
	uint8_t *jpeg = NULL;
	char text[200];
	float vec[6];
	struct writer_value v[6] = {
		{ .bytes = pixels,
		  .size = image.stride * image.height,
		  .mode = BETON_MODE_RAW,
		  .width = (uint16_t)image.width,
		  .height = (uint16_t)image.height },
		{ .integer = i * 5 % 9 },
		{ .real = (double)i / 8 },
		{ .bytes = (uint8_t *)vec, .size = sizeof(vec) },
		{ .bytes = pixels, .size = i * 13 % 90 },
		{ .bytes = (uint8_t *)text },
	};

	for (size_t k = 0; k < sizeof(pixels); k++)
		pixels[k] = (uint8_t)(k / 7 + rng_next(rng) % 32);
	for (size_t k = 0; k < 6; k++)
		vec[k] = (float)i / (float)(k + 1);
	v[5].size = bad && i != 5 ? (size_t)sprintf(text, "[1,")
				  : linked_text(i, text, sizeof(text));
	if (i % 2) {
		size_t size;

		CHECK(!codec_encode(codec, &image, 90, &jpeg, &size));
		v[0].mode = BETON_MODE_JPG;
		v[0].bytes = jpeg;
		v[0].size = bad ? 9 : size;
	}
	CHECK(!writer_append(w, v));
	free(jpeg);
}

/* `path` ends with XXXXXX. */
static inline void linked_write(char *path, bool damaged)
{
	static const struct writer_field f[] = {
		{ .name = "image", .type = BETON_TYPE_IMAGE },
		{ .name = "label", .type = BETON_TYPE_INT },
		{ .name = "score", .type = BETON_TYPE_FLOAT },
		{ .name = "vec",
		  .type = BETON_TYPE_NDARRAY,
		  .dtype = "<f4",
		  .ndim = 2,
		  .shape = { 2, 3 } },
		{ .name = "blob", .type = BETON_TYPE_BYTES },
		{ .name = "text", .type = BETON_TYPE_JSON },
	};
	struct rng rng = { .key = 3 };
	struct codec *codec;
	struct writer *w;
	int fd = mkstemp(path);

	CHECK(fd >= 0 && !close(fd));
	CHECK(!codec_open(&codec));
	CHECK(!writer_open(path, f, ARRAY_LEN(f), LINKED_SAMPLES, 2 << 20, NULL,
			   &w));
	for (uint32_t i = 0; i < LINKED_SAMPLES; i++)
		linked_append(w, codec, &rng, i, damaged);
	CHECK(!writer_finish(&w));
	codec_close(codec);
}

/* --- loaders --- */

/* Prints messages, if $LINKED_LOG is set. */
static inline void linked_hear(void *arg, enum beton_log_level level,
			       const char *message)
{
	(void)arg;
	if (getenv("LINKED_LOG"))
		fprintf(stderr, "%d: %s\n", (int)level, message);
}

static inline struct beton_loader *
linked_open(const char *path, const struct beton_loader_options *options)
{
	struct beton_loader_options o = *options;
	char error[600] = "";
	struct beton_loader *l = NULL;
	int r;

	o.size = sizeof(o);
	o.log = linked_hear;
	o.workers = o.workers ? o.workers : 1;
	o.error = error;
	o.error_size = sizeof(error);
	r = beton_loader_open(path, &o, &l);
	if (r)
		fprintf(stderr, "%s: %s\n", o.pipeline, error);
	CHECK(!r);
	return l;
}

static inline void linked_sleep(unsigned milliseconds)
{
	nanosleep(
		&(struct timespec){ .tv_sec = milliseconds / 1000,
				    .tv_nsec = milliseconds % 1000 * 1000000L },
		NULL);
}

/* The result of beton_loader_next(). */
struct linked_record {
	int error;
	uint32_t crc; /* of the whole batch */
	uint64_t epoch, number;
	char why[400];
};

struct linked_records {
	struct linked_record r[LINKED_RECORDS_MAX];
	unsigned n;
	uint64_t failed;
};

static inline uint32_t linked_crc_tensor(struct beton_loader *l,
					 const struct beton_batch *b,
					 uint32_t i, uint32_t crc)
{
	const struct beton_tensor *t = &b->outputs[i];
	uint8_t *bytes = malloc(t->size + 1);

	CHECK(bytes && !beton_loader_read(l, b, i, bytes));
	crc = crc32c(crc, t->name, strlen(t->name));
	crc = crc32c(crc, t->dtype, strlen(t->dtype));
	crc = crc32c(crc, t->shape, t->ndim * sizeof(*t->shape));
	crc = crc32c(crc, &t->device_type, sizeof(t->device_type));
	if (t->offsets)
		crc = crc32c(crc, t->offsets,
			     (b->num_samples + (size_t)1) *
				     sizeof(*t->offsets));
	crc = crc32c(crc, bytes, t->size);
	free(bytes);
	return crc;
}

static inline uint32_t linked_crc(struct beton_loader *l,
				  const struct beton_batch *b)
{
	uint32_t crc = crc32c(0, b->ids, b->num_samples * sizeof(*b->ids));

	crc = crc32c(crc, b->valid, b->num_samples);
	for (uint32_t i = 0; i < b->num_outputs; i++)
		crc = linked_crc_tensor(l, b, i, crc);
	return crc;
}

/* Takes one batch, or returns false at the end of the epoch. */
static inline bool linked_take(struct beton_loader *l,
			       struct linked_records *to)
{
	const struct beton_batch *b = NULL;
	struct linked_record r = { .error = beton_loader_next(l, &b) };

	if (r.error == -ENODATA)
		return false;
	if (r.error) {
		snprintf(r.why, sizeof(r.why), "%s", beton_loader_error(l));
	} else {
		r.epoch = b->epoch;
		r.number = b->number;
		r.crc = linked_crc(l, b);
		beton_loader_release(l, b);
	}
	CHECK(to->n < LINKED_RECORDS_MAX);
	to->r[to->n++] = r;
	to->failed = beton_loader_failed_samples(l);
	return true;
}

static inline void linked_drain(struct beton_loader *l, unsigned epochs,
				struct linked_records *to)
{
	while (epochs--) {
		while (linked_take(l, to))
			;
	}
}

static inline void linked_alone(const char *path,
				const struct beton_loader_options *o,
				unsigned epochs, struct linked_records *to)
{
	struct beton_loader *l = linked_open(path, o);

	to->n = 0;
	linked_drain(l, epochs, to);
	beton_loader_close(l);
}

/* If messages differ, so do the records. */
static inline void linked_compare(const struct linked_records *got,
				  const struct linked_records *want,
				  const char *what)
{
	bool equal = got->n == want->n && got->failed == want->failed;

	for (unsigned i = 0; equal && i < got->n; i++) {
		const struct linked_record *a = &got->r[i], *b = &want->r[i];

		equal = a->error == b->error && a->crc == b->crc &&
			a->epoch == b->epoch && a->number == b->number &&
			!strcmp(a->why, b->why);
		if (!equal)
			fprintf(stderr,
				"step %u: error %d epoch %d batch %d \"%s\", "
				"alone: error %d epoch %d batch %d \"%s\"\n",
				i, a->error, (int)a->epoch, (int)a->number,
				a->why, b->error, (int)b->epoch, (int)b->number,
				b->why);
	}
	if (!equal)
		fprintf(stderr,
			"%s: %u steps, %u failed samples; alone %u, %u\n", what,
			got->n, (unsigned)got->failed, want->n,
			(unsigned)want->failed);
	CHECK(equal);
}

/* --- links --- */

enum linked_end { LINKED_CUT, LINKED_FREEZE };

/* Copies between both sides, `limit` bytes of the maker. If `pause_ms` is not 0,
   it rests that long once, before the last `pause_at` bytes. */
struct linked_relay {
	uint64_t limit;
	enum linked_end end;
	uint64_t pause_at;
	unsigned pause_ms;
	int trainer, maker;
	pthread_t thread;
};

struct linked_maker {
	const char *path;
	struct beton_loader_options options;
	int trainer, maker; /* the ends of the link */
	struct beton_loader *of;
	pthread_t attaching, serving;
	int attached, served;
	char attach_why[1024], serve_why[1024];
	struct linked_relay relay;
};

struct linked_team {
	struct beton_loader *trainer;
	struct linked_maker makers[LINKED_MAKERS_MAX];
	unsigned n;
};

static inline void *linked_run_maker(void *arg)
{
	struct linked_maker *m = arg;
	struct beton_loader *l = linked_open(m->path, &m->options);

	m->served = beton_loader_serve(l, m->maker, m->serve_why,
				       sizeof(m->serve_why));
	beton_loader_close(l);
	close(m->maker);
	return NULL;
}

static inline void *linked_run_attach(void *arg)
{
	struct linked_maker *m = arg;

	m->attached = beton_loader_attach(m->of, m->trainer, m->attach_why,
					  sizeof(m->attach_why));
	close(m->trainer);
	return NULL;
}

/* Returns false at the end of the stream. */
static inline bool linked_copy(int from, int to, uint64_t *limit)
{
	uint8_t bytes[4096];
	ssize_t n = recv(from, bytes, min_u64(sizeof(bytes), *limit), 0);

	if (n <= 0)
		return false;
	*limit -= (uint64_t)n;
	return send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static inline void *linked_run_relay(void *arg)
{
	struct linked_relay *r = arg;
	struct pollfd p[2] = { { .fd = r->trainer, .events = POLLIN },
			       { .fd = r->maker, .events = POLLIN } };
	uint64_t no_limit = UINT64_MAX;
	bool goes_on = true;

	while (goes_on) {
		if (!r->limit)
			p[1].fd = -1;
		if (r->pause_ms && r->limit <= r->pause_at) {
			linked_sleep(r->pause_ms);
			r->pause_ms = 0;
		}
		CHECK(poll(p, 2, -1) > 0);
		if (p[0].revents)
			goes_on = linked_copy(r->trainer, r->maker, &no_limit);
		if (goes_on && p[1].revents)
			goes_on = linked_copy(r->maker, r->trainer, &r->limit);
		if (!r->limit && r->end == LINKED_CUT)
			goes_on = false;
	}
	close(r->trainer);
	close(r->maker);
	return NULL;
}

static inline void linked_start(void *(*run)(void *), void *arg, pthread_t *out)
{
	CHECK(!pthread_create(out, NULL, run, arg));
}

/* Attaches a maker. `relay` may be NULL. */
static inline struct linked_maker *
linked_add(struct linked_team *t, const char *path,
	   const struct beton_loader_options *o,
	   const struct linked_relay *relay)
{
	struct linked_maker *m = &t->makers[t->n++];
	int ends[2];

	CHECK(t->n <= LINKED_MAKERS_MAX);
	*m = (struct linked_maker){ .path = path,
				    .options = *o,
				    .of = t->trainer };
	m->options.role = BETON_ROLE_MAKER;
	m->options.callback = false;
	m->options.rank = m->options.world_size = 0;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	m->trainer = ends[0];
	m->maker = ends[1];
	if (relay) {
		m->relay = *relay;
		m->relay.trainer = ends[1];
		CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
		m->relay.maker = ends[0];
		m->maker = ends[1];
		linked_start(linked_run_relay, &m->relay, &m->relay.thread);
	}
	linked_start(linked_run_maker, m, &m->serving);
	linked_start(linked_run_attach, m, &m->attaching);
	return m;
}

static inline struct beton_makers_stats linked_stats(struct beton_loader *l)
{
	struct beton_makers_stats s = { .size = sizeof(s) };

	CHECK(!beton_loader_makers(l, &s));
	return s;
}

static inline void linked_await(struct linked_team *t, unsigned makers)
{
	while (linked_stats(t->trainer).makers != makers)
		linked_sleep(1);
}

static inline void linked_join(struct linked_maker *m)
{
	pthread_join(m->attaching, NULL);
	pthread_join(m->serving, NULL);
	if (m->relay.trainer)
		pthread_join(m->relay.thread, NULL);
}

static inline void linked_open_trainer(struct linked_team *t, const char *path,
				       const struct beton_loader_options *o,
				       bool spare)
{
	struct beton_loader_options own = *o;

	own.role = BETON_ROLE_TRAINER;
	own.spare_workers = spare;
	*t = (struct linked_team){ .trainer = linked_open(path, &own) };
}

/* Closes the trainer, and joins all threads. */
static inline void linked_close(struct linked_team *t)
{
	beton_loader_close(t->trainer);
	for (unsigned i = 0; i < t->n; i++)
		linked_join(&t->makers[i]);
}

#endif
