/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "fs/data/cache/arena.h"
#include "fs/data/cache/cold.h"
#include "tests/unit/t.h"

enum { MIB = 1 << 20, KIB = 1 << 10 };

/* Text of few words, which depends on the key, or noise. */
static void fill(uint8_t *bytes, size_t size, uint64_t key, bool noise)
{
	struct rng rng = { .key = key };
	uint64_t word;

	for (size_t i = 0; i < size; i += 8) {
		word = rng_next(&rng);
		if (!noise)
			word = word % 13 * 0x0101010101010101 + key;
		memcpy(bytes + i, &word, size - i < 8 ? size - i : 8);
	}
}

static bool put(struct cold *c, uint64_t key, size_t size, bool noise,
		uint64_t next_use)
{
	uint8_t *bytes = malloc(size + 1);
	const struct iovec in = { bytes, size };
	bool kept;

	CHECK(bytes);
	fill(bytes, size, key, noise);
	kept = cold_put(c, key, &in, 1, next_use);
	free(bytes);
	return kept;
}

/* The result of cold_take(), whose bytes are as put() made them. */
static int take(struct cold *c, uint64_t key, size_t size)
{
	uint8_t *want = malloc(size + 1), *got = malloc(size + 1);
	const struct iovec out = { got, size };
	int r;

	CHECK(want && got);
	fill(want, size, key, false);
	r = cold_take(c, key, &out, 1);
	CHECK(r || !memcmp(want, got, size));
	free(want);
	free(got);
	return r;
}

static struct cold_stats stats_of(struct cold *c)
{
	struct cold_stats stats;

	cold_stats(c, &stats);
	return stats;
}

static void a_stored_chunk_returns_once(void)
{
	static const size_t sizes[] = { 8 * KIB,  8 * KIB + 1,	64 * KIB - 1,
					64 * KIB, 64 * KIB + 1, 1000003 };
	struct cold *c;

	CHECK(!cold_open(8 * MIB, &c));
	for (uint64_t i = 0; i < ARRAY_LEN(sizes); i++)
		CHECK(put(c, i, sizes[i], false, 5));
	CHECK(stats_of(c).items == ARRAY_LEN(sizes));
	CHECK(stats_of(c).out_bytes < stats_of(c).in_bytes * 3 / 4);
	for (uint64_t i = 0; i < ARRAY_LEN(sizes); i++) {
		CHECK(!take(c, i, sizes[i]));
		CHECK(take(c, i, sizes[i]) == -ENOENT);
	}
	CHECK(stats_of(c).hits == ARRAY_LEN(sizes));
	CHECK(!stats_of(c).items && !stats_of(c).used);
	cold_close(c);
	cold_close(NULL);
}

static void a_key_has_its_last_bytes(void)
{
	struct cold *c;

	CHECK(!cold_open(MIB, &c));
	CHECK(put(c, 1, 64 * KIB, false, 0));
	CHECK(put(c, 1, 32 * KIB, false, 0));
	CHECK(stats_of(c).items == 1);
	CHECK(take(c, 1, 64 * KIB) == -EINVAL);
	CHECK(!take(c, 1, 32 * KIB));
	/* An item that does not shrink also replaces its predecessor: the old
	   one is dropped, and no new one is stored. */
	CHECK(put(c, 1, 32 * KIB, false, 0));
	CHECK(!put(c, 1, 32 * KIB, true, 0));
	CHECK(take(c, 1, 32 * KIB) == -ENOENT);
	CHECK(put(c, 1, 32 * KIB, false, 0));
	cold_drop(c, 1);
	cold_drop(c, 2);
	CHECK(take(c, 1, 32 * KIB) == -ENOENT);
	cold_close(c);
}

/* Cuts size bytes into iovecs of all kinds of lengths. */
static unsigned cut(uint8_t *bytes, size_t size, uint64_t key,
		    struct iovec *iov, unsigned most)
{
	struct rng rng = { .key = key };
	unsigned n = 0;
	size_t len;

	for (; size && n < most - 1; n++, bytes += len, size -= len) {
		len = rng_next(&rng) % 4 ? rng_next(&rng) % 9000 : 0;
		len = min_u64(len, size);
		iov[n] = (struct iovec){ bytes, len };
	}
	iov[n] = (struct iovec){ bytes, size };
	return n + 1;
}

static void pieces_of_any_length_will_do(void)
{
	enum { SIZE = 300001, PIECES = 100 };
	uint8_t *a = malloc(SIZE), *b = malloc(SIZE);
	struct iovec iov[PIECES];
	struct cold *c;
	unsigned n;

	CHECK(a && b && !cold_open(MIB, &c));
	for (uint64_t key = 0; key < 50; key++) {
		fill(a, SIZE, key, false);
		/* A segment of noise among others is kept as it is. */
		fill(a + 65536, 65536, key, key % 2);
		n = cut(a, SIZE, key, iov, PIECES);
		CHECK(cold_put(c, key, iov, n, 0));
		memset(b, 0, SIZE);
		n = cut(b, SIZE, key + 1000, iov, PIECES);
		CHECK(!cold_take(c, key, iov, n));
		CHECK(!memcmp(a, b, SIZE));
	}
	free(a);
	free(b);
	cold_close(c);
}

