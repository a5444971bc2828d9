/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any answers of a maker to a trainer. Each is a struct record with edits of the
 * true answer, or with bytes that replace it. The edits are made before the
 * length and the CRC, which no mutation would find. A batch that the trainer
 * delivers is read whole.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "beton/loader.h"
#include "fs/base/util/bytes.h"
#include "fs/data/writer/writer.h"
#include "loader/run/link/wire.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/seal.h"

enum { SAMPLES = 7, BATCH = 4, STEPS = 2, SIDE = 6, EDIT_MAX = 8 };

enum {
	REFUSES = 1,  /* the bytes are the reason */
	IS_RAW = 2,   /* the bytes are the batch file */
	UNSEALED = 4, /* with length and CRC as edited */
	RENAMED = 8,  /* the answer is for another name */
	LIES = 16,    /* the size is `lie` */
	ENDS = 32,    /* after half of it */
};

struct record {
	uint8_t flags;
	uint8_t bytes; /* that follow; edits, unless REFUSES or IS_RAW */
	uint16_t lie;
};

/* Followed by `size` bytes. */
struct edit {
	uint16_t at;
	uint8_t size;
};

struct file {
	uint8_t *bytes;
	uint64_t size;
};

static struct beton_loader *trainer;
static struct file truth[STEPS]; /* the answers of a maker, of epoch 0 */

/* Makes the compiler read the bytes, and a sanitizer look at them. */
static volatile uint8_t sink;

/* --- the dataset, and the true answers --- */

static void write_dataset(char *path)
{
	static const struct writer_field f[] = {
		{ .name = "image", .type = BETON_TYPE_IMAGE },
		{ .name = "label", .type = BETON_TYPE_INT },
		{ .name = "blob", .type = BETON_TYPE_BYTES },
		{ .name = "text", .type = BETON_TYPE_JSON },
	};
	static const uint8_t pixels[3 * SIDE * SIDE] = { 1, 2, 3 };
	static const char text[] = "[[1, 2], [3, 4], [5, 6]]";
	struct writer *w;
	int fd = mkstemp(path);

	MUST(fd >= 0 && !close(fd));
	MUST(!writer_open(path, f, ARRAY_LEN(f), SAMPLES, 2 << 20, NULL, &w));
	for (unsigned i = 0; i < SAMPLES; i++) {
		const struct writer_value v[] = {
			{ .bytes = pixels,
			  .size = sizeof(pixels),
			  .mode = BETON_MODE_RAW,
			  .width = SIDE,
			  .height = SIDE },
			{ .integer = i },
			{ .bytes = pixels, .size = i },
			{ .bytes = (const uint8_t *)text,
			  .size = sizeof(text) - 1 },
		};

		MUST(!writer_append(w, v));
	}
	MUST(!writer_finish(&w));
}

static struct beton_loader *load(const char *path, enum beton_role role)
{
	struct beton_loader_options o = {
		.size = sizeof(o),
		.spec = "order=sequential,batch=4,drop_last=0",
		.pipeline =
			"image | center_crop(4) | float; label; blob; text; "
			"rows = text | json(float32, row=2); "
			"even = text | json(int8, row=2) | pad_to(batch); "
			"few = text | json(int8, row=2) | pack(9)",
		.workers = 1,
		.prefetch = 4,
		.on_error = BETON_ON_ERROR_ZERO,
		.role = role,
		.spare_workers = 1,
	};
	struct beton_loader *l;

	MUST(!beton_loader_open(path, &o, &l));
	return l;
}

struct serving {
	struct beton_loader *maker;
	int fd;
};

static void *run_serving(void *arg)
{
	struct serving *s = arg;

	MUST(!beton_loader_serve(s->maker, s->fd, NULL, 0));
	return NULL;
}

static void get_truth(int fd, uint64_t number)
{
	const struct wire_name name = { 0, number };
	struct file *to = &truth[number];
	struct wire_answer a;

	MUST(!wire_send(fd, &name, sizeof(name)));
	MUST(!wire_receive(fd, &a, sizeof(a)) && !a.error);
	to->size = a.size;
	to->bytes = malloc(a.size);
	MUST(to->bytes && !wire_receive(fd, to->bytes, a.size));
}

static void open_all(void)
{
	char path[] = "/tmp/fuzz_link.XXXXXX";
	struct wire_hello hello;
	struct serving s;
	pthread_t thread;
	int ends[2];

	setenv("BETON_JIT", "off", 1);
	write_dataset(path);
	trainer = load(path, BETON_ROLE_TRAINER);
	s.maker = load(path, BETON_ROLE_MAKER);
	MUST(!unlink(path));
	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	s.fd = ends[0];
	MUST(!pthread_create(&thread, NULL, run_serving, &s));
	MUST(!wire_receive(ends[1], &hello, sizeof(hello)));
	MUST(!wire_send(ends[1], &hello, sizeof(hello)));
	for (uint64_t i = 0; i < STEPS; i++)
		get_truth(ends[1], i);
	close(ends[1]);
	pthread_join(thread, NULL);
	close(ends[0]);
	beton_loader_close(s.maker);
}

