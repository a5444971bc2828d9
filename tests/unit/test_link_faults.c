/* SPDX-License-Identifier: Apache-2.0 */
/* Makers that end, stall, refuse and lie, trainers that lie, and loaders that end
   meanwhile. */
#include <dirent.h>
#include <sched.h>

#include "beton/batch.h"
#include "fs/base/util/clock.h"
#include "loader/run/link/wire.h"
#include "tests/unit/linked.h"

enum {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	ROUNDS = 12,
#else
	ROUNDS = 40,
#endif
	EPOCHS = 3,
	PAUSE_MS = 2000,
	HELLO = sizeof(struct wire_hello),
};

static char path[] = "/tmp/test_link_faults.XXXXXX";
static char damaged[] = "/tmp/test_link_faults.XXXXXX";

static const struct beton_loader_options options = {
	.spec = "order=random,batch=8,seed=7,drop_last=0",
	.pipeline = "image | random_resized_crop(20) | flip | "
		    "normalize(imagenet) | float | chw; label; blob; "
		    "text | json(float32, row=2) | pad_to(batch)",
	.prefetch = 6,
};

static struct linked_records wanted;

static unsigned count(const char *what)
{
	char name[40];
	unsigned n = 0;
	DIR *d;

	snprintf(name, sizeof(name), "/proc/self/%s", what);
	d = opendir(name);
	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void drain_and_compare(struct linked_team *t, const char *what)
{
	struct linked_records got = { .n = 0 };

	linked_drain(t->trainer, EPOCHS, &got);
	linked_compare(&got, &wanted, what);
}

/* --- makers that end or stall --- */

static void makers_end_at_any_moment(void)
{
	struct rng rng = { .key = 1 };

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct linked_team t;

		linked_open_trainer(&t, path, &options, i % 2);
		for (unsigned k = 0; k <= i % 4; k++) {
			struct linked_relay relay = {
				.limit = rng_next(&rng) % 300000,
				.end = LINKED_CUT,
			};

			linked_add(&t, path, &options, &relay);
		}
		drain_and_compare(&t, "makers that end");
		linked_close(&t);
	}
}

/* Freezes makers after their first answer. */
static void add_frozen(struct linked_team *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct linked_relay relay = { .limit = HELLO + 60000,
					      .end = LINKED_FREEZE };

		linked_add(t, path, &options, &relay);
	}
	linked_await(t, n);
}

static void makers_stall(void)
{
	for (unsigned i = 0; i < 12; i++) {
		struct beton_loader_options o = options;
		struct linked_team t;

		o.prefetch = i % 3 ? 6 : 2;
		linked_open_trainer(&t, path, &o, i % 2);
		add_frozen(&t, 1 + i / 2 % 3);
		drain_and_compare(&t, "makers that stall");
		linked_close(&t);
	}
}

static void a_maker_stalls_before_the_first_answer(void)
{
	const struct linked_relay relay = { .limit = HELLO,
					    .end = LINKED_FREEZE };
	struct linked_team t;

	linked_open_trainer(&t, path, &options, true);
	linked_add(&t, path, &options, &relay);
	linked_await(&t, 1);
	drain_and_compare(&t, "a maker that never answers");
	CHECK(linked_stats(t.trainer).repeated);
	linked_close(&t);
}

/* The time of the pause does not delay the end of the wait for later answers. */
static void a_maker_pauses_and_stalls_later(void)
{
	const struct linked_relay relay = { .limit = HELLO + 160000,
					    .end = LINKED_FREEZE,
					    .pause_at = 100000,
					    .pause_ms = PAUSE_MS };
	struct linked_records got = { .n = 0 };
	struct linked_team t;
	int64_t begin;

	linked_open_trainer(&t, path, &options, true);
	linked_add(&t, path, &options, &relay);
	linked_await(&t, 1);
	while (linked_stats(t.trainer).repeated < 1)
		linked_take(t.trainer, &got);
	linked_sleep(PAUSE_MS + PAUSE_MS / 4);
	begin = clock_coarse_ms();
	while (got.n < wanted.n)
		linked_take(t.trainer, &got);
	CHECK(clock_coarse_ms() - begin < PAUSE_MS);
	linked_close(&t);
	linked_compare(&got, &wanted, "a maker that pauses");
}