static void incompressible_chunks_are_dropped(void)
{
	struct cold *c;

	CHECK(!cold_open(MIB, &c));
	CHECK(!put(c, 1, 100 * KIB, true, 0));
	CHECK(!put(c, 2, 0, false, 0));
	/* One frame stays one frame. */
	CHECK(!put(c, 3, 4096, false, 0));
	CHECK(put(c, 4, 4097, false, 0));
	CHECK(stats_of(c).dropped_incompressible == 3);
	CHECK(stats_of(c).puts == 4 && stats_of(c).items == 1);
	cold_close(c);
}

/* After many that do not shrink most are not even tried; one that is and does
   shrink ends that. */
static void a_streak_is_noticed_and_ends(void)
{
	unsigned kept = 0, first = 0;
	struct cold *c;

	CHECK(!cold_open(8 * MIB, &c));
	for (uint64_t i = 0; i < 100; i++)
		CHECK(!put(c, i, 32 * KIB, true, 0));
	for (unsigned i = 0; i < 100; i++) {
		kept += put(c, i, 32 * KIB, false, 0);
		if (!kept)
			first = i + 1;
	}
	CHECK(first > 1 && first < 50);
	CHECK(kept == 100 - first);
	cold_close(c);
}

static void the_chunk_needed_last_is_evicted_first(void)
{
	enum { N = 400, SIZE = 64 * KIB };
	unsigned kept = 0;
	uint64_t use, last_kept = 0, first_gone = UINT64_MAX;
	struct cold *c;

	CHECK(!cold_open(MIB, &c));
	/* 7 is no divisor of N: all uses, in another order. */
	for (uint64_t i = 0; i < N; i++) {
		put(c, i, SIZE, false, i * 7 % N);
		CHECK(stats_of(c).used <= MIB);
	}
	CHECK(stats_of(c).dropped_full);
	CHECK(!put(c, N, SIZE, false, UINT64_MAX));
	for (uint64_t i = 0; i < N; i++) {
		use = i * 7 % N;
		if (!take(c, i, SIZE)) {
			kept++;
			last_kept = max_u64(last_kept, use);
		} else {
			first_gone = min_u64(first_gone, use);
		}
	}
	CHECK(kept > 20 && kept < N);
	CHECK(last_kept < first_gone);
	cold_close(c);
}

static void a_tiny_limit_keeps_nothing(void)
{
	struct cold *c;

	for (uint64_t limit = 0; limit <= 4096; limit += 2048) {
		CHECK(!cold_open(limit, &c));
		CHECK(!put(c, 1, 100 * KIB, false, 0));
		CHECK(!stats_of(c).used);
		cold_close(c);
	}
}

static void a_probe_separates_noise_from_text(void)
{
	uint8_t *bytes = malloc(200000);

	CHECK(bytes);
	fill(bytes, 200000, 1, true);
	CHECK(cold_probe(bytes, 200000) == 1);
	CHECK(cold_probe(bytes, 0) == 1 && cold_probe(bytes, 1) == 1);
	fill(bytes, 200000, 1, false);
	CHECK(cold_probe(bytes, 200000) < 0.6);
	fill(bytes, 100000, 1, true);
	CHECK(cold_probe(bytes, 200000) > 0.5);
	CHECK(cold_probe(bytes, 200000) < 0.8);
	free(bytes);
}

enum { THREADS = 4, KEYS = 64, STEPS = 1500 };

struct worker {
	pthread_t thread;
	struct cold *cold;
	uint64_t number;
};

static void *work(void *arg)
{
	const struct worker *w = arg;
	struct rng rng = { .key = w->number };
	uint64_t key;
	int r;

	for (unsigned i = 0; i < STEPS; i++) {
		key = rng_next(&rng) % KEYS;
		switch (rng_next(&rng) % 8) {
		case 0:
			cold_drop(w->cold, key);
			break;
		case 1:
		case 2:
		case 3:
			r = take(w->cold, key, 20 * KIB + key * 100);
			CHECK(!r || r == -ENOENT);
			break;
		default:
			put(w->cold, key, 20 * KIB + key * 100, false,
			    rng_next(&rng) % 100);
		}
	}
	return NULL;
}

static void threads_share_it(void)
{
	struct worker workers[THREADS];
	struct cold *c;

	CHECK(!cold_open(256 * KIB, &c));
	for (uint64_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .cold = c, .number = i };
		CHECK(!pthread_create(&workers[i].thread, NULL, work,
				      &workers[i]));
	}
	for (uint64_t i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	CHECK(stats_of(c).used <= 256 * KIB && stats_of(c).hits);
	for (uint64_t key = 0; key < KEYS; key++)
		cold_drop(c, key);
	CHECK(!stats_of(c).items && !stats_of(c).used);
	cold_close(c);
}

int main(void)
{
	a_stored_chunk_returns_once();
	a_key_has_its_last_bytes();
	pieces_of_any_length_will_do();
	incompressible_chunks_are_dropped();
	a_streak_is_noticed_and_ends();
	the_chunk_needed_last_is_evicted_first();
	a_tiny_limit_keeps_nothing();
	a_probe_separates_noise_from_text();
	threads_share_it();
	return 0;
}