/* --- the maker --- */

struct maker {
	int fd;
	const uint8_t *data;
	size_t size;
};

static void edit(struct file *f, const uint8_t *edits, size_t size)
{
	struct edit e;

	while (size >= sizeof(e)) {
		memcpy(&e, edits, sizeof(e));
		edits += sizeof(e);
		size -= sizeof(e);
		e.size = (uint8_t)min_u64(e.size % (EDIT_MAX + 1), size);
		if ((uint64_t)e.at + e.size <= f->size)
			memcpy(f->bytes + e.at, edits, e.size);
		edits += e.size;
		size -= e.size;
	}
}

/* The answer without edits has the epoch of the name. */
static struct file make_file(const struct record *r, const uint8_t *bytes,
			     const struct wire_name *name)
{
	const struct file *from = &truth[name->number % STEPS];
	bool is_edited = !(r->flags & (IS_RAW | REFUSES));
	struct file f = { .size = is_edited ? from->size : r->bytes };

	f.bytes = malloc(f.size + 1);
	MUST(f.bytes);
	memcpy(f.bytes, is_edited ? from->bytes : bytes, f.size);
	if (is_edited) {
		((struct beton_batch_header *)f.bytes)->epoch = name->epoch;
		edit(&f, bytes, r->bytes);
	}
	if (!(r->flags & (UNSEALED | REFUSES)))
		seal_batch(f.bytes, f.size);
	return f;
}

/* Returns whether more can follow. */
static bool answer(const struct maker *m, const struct record *r,
		   const uint8_t *bytes)
{
	struct wire_answer a = { .error = r->flags & REFUSES ? -EIO : 0 };
	struct file f;
	uint64_t size;
	int error;

	if (wire_receive(m->fd, &a.name, sizeof(a.name)))
		return false;
	f = make_file(r, bytes, &a.name);
	a.name.number += !!(r->flags & RENAMED);
	a.size = r->flags & LIES ? (uint64_t)r->lie << r->lie % 49 : f.size;
	size = r->flags & ENDS ? f.size / 2 : f.size;
	error = wire_send(m->fd, &a, sizeof(a));
	if (!error)
		error = wire_send(m->fd, f.bytes, size);
	free(f.bytes);
	return !error && !(r->flags & ENDS);
}

static void *run_maker(void *arg)
{
	struct maker *m = arg;
	struct wire_hello hello;
	struct record r;
	bool goes_on;

	goes_on = !wire_receive(m->fd, &hello, sizeof(hello)) &&
		  !wire_send(m->fd, &hello, sizeof(hello));
	while (goes_on && m->size >= sizeof(r)) {
		memcpy(&r, m->data, sizeof(r));
		m->data += sizeof(r);
		m->size -= sizeof(r);
		r.bytes = (uint8_t)min_u64(r.bytes, m->size);
		goes_on = answer(m, &r, m->data);
		m->data += r.bytes;
		m->size -= r.bytes;
	}
	shutdown(m->fd, SHUT_RDWR);
	return NULL;
}

/* --- the trainer --- */

static void *run_attach(void *arg)
{
	char why[WIRE_MESSAGE_SIZE];

	MUST(beton_loader_attach(trainer, *(int *)arg, why, sizeof(why)) < 0);
	MUST(*why);
	return NULL;
}

static void read_bytes(const void *bytes, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		sink = ((const uint8_t *)bytes)[i];
}

static void take(void)
{
	const struct beton_batch *b;

	if (beton_loader_next(trainer, &b))
		return;
	MUST(b->num_samples && b->num_samples <= BATCH);
	for (uint32_t i = 0; i < b->num_samples; i++)
		MUST(b->ids[i] < SAMPLES && b->valid[i]);
	for (uint32_t i = 0; i < b->num_outputs; i++) {
		const struct beton_tensor *t = &b->outputs[i];

		read_bytes(t->data, t->size);
		if (t->offsets)
			MUST((uint64_t)t->offsets[b->num_samples] ==
			     t->shape[0]);
	}
	beton_loader_release(trainer, b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A trainer that waits for the rest of an answer sends no name. */
	const struct timeval limit = { .tv_usec = 10000 };
	pthread_t maker, attached;
	struct maker m;
	int ends[2];

	if (!trainer)
		open_all();
	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	MUST(!setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit,
			 sizeof(limit)));
	m = (struct maker){ ends[0], data, size };
	MUST(!pthread_create(&maker, NULL, run_maker, &m));
	MUST(!pthread_create(&attached, NULL, run_attach, &ends[1]));
	while (pthread_tryjoin_np(attached, NULL))
		take();
	shutdown(ends[1], SHUT_RDWR);
	pthread_join(maker, NULL);
	close(ends[0]);
	close(ends[1]);
	return 0;
}