/* All turns that makers have are stale. */
static void seeks_leave_stalled_makers(bool spare)
{
	struct beton_loader_options o = options;
	struct linked_records got = { .n = 0 };
	struct linked_team t;

	o.prefetch = 2;
	linked_open_trainer(&t, path, &o, spare);
	add_frozen(&t, 2);
	for (unsigned i = 0; i < 9; i++) {
		linked_take(t.trainer, &got);
		linked_sleep(2);
		CHECK(!beton_loader_seek(t.trainer, i % 2));
	}
	CHECK(!beton_loader_seek(t.trainer, 0));
	drain_and_compare(&t, "stalled makers and seeks");
	linked_close(&t);
}

static void waits_see_stalled_makers(unsigned milliseconds)
{
	struct linked_records got = { .n = 0 };
	struct linked_team t;

	linked_open_trainer(&t, path, &options, true);
	add_frozen(&t, 1);
	for (unsigned i = 0; i < wanted.n + EPOCHS; i++) {
		while (beton_loader_wait(t.trainer, milliseconds) == -EAGAIN)
			sched_yield();
		linked_take(t.trainer, &got);
	}
	linked_compare(&got, &wanted, "waits for stalled makers");
	linked_close(&t);
}

/* The twin of a turn is open, done or in the making when the maker ends. */
static void stalled_makers_end(void)
{
	for (unsigned i = 0; i < ROUNDS / 4; i++) {
		struct linked_records got = { .n = 0 };
		struct linked_team t;

		linked_open_trainer(&t, path, &options, i % 2);
		add_frozen(&t, 2);
		for (unsigned e = 0; e < EPOCHS; e++) {
			while (linked_take(t.trainer, &got)) {
				if (got.n == 9 + i % 4)
					shutdown(t.makers[0].trainer,
						 SHUT_RDWR);
				if (got.n == 9 + i % 7)
					shutdown(t.makers[1].trainer,
						 SHUT_RDWR);
			}
		}
		linked_compare(&got, &wanted, "stalled makers that end");
		linked_close(&t);
	}
}

/* --- loaders that end --- */

static void a_trainer_ends_at_any_moment(void)
{
	unsigned threads = count("task"), files = count("fd");
	struct rng rng = { .key = 2 };

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct linked_records got = { .n = 0 };
		struct linked_team t;

		linked_open_trainer(&t, path, &options, i % 2);
		for (unsigned k = 0; k < 1 + i % 3; k++)
			linked_add(&t, path, &options, NULL);
		if (i % 3)
			linked_await(&t, t.n);
		for (unsigned k = rng_next(&rng) % 12; k--;)
			linked_take(t.trainer, &got);
		if (i % 2)
			beton_loader_stop(t.trainer);
		/* The call may come after the close, which the user has to
		   rule out. */
		if (i % 3 == 0)
			linked_sleep(20);
		linked_close(&t);
		for (unsigned k = 0; k < t.n; k++)
			CHECK(t.makers[k].attached == -ECANCELED);
	}
	while (count("task") > threads)
		sched_yield();
	CHECK(count("fd") == files);
}

static struct linked_maker *serve(struct linked_maker *m, const char *of,
				  int *trainer)
{
	int ends[2];

	*m = (struct linked_maker){ .path = of, .options = options };
	m->options.role = BETON_ROLE_MAKER;
	m->options.on_error = BETON_ON_ERROR_SKIP;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	*trainer = ends[0];
	m->maker = ends[1];
	linked_start(linked_run_maker, m, &m->serving);
	return m;
}

