/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary names that readers ask for: each user has a share of the table, and
   numbers are never used again. Includes the file itself, whose allocations
   fail if the test demands it. */
#include <stdlib.h>

static int scarce = -1; /* allocations of tables until all fail */

static void *table_malloc(size_t size)
{
	if (!scarce)
		return NULL;
	scarce -= scarce > 0;
	return malloc(size);
}

#define uthash_malloc(size) table_malloc(size)
#include "fs/mount/namespace/streams.c"

#include <malloc.h>
#include <pthread.h>

#include "tests/unit/made.h"

enum { SAMPLES = 40, FLOOD = NS_NAMES_MAX + 3000, THREADS = 4, ROUNDS = 8000 };

struct fixture {
	struct dataset *ds;
	struct engine *engine;
	struct ns *ns;
	struct ns_object batches;
};

static void set_up(struct fixture *f, uint64_t samples)
{
	const struct engine_options engine = { .threads = 1 };
	struct ns_top top = {
		.name = "",
		.owner = { .file_mode = 0444, .dir_mode = 0555 },
		.options = "",
	};
	struct ns_object root = ns_object(NS_ROOT);
	struct ns_entry entry;

	f->ds = made_open(samples, NULL);
	top.dataset = f->ds;
	CHECK(!engine_open(&engine, &f->engine));
	CHECK(!ns_open(&(struct ns_options){ .tops = &top,
					     .num_tops = 1,
					     .engine = f->engine,
					     .default_spec = "batch=8" },
		       &f->ns));
	CHECK(!ns_lookup(f->ns, &root, "batches", 0, &entry));
	f->batches = entry.object;
}

static void tear_down(struct fixture *f)
{
	ns_close(f->ns);
	engine_close(f->engine);
	dataset_close(f->ds);
}

static struct ns_object lookup(struct fixture *f, struct ns_object dir,
			       const char *name, uid_t user)
{
	struct ns_entry entry;

	CHECK(!ns_lookup(f->ns, &dir, name, user, &entry));
	return entry.object;
}

/* A sampling spec of this seed, and below it an epoch and a batch. */
static struct ns_object batch_of(struct fixture *f, unsigned seed, uid_t user)
{
	char text[64];

	snprintf(text, sizeof(text), "order=random,batch=1,seed=%u,drop_last=1",
		 seed);
	return lookup(f,
		      lookup(f, lookup(f, f->batches, text, user), "7", user),
		      "000013.batch", user);
}

static bool is_stale(struct fixture *f, struct ns_object object)
{
	struct ns_entry entry;
	int r = ns_attr(f->ns, &object, &entry);

	CHECK(!r || r == -ESTALE);
	return r;
}

static void a_user_of_many_names_has_a_share(void)
{
	struct ns_object honest[100], other[2];
	struct fixture f;

	set_up(&f, SAMPLES);
	for (unsigned i = 0; i < ARRAY_LEN(honest); i++)
		honest[i] = batch_of(&f, i, 1000);
	other[0] = batch_of(&f, 1000, 2000);
	for (unsigned i = 0; i < FLOOD; i++)
		other[1] = batch_of(&f, 1000 + i, 2000);
	CHECK(is_stale(&f, other[0]) && !is_stale(&f, other[1]));
	for (unsigned i = 0; i < ARRAY_LEN(honest); i++) {
		struct ns_object again = batch_of(&f, i, 2000);

		CHECK(!is_stale(&f, honest[i]));
		CHECK(ns_ino(&again) == ns_ino(&honest[i]));
	}
	tear_down(&f);
}

static void users_of_one_name_each_are_bounded(void)
{
	struct ns_object first;
	struct fixture f;

	set_up(&f, SAMPLES);
	first = batch_of(&f, 0, 0);
	for (unsigned i = 0; i < FLOOD; i++)
		batch_of(&f, i + 1, i + 1);
	CHECK(is_stale(&f, first));
	tear_down(&f);
}

/* 16384 names of full length; the bound of streams.h. */
static void memory_is_bounded(void)
{
	char text[SPEC_TEXT_MAX];
	struct mallinfo2 before;
	struct fixture f;

	set_up(&f, SAMPLES);
	before = mallinfo2();
	for (unsigned i = 0; i < FLOOD; i++) {
		snprintf(text, sizeof(text),
			 "order=quasi_random,batch=1,seed=%llu,drop_last=0,"
			 "block=1,window=1048576,subset=0-%u",
			 ~0ull - i, SAMPLES - 1);
		lookup(&f, lookup(&f, f.batches, text, 5), "7", 5);
	}
	/* Sanitizers have allocators of their own. */
	CHECK(mallinfo2().uordblks - before.uordblks < 1000ull * NS_NAMES_MAX);
	tear_down(&f);
}