struct stopper {
	struct beton_loader *loader;
	int fd;
	int served;
	char why[200];
};

static void *run_stopped(void *arg)
{
	struct stopper *s = arg;

	s->served =
		beton_loader_serve(s->loader, s->fd, s->why, sizeof(s->why));
	return NULL;
}

/* Before the greeting, and while it waits for names. */
static void a_maker_is_stopped(void)
{
	struct beton_loader_options o = options;

	o.role = BETON_ROLE_MAKER;
	for (unsigned i = 0; i < 3; i++) {
		struct wire_hello hello;
		struct wire_name name = { 0, 0 };
		struct stopper s;
		pthread_t thread;
		int ends[2];

		CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
		s = (struct stopper){ linked_open(path, &o), ends[0], 1, "" };
		linked_start(run_stopped, &s, &thread);
		CHECK(!wire_receive(ends[1], &hello, sizeof(hello)));
		if (i)
			CHECK(!wire_send(ends[1], &hello, sizeof(hello)));
		for (unsigned k = 0; i == 2 && k < 40; k++)
			CHECK(!wire_send(ends[1], &name, sizeof(name)));
		linked_sleep(10);
		beton_loader_stop(s.loader);
		pthread_join(thread, NULL);
		CHECK(s.served == -ECANCELED);
		beton_loader_close(s.loader);
		close(ends[0]);
		close(ends[1]);
	}
}

/* --- liars --- */

struct lie {
	struct wire_answer answer;
	const char *text; /* that follows */
	int attached;
	const char *why;
};

/* Answers the first names with a lie, until the trainer closes the link. */
static void lie_to(int fd, const struct lie *lie)
{
	struct wire_hello hello;
	struct wire_answer a = lie->answer;
	struct wire_name name;

	CHECK(!wire_receive(fd, &hello, sizeof(hello)));
	CHECK(!wire_send(fd, &hello, sizeof(hello)));
	while (!wire_receive(fd, &name, sizeof(name))) {
		a.name =
			(struct wire_name){ name.epoch + lie->answer.name.epoch,
					    name.number +
						    lie->answer.name.number };
		if (wire_send(fd, &a, sizeof(a)) ||
		    wire_send(fd, lie->text, strlen(lie->text)))
			break;
	}
}

static const struct lie lies[] = {
	{ { { 0, 1 }, 0, 0 }, "", -EPROTO, "another batch" },
	{ { { UINT64_MAX, 0 }, 0, 0 }, "", -EPROTO, "another batch" },
	{ { { 0, 0 }, 0, 0 }, "", -EPROTO, "not a batch file" },
	{ { { 0, 0 }, 0, 7 }, "BETONBA", -EPROTO, "not a batch file" },
	{ { { 0, 0 }, 0, UINT64_MAX }, "x", -EPROTO, "too large" },
	{ { { 0, 0 }, 0, (uint64_t)1 << 60 }, "x", -EPROTO, "too large" },
	{ { { 0, 0 }, -EIO, 12 },
	  "\x1b[31m\r\nred%s",
	  -EREMOTEIO,
	  "?[31m??red%s" },
	{ { { 0, 0 }, INT64_MIN, 0 }, "", -EREMOTEIO, "refused" },
	{ { { 0, 0 }, 1, UINT64_MAX }, "x", -EPROTO, "too long" },
};

struct liar {
	int fd;
	const struct lie *lie;
};

static void *run_liar(void *arg)
{
	struct liar *l = arg;

	lie_to(l->fd, l->lie);
	close(l->fd);
	return NULL;
}

/* A link that waits for a turn does not notice the end of its maker, and one
   that begins late gets no turn from a full ring. */
static void take_until_end(struct linked_team *t, struct linked_maker *m)
{
	struct linked_records got;

	while (pthread_tryjoin_np(m->attaching, NULL)) {
		got.n = 0;
		linked_take(t->trainer, &got);
	}
}

static void liars_are_left(void)
{
	for (size_t i = 0; i < 2 * ARRAY_LEN(lies); i++) {
		struct liar liar = { .lie = &lies[i / 2] };
		struct linked_maker m = { .attached = 1 };
		struct linked_team t;
		pthread_t thread;
		int ends[2];

		linked_open_trainer(&t, path, &options, i % 2);
		CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
		liar.fd = ends[0];
		m.of = t.trainer;
		m.trainer = ends[1];
		linked_start(run_liar, &liar, &thread);
		linked_start(linked_run_attach, &m, &m.attaching);
		drain_and_compare(&t, "a liar");
		take_until_end(&t, &m);
		pthread_join(thread, NULL);
		if (m.attached != liar.lie->attached ||
		    !strstr(m.attach_why, liar.lie->why))
			fprintf(stderr, "lie %zu: %d %s\n", i / 2, m.attached,
				m.attach_why);
		CHECK(m.attached == liar.lie->attached);
		CHECK(strstr(m.attach_why, liar.lie->why));
		linked_close(&t);
	}
}

/* Each byte of the hello counts, but for those after a text. */
static void greetings_are_compared(void)
{
	struct linked_team t;
	unsigned accepted = 0;

	linked_open_trainer(&t, path, &options, true);
	for (size_t at = 0; at < HELLO; at++) {
		struct linked_maker m = { .of = t.trainer, .attached = 1 };
		struct wire_hello hello;
		int ends[2];

		CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
		m.trainer = ends[0];
		linked_start(linked_run_attach, &m, &m.attaching);
		CHECK(!wire_receive(ends[1], &hello, sizeof(hello)));
		((uint8_t *)&hello)[at] ^= 1 + (at % 4) * 60;
		CHECK(!wire_send(ends[1], &hello, at % 9 ? HELLO : at));
		shutdown(ends[1], SHUT_WR);
		take_until_end(&t, &m);
		close(ends[1]);
		CHECK(m.attached == -EPROTO || m.attached == -ECONNRESET ||
		      m.attached == -ENODATA);
		CHECK(*m.attach_why);
		accepted += m.attached == -ECONNRESET && at % 9;
	}
	CHECK(accepted > HELLO / 4 && accepted < HELLO - 100);
	CHECK(!beton_loader_seek(t.trainer, 0));
	drain_and_compare(&t, "after greetings");
	linked_close(&t);
}

/* --- trainers that lie --- */

static void names_are_checked(void)
{
	static const struct wire_name names[] = {
		{ 0, 8 },
		{ 0, UINT64_MAX },
		{ UINT64_MAX, 0 },
		{ (uint64_t)1 << 63, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct linked_maker m;
		struct wire_hello hello;
		int fd;

		serve(&m, path, &fd);
		CHECK(!wire_receive(fd, &hello, sizeof(hello)));
		CHECK(!wire_send(fd, &hello, sizeof(hello)));
		CHECK(!wire_send(fd, &names[i], sizeof(*names)));
		pthread_join(m.serving, NULL);
		CHECK(m.served == -EPROTO);
		CHECK(strstr(m.serve_why, "does not exist"));
		close(fd);
	}
}

/* Any number of names, also of one batch, and a part of one; it reads some of the
   answers. */
static void trainers_may_leave(void)
{
	struct rng rng = { .key = 4 };

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint8_t bytes[5000];
		struct linked_maker m;
		struct wire_hello hello;
		int fd;

		serve(&m, path, &fd);
		CHECK(!wire_receive(fd, &hello, sizeof(hello)));
		CHECK(!wire_send(fd, &hello,
				 i % 5 ? sizeof(hello)
				       : rng_next(&rng) % sizeof(hello)));
		for (unsigned k = 0; i % 5 && k < i * 5; k++) {
			struct wire_name name = { rng_next(&rng) % 2,
						  rng_next(&rng) % 8 };

			CHECK(!wire_send(fd, &name,
					 k + 1 < i * 5 ? sizeof(name)
						       : i % 17));
		}
		for (unsigned k = 0; i % 5 > 1 && k < 2 * i; k++)
			CHECK(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) <
			      5001);
		if (i % 3)
			linked_sleep(i % 7);
		close(fd);
		pthread_join(m.serving, NULL);
		CHECK(m.served == (i % 5 ? 0 : m.served));
	}
}