static void an_open_file_keeps_its_name(void)
{
	struct ns_object object;
	struct ns_file file;
	struct fixture f;

	set_up(&f, SAMPLES);
	object = batch_of(&f, 0, 7);
	CHECK(!ns_open_file(f.ns, &object, &file));
	for (unsigned i = 1; i < FLOOD; i++)
		batch_of(&f, i, 7);
	CHECK(!is_stale(&f, object));
	ns_note_file(&file);
	CHECK(stream_ready(file.stream, (struct batch *)file.vfile) == false);
	ns_close_file(&file);
	for (unsigned i = 1; i < FLOOD; i++)
		batch_of(&f, i, 7);
	CHECK(is_stale(&f, object));
	tear_down(&f);
}

static void without_memory_names_are_refused(void)
{
	enum { MANY = 300 };
	unsigned refused = 0;
	struct ns_entry entry;
	struct fixture f;
	char text[64];
	int r;

	set_up(&f, SAMPLES);
	for (int n = 0; n < 8; n++) {
		scarce = n;
		for (unsigned i = 0; i < MANY; i++) {
			snprintf(text, sizeof(text), "batch=1,seed=%u",
				 i + 1000 * (unsigned)n);
			r = ns_lookup(f.ns, &f.batches, text, 100 + i / 10,
				      &entry);
			CHECK(!r || r == -ENOMEM);
			refused += r != 0;
		}
		scarce = -1;
		for (unsigned i = 0; i < MANY; i++)
			batch_of(&f, i + 1000 * (unsigned)n, 100 + i / 10);
	}
	CHECK(refused);
	tear_down(&f);
}

struct counted {
	struct fixture *f;
	struct ns_object dir;
	uint64_t n;
};

static bool check_name(void *arg, const struct ns_name *name)
{
	struct counted *c = arg;
	struct ns_object found = lookup(c->f, c->dir, name->name, 3);

	CHECK(ns_ino(&found) == ns_ino(&name->entry.object));
	c->n++;
	return true;
}

/* Over the border of pieces, from any place. */
static void listings_and_lookups_agree(void)
{
	enum { MANY = 2 * NS_PIECE + 5 };
	struct counted c = { .n = 0 };
	char name[NS_NAME_MAX + 1], last[32];
	struct ns_object parent;
	struct fixture f;

	set_up(&f, MANY);
	c.f = &f;
	c.dir = lookup(&f,
		       lookup(&f, f.batches,
			      "order=random,batch=1,seed=0,drop_last=1", 3),
		       "0", 3);
	for (uint64_t first = 0; first <= MANY; first += NS_PIECE - 1) {
		c.n = 0;
		CHECK(!ns_list(f.ns, &c.dir,
			       &(struct ns_listing){ .first = first,
						     .user = 3,
						     .emit = check_name,
						     .arg = &c }));
		CHECK(c.n == MANY - first);
	}
	snprintf(last, sizeof(last), "%06d.batch", MANY - 1);
	parent = lookup(&f, c.dir, last, 3);
	CHECK(!ns_batch_name(f.ns, &parent, name) && !strcmp(name, last));
	parent = ns_parent(f.ns, &parent);
	CHECK(ns_ino(&parent) == ns_ino(&c.dir));
	tear_down(&f);
}

/* Others may push a name out between two lookups of a path, as between two
   requests of the kernel. */
static void *name_and_open(void *arg)
{
	static const char *const path[] = { NULL, "7", "000013.batch" };
	struct fixture *f = arg;
	struct ns_entry entry;
	struct ns_file file;
	char text[64];
	int r;

	for (unsigned i = 0; i < ROUNDS; i++) {
		entry.object = f->batches;
		snprintf(text, sizeof(text), "batch=1,seed=%u", i);
		for (size_t k = r = 0; k < ARRAY_LEN(path) && !r; k++) {
			struct ns_object dir = entry.object;

			r = ns_lookup(f->ns, &dir, path[k] ? path[k] : text,
				      (uid_t)(i % 3), &entry);
			entry.object.kind += entry.object.kind == NS_SPEC_LINK
						     ? NS_SPEC - NS_SPEC_LINK
						     : 0;
		}
		if (!r)
			r = ns_open_file(f->ns, &entry.object, &file);
		CHECK(!r || r == -ESTALE);
		if (!r)
			ns_close_file(&file);
	}
	return NULL;
}

static void threads_share_names(void)
{
	pthread_t threads[THREADS];
	struct fixture f;

	set_up(&f, SAMPLES);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, name_and_open, &f));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	tear_down(&f);
}

int main(void)
{
	a_user_of_many_names_has_a_share();
	users_of_one_name_each_are_bounded();
	memory_is_bounded();
	an_open_file_keeps_its_name();
	without_memory_names_are_refused();
	listings_and_lookups_agree();
	threads_share_names();
	return 0;
}