/* --- bytes of other batches --- */

static uint8_t *answer_of(int fd, uint64_t epoch, uint64_t number,
			  uint64_t *size)
{
	const struct wire_name name = { epoch, number };
	struct wire_answer a;
	uint8_t *bytes;

	CHECK(!wire_send(fd, &name, sizeof(name)));
	CHECK(!wire_receive(fd, &a, sizeof(a)));
	CHECK(!a.error);
	bytes = malloc(a.size + 1);
	CHECK(bytes && !wire_receive(fd, bytes, a.size));
	*size = a.size;
	return bytes;
}

/* An answer depends on its name alone: it has no bytes of memory that was used
   before. */
static void answers_have_no_other_bytes(void)
{
	struct wire_hello hello;
	struct linked_maker used;
	int fd;

	serve(&used, damaged, &fd);
	CHECK(!wire_receive(fd, &hello, sizeof(hello)));
	CHECK(!wire_send(fd, &hello, sizeof(hello)));
	for (uint64_t i = 0; i < 16; i++) {
		struct linked_maker fresh;
		uint64_t sizes[2];
		uint8_t *bytes[2];
		int other;

		serve(&fresh, damaged, &other);
		CHECK(!wire_receive(other, &hello, sizeof(hello)));
		CHECK(!wire_send(other, &hello, sizeof(hello)));
		bytes[0] = answer_of(other, i / 8, i % 8, &sizes[0]);
		bytes[1] = answer_of(fd, i / 8, i % 8, &sizes[1]);
		CHECK(sizes[0] == sizes[1]);
		CHECK(!memcmp(bytes[0], bytes[1], sizes[0]));
		free(bytes[0]);
		free(bytes[1]);
		close(other);
		pthread_join(fresh.serving, NULL);
	}
	close(fd);
	pthread_join(used.serving, NULL);
}

/* --- values that share bytes --- */

/* Lets all values of the variable columns be the whole file. */
static void share_bytes(uint8_t *bytes, uint64_t size)
{
	const struct beton_batch_header *h = (const void *)bytes;
	const struct beton_batch_field *f =
		(const void *)(bytes + h->fields_off);

	for (uint32_t i = 0; i < h->num_fields; i++) {
		struct beton_batch_value *v = (void *)(bytes + f[i].column_off);

		if (f[i].column != BETON_COLUMN_VARIABLE)
			continue;
		for (uint32_t row = 0; row < h->num_samples; row++)
			v[row] = (struct beton_batch_value){ .size = size };
	}
}

static void *run_sharer(void *arg)
{
	const int *ends = arg; /* of the trainer, of a maker */
	struct wire_answer a = { .error = 0 };
	struct wire_hello hello;

	CHECK(!wire_receive(ends[0], &hello, sizeof(hello)));
	CHECK(!wire_send(ends[0], &hello, sizeof(hello)));
	CHECK(!wire_receive(ends[1], &hello, sizeof(hello)));
	CHECK(!wire_send(ends[1], &hello, sizeof(hello)));
	while (!wire_receive(ends[0], &a.name, sizeof(a.name))) {
		uint8_t *bytes = answer_of(ends[1], a.name.epoch, a.name.number,
					   &a.size);
		int r;

		share_bytes(bytes, a.size);
		r = wire_send(ends[0], &a, sizeof(a));
		if (!r)
			r = wire_send(ends[0], bytes, a.size);
		free(bytes);
		if (r)
			break;
	}
	close(ends[0]);
	close(ends[1]);
	return NULL;
}

/* Each sample would need as much memory as the answer. */
static void values_share_no_bytes(void)
{
	struct linked_maker m = { .attached = 1 }, of;
	struct linked_team t;
	pthread_t thread;
	int ends[2], inner[2];

	linked_open_trainer(&t, path, &options, true);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	m.of = t.trainer;
	m.trainer = ends[1];
	inner[0] = ends[0];
	serve(&of, path, &inner[1]);
	linked_start(run_sharer, inner, &thread);
	linked_start(linked_run_attach, &m, &m.attaching);
	drain_and_compare(&t, "values that share bytes");
	take_until_end(&t, &m);
	pthread_join(thread, NULL);
	pthread_join(of.serving, NULL);
	CHECK(m.attached == -EPROTO);
	CHECK(strstr(m.attach_why, "not those of the pipeline"));
	linked_close(&t);
}

/* --- damaged samples --- */

static uint64_t take_invalid(struct beton_loader *l)
{
	const struct beton_batch *b;
	uint64_t n = 0;

	CHECK(!beton_loader_next(l, &b));
	for (uint32_t i = 0; i < b->num_samples; i++)
		n += !b->valid[i];
	beton_loader_release(l, b);
	return n;
}

/* Prefetched batches are made again after a seek. */
static void failed_samples_count_once(void)
{
	struct beton_loader_options o = options;
	struct beton_loader *l;
	uint64_t invalid = 0;

	o.on_error = BETON_ON_ERROR_SKIP;
	l = linked_open(damaged, &o);
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k <= i; k++)
			invalid += take_invalid(l);
		linked_sleep(100);
		CHECK(beton_loader_failed_samples(l) == invalid);
		CHECK(!beton_loader_seek(l, 0));
	}
	for (unsigned k = 0; k < 8; k++)
		invalid += take_invalid(l);
	CHECK(invalid >= 3 && beton_loader_failed_samples(l) == invalid);
	beton_loader_close(l);
}

/* Damaged samples are no losses. */

static void all_samples_may_be_damaged(void)
{
	struct beton_loader_options o = options;
	struct linked_records alone, got = { .n = 0 };
	struct linked_team t;

	o.pipeline = "image | drop; label | one_hot(1); text | drop; "
		     "blob | drop";
	o.spec = "order=random,batch=2,subset=5-7";
	o.on_error = BETON_ON_ERROR_SKIP;
	linked_alone(path, &o, EPOCHS, &alone);
	CHECK(alone.n == EPOCHS && !alone.r[2].error && alone.failed >= 4);
	linked_open_trainer(&t, path, &o, true);
	linked_add(&t, path, &o, NULL);
	linked_await(&t, 1);
	for (unsigned i = 0; i < 40; i++) {
		got.n = 0;
		linked_drain(t.trainer, 1, &got);
		CHECK(got.n == 1 && !got.r[0].error);
	}
	CHECK(linked_stats(t.trainer).batches > 20);
	linked_close(&t);
}

int main(void)
{
	alarm(LINKED_DEADLINE_S);
	setenv("BETON_JIT", "off", 1);
	linked_write(path, false);
	linked_write(damaged, true);
	linked_alone(path, &options, EPOCHS, &wanted);
	makers_end_at_any_moment();
	makers_stall();
	a_maker_stalls_before_the_first_answer();
	a_maker_pauses_and_stalls_later();
	seeks_leave_stalled_makers(false);
	seeks_leave_stalled_makers(true);
	waits_see_stalled_makers(0);
	waits_see_stalled_makers(1);
	stalled_makers_end();
	a_trainer_ends_at_any_moment();
	a_maker_is_stopped();
	liars_are_left();
	greetings_are_compared();
	names_are_checked();
	trainers_may_leave();
	answers_have_no_other_bytes();
	values_share_no_bytes();
	failed_samples_count_once();
	all_samples_may_be_damaged();
	CHECK(!unlink(path) && !unlink(damaged));
	return 0;
}
