/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/value.h"
#include "fs/data/dataset/verify.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>

#include "fs/base/util/rng.h"
#include "fs/data/dataset/joined.h"
#include "fs/data/dataset/sums.h"
#include "tests/unit/heard.h"
#include "tests/unit/made.h"

enum { SAMPLES = 9000, ALIGN = SOURCE_ALIGN };

static char dir[] = "/tmp/beton_unit.XXXXXX";
static char path[64];

static struct heard heard = HEARD_NOTHING;
static struct log hearing;

static void make_sums(const char *name)
{
	struct sums *s;

	CHECK(!sums_of_file(name, 0, NULL, NULL, NULL, &s));
	CHECK(!sums_save(s, name, NULL));
	sums_free(s);
}

static void flip(const char *name, uint64_t off)
{
	int fd = open(name, O_RDWR);
	uint8_t byte;

	CHECK(fd >= 0 && pread(fd, &byte, 1, (off_t)off) == 1);
	byte ^= 4;
	CHECK(pwrite(fd, &byte, 1, (off_t)off) == 1 && !close(fd));
}

static struct dataset *open_verified(uint64_t memory)
{
	struct dataset *ds;

	CHECK(!dataset_open(path, NULL, &hearing, &ds));
	CHECK(!verify_dataset(ds, NULL));
	if (memory)
		CHECK(verify_set_memory(ds, memory) <=
		      max_u64(memory, 1 << 20));
	heard.lines = 0;
	return ds;
}

static uint8_t *contents(const char *name, size_t *size)
{
	struct stat st;
	FILE *f = fopen(name, "r");
	uint8_t *bytes;

	CHECK(f && !stat(name, &st));
	*size = (size_t)st.st_size;
	bytes = malloc(*size);
	CHECK(bytes && fread(bytes, 1, *size, f) == *size && !fclose(f));
	return bytes;
}

/* --- requests of every kind --- */

struct asked {
	struct source_request request;
	struct source_wait *wait;
	struct iovec iov[40];
	uint8_t *bytes;
	int result;
};

static void asked_done(struct source_request *q, int result)
{
	struct asked *a = q->arg;

	a->result = result;
	source_wait_done(a->wait);
}

/* Scattered memory, in pieces of a page if the read is direct. */
static void ask(struct source *source, struct asked *a,
		struct source_wait *wait, uint64_t off, size_t size,
		size_t need, bool direct)
{
	size_t piece = align_up(size / 30 + 1, ALIGN), at = 0;

	*a = (struct asked){ .wait = wait };
	a->bytes = aligned_alloc(ALIGN, align_up(size, ALIGN) + ALIGN);
	CHECK(a->bytes);
	for (; at < size; at += piece)
		a->iov[a->request.iovcnt++] =
			(struct iovec){ a->bytes + at,
					min_u64(piece, size - at) };
	a->request.iov = a->iov;
	a->request.off = off;
	a->request.size = size;
	a->request.need = need;
	a->request.direct = direct;
	a->request.done = asked_done;
	a->request.arg = a;
	source_wait_add(wait);
	source_submit(source, &a->request);
}

static int ask_and_wait(struct source *source, uint64_t off, size_t size,
			size_t need, bool direct, const uint8_t *all)
{
	struct source_wait wait;
	struct asked a;

	source_wait_init(&wait);
	ask(source, &a, &wait, off, size, need, direct);
	source_wait_idle(&wait);
	source_wait_fini(&wait);
	CHECK(a.result || !memcmp(a.bytes, all + off, need ? need : size));
	free(a.bytes);
	return a.result;
}

static void read_at_random(struct source *source, const uint8_t *all,
			   size_t size, struct rng *rng)
{
	uint64_t off = rng_next(rng) % size;
	size_t n = 1 + rng_next(rng) % (rng_next(rng) % 8 ? 100000 : 3 << 20);
	bool direct = rng_next(rng) % 2;
	uint8_t *bytes;

	n = min_u64(n, size - off);
	if (rng_next(rng) % 4 == 0) {
		bytes = malloc(n);
		CHECK(bytes && !source_read(source, bytes, n, off));
		CHECK(!memcmp(bytes, all + off, n));
		free(bytes);
		return;
	}
	if (direct) {
		n = align_up(n, ALIGN);
		off = off / ALIGN * ALIGN;
	}
	CHECK(!ask_and_wait(source, off, n, min_u64(n, size - off), direct,
			    all));
}

static void right_bytes_are_read(uint64_t memory)
{
	struct dataset *ds = open_verified(memory);
	struct rng rng = { .key = 3 + memory };
	struct verify_stats stats;
	size_t size;
	uint8_t *all = contents(path, &size), byte;

	for (unsigned i = 0; i < 300; i++)
		read_at_random(ds->source, all, size, &rng);
	CHECK(verify_stats(ds, &stats) && stats.bytes >= size);
	CHECK(!stats.bad_blocks && !heard.lines);
	CHECK(source_read(ds->source, &byte, 1, size) == -EIO);
	CHECK(ask_and_wait(ds->source, size - size % ALIGN, 2 * ALIGN,
			   2 * ALIGN, true, all) == -EIO);
	free(all);
	dataset_close(ds);
}

/* --- damage --- */

static void a_damaged_block_fails_alone(bool direct)
{
	struct dataset *ds = open_verified(8 << 20);
	struct verify_stats stats;
	uint64_t bad = 37, block;
	size_t size, n = 8 * ALIGN;
	uint8_t *all = contents(path, &size);
	char place[64];

	flip(path, bad * SUMS_BLOCK + 77);
	for (unsigned round = 0; round < 3; round++) {
		for (uint64_t off = 0; off + n <= size; off += 12 * ALIGN) {
			block = off / SUMS_BLOCK;
			CHECK(!ask_and_wait(ds->source, off, n, 0, direct,
					    all) ==
			      (block != bad &&
			       (off + n - 1) / SUMS_BLOCK != bad));
		}
	}
	CHECK(heard.lines == 1 && strstr(heard.last, "block 37 (bytes"));
	snprintf(place, sizeof(place), "bit 2 of byte %llu were flipped",
		 (unsigned long long)bad * SUMS_BLOCK + 77);
	CHECK(strstr(heard.last, place) && strstr(heard.last, path));
	verify_stats(ds, &stats);
	CHECK(stats.bad_blocks == 1);
	CHECK(ask_and_wait(ds->source, bad * SUMS_BLOCK - n, 2 * n, 0, direct,
			   all) == -BETON_ECORRUPT);

	flip(path, bad * SUMS_BLOCK + 77);
	CHECK(!ask_and_wait(ds->source, bad * SUMS_BLOCK, n, 0, direct, all));
	free(all);
	dataset_close(ds);
}

static void direct_reads_are_verified_each_time(void)
{
	struct dataset *ds = open_verified(0);
	uint64_t off = 50 * SUMS_BLOCK;
	size_t size;
	uint8_t *all = contents(path, &size);

	CHECK(!ask_and_wait(ds->source, off, ALIGN, 0, true, all));
	flip(path, off + SUMS_BLOCK - 1);
	CHECK(ask_and_wait(ds->source, off, ALIGN, 0, true, all) ==
	      -BETON_ECORRUPT);
	CHECK(heard.lines == 1 && strstr(heard.last, "block 50 "));
	CHECK(!ask_and_wait(ds->source, off + SUMS_BLOCK, ALIGN, 0, true, all));
	flip(path, off + SUMS_BLOCK - 1);
	CHECK(!ask_and_wait(ds->source, off, ALIGN, 0, true, all));
	CHECK(heard.lines == 1);
	free(all);
	dataset_close(ds);
}

static void samples_of_other_blocks_are_right(void)
{
	struct dataset *ds = open_verified(0);
	uint64_t bad = ds->format.first_page + (1 << 20), first, last;
	uint8_t want[MADE_VALUE_MAX], got[MADE_VALUE_MAX];
	unsigned failed = 0;
	struct value v;
	int r;

	flip(path, bad);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		CHECK(!dataset_value_at(ds, MADE_JPG, i, &v));
		CHECK(v.size == made_value(MADE_JPG, i, want));
		r = source_read(ds->source, got, v.size, v.off);
		first = v.off / SUMS_BLOCK;
		last = (v.off + v.size - 1) / SUMS_BLOCK;
		CHECK(r ==
		      (first == bad / SUMS_BLOCK || last == bad / SUMS_BLOCK
			       ? -BETON_ECORRUPT
			       : 0));
		CHECK(r || !memcmp(got, want, v.size));
		failed += !!r;
	}
	CHECK(failed > 30 && failed < SAMPLES / 10 && heard.lines == 1);
	flip(path, bad);
	dataset_close(ds);
}

/* --- many at once --- */

static void many_requests_share_few_buffers(uint64_t memory)
{
	enum { MANY = 200 };
	struct asked *asked = calloc(MANY, sizeof(*asked));
	struct dataset *ds = open_verified(memory);
	struct source_wait wait;
	struct rng rng = { .key = 8 };
	size_t size, n;
	uint8_t *all = contents(path, &size);
	uint64_t off;
	int fd = open(path, O_RDONLY);

	/* Not in the page cache, so that requests wait for the device. */
	CHECK(asked && fd >= 0 && !fdatasync(fd));
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	source_wait_init(&wait);
	for (size_t i = 0; i < MANY; i++) {
		off = rng_next(&rng) % (size - (2 << 20)) / ALIGN * ALIGN;
		n = i % 9 ? 20 * ALIGN : 1 << 20;
		ask(ds->source, &asked[i], &wait, off, n, 0, i % 3 == 0);
	}
	source_wait_idle(&wait);
	for (size_t i = 0; i < MANY; i++) {
		CHECK(!asked[i].result);
		CHECK(!memcmp(asked[i].bytes, all + asked[i].request.off,
			      asked[i].request.size));
		free(asked[i].bytes);
	}
	source_wait_fini(&wait);
	free(asked);
	free(all);
	dataset_close(ds);
}

struct reading {
	struct dataset *ds;
	const uint8_t *all;
	size_t size;
	uint64_t key;
};

static void *read_for_a_while(void *arg)
{
	const struct reading *r = arg;
	struct rng rng = { .key = r->key };

	for (unsigned i = 0; i < 60; i++)
		read_at_random(r->ds->source, r->all, r->size, &rng);
	return NULL;
}

static void threads_read_at_once(uint64_t memory)
{
	enum { THREADS = 6 };
	struct dataset *ds = open_verified(memory);
	struct reading reading[THREADS];
	pthread_t threads[THREADS];
	size_t size;
	uint8_t *all = contents(path, &size);

	for (unsigned i = 0; i < THREADS; i++) {
		reading[i] = (struct reading){ ds, all, size, i };
		CHECK(!pthread_create(&threads[i], NULL, read_for_a_while,
				      &reading[i]));
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(!heard.lines);
	free(all);
	dataset_close(ds);
}

/* A close ends the requests that wait; each is done once. */
static void requests_are_cancelled(void)
{
	enum { MANY = 60 };
	struct asked *asked = calloc(MANY, sizeof(*asked));
	struct source_wait wait;
	struct dataset *ds;

	CHECK(asked);
	for (unsigned round = 0; round < 20; round++) {
		ds = open_verified(1 << 20);
		source_wait_init(&wait);
		for (size_t i = 0; i < MANY; i++)
			ask(ds->source, &asked[i], &wait,
			    i * 7 % 60 * SUMS_BLOCK, 4 * ALIGN, 0, i % 2);
		for (size_t i = round; i < MANY; i += 3)
			source_cancel(ds->source, &asked[i].request);
		if (round % 2)
			source_wait_idle(&wait);
		dataset_close(ds);
		source_wait_idle(&wait);
		source_wait_fini(&wait);
		for (size_t i = 0; i < MANY; i++) {
			CHECK(!asked[i].result ||
			      asked[i].result == -ECANCELED);
			free(asked[i].bytes);
		}
	}
	free(asked);
}

/* --- several files --- */

static void joined_files_are_verified(void)
{
	char names[3][80], pattern[300];
	uint8_t want[MADE_VALUE_MAX], got[MADE_VALUE_MAX];
	struct verify_stats stats;
	struct dataset *ds;
	struct value v;
	uint64_t bad;
	unsigned failed = 0;
	int r;

	for (unsigned i = 0; i < 3; i++) {
		snprintf(names[i], sizeof(names[i]), "%s/part-%u.beton", dir,
			 i);
		made_write(names[i], 3000);
		make_sums(names[i]);
	}
	snprintf(pattern, sizeof(pattern), "%s/part-*.beton", dir);
	CHECK(!joined_open(pattern, NULL, &hearing, &ds));
	CHECK(ds->num_parts == 3 && !verify_dataset(ds, NULL));
	heard.lines = 0;
	bad = ds->parts[1].ds->format.first_page + 5000;
	flip(names[1], bad);
	for (uint64_t i = 0; i < 9000; i += 3) {
		if (dataset_value_at(ds, MADE_JPG, i, &v)) {
			failed++;
			continue;
		}
		made_value(MADE_JPG, i % 3000, want);
		r = source_read(ds->source, got, v.size, v.off);
		CHECK(!r || (r == -BETON_ECORRUPT && i / 3000 == 1));
		CHECK(r || !memcmp(got, want, v.size));
		failed += !!r;
	}
	CHECK(failed > 10 && failed <= 300);
	CHECK(strstr(heard.last, "part-1") && heard.lines == 1);
	CHECK(verify_stats(ds, &stats) && stats.bad_blocks == 1);
	/* The last page of a part: zeros follow it. */
	v.off = ds->parts[1].base - ALIGN;
	CHECK(!source_read(ds->source, got, ALIGN, v.off));
	dataset_close(ds);

	CHECK(!joined_open(pattern, NULL, &hearing, &ds));
	snprintf(pattern, sizeof(pattern), "%s.sums", names[2]);
	CHECK(!unlink(pattern));
	CHECK(verify_dataset(ds, NULL) == -ENOENT);
	CHECK(strstr(heard.last, "fsck.beton --sums"));
	dataset_close(ds);
	for (unsigned i = 0; i < 3; i++) {
		snprintf(pattern, sizeof(pattern), "%s.sums", names[i]);
		unlink(names[i]);
		unlink(pattern);
	}
}

/* --- opening --- */

static int reopen(struct dataset **ds)
{
	heard.lines = 0;
	CHECK(!dataset_open(path, NULL, &hearing, ds));
	return verify_dataset(*ds, NULL);
}

static void damaged_headers_are_refused(void)
{
	struct dataset *ds;
	uint8_t record[128];
	uint64_t at;

	/* The name of a field. */
	flip(path, FORMAT_HEADER_SIZE + 1);
	CHECK(reopen(&ds) == -BETON_ECORRUPT);
	CHECK(heard.lines == 1 && strstr(heard.last, "damaged in its header"));
	dataset_close(ds);
	flip(path, FORMAT_HEADER_SIZE + 1);

	/* The table of a dataset whose header is right. */
	CHECK(!reopen(&ds) && !heard.lines);
	at = ds->format.file_size - 20;
	dataset_close(ds);
	flip(path, at);
	CHECK(!reopen(&ds));
	CHECK(heard.lines == 1 && strstr(heard.last, "its header is right"));
	CHECK(!dataset_records(ds, 0, 1, record));
	flip(path, at);
	dataset_close(ds);
}

static void damaged_names_are_dropped(void)
{
	static uint8_t large[1500000];
	char name[80], side[90];
	struct writer_value v[2] = {
		{ 0 }, { .bytes = large, .size = sizeof(large) }
	};
	const char *classes[500];
	const struct writer_field fields[] = {
		{ .name = "label",
		  .type = BETON_TYPE_INT,
		  .classes = classes,
		  .num_classes = 500 },
		{ .name = "bytes", .type = BETON_TYPE_BYTES },
	};
	struct writer *w;
	struct dataset *ds;
	uint64_t at;

	for (size_t i = 0; i < 500; i++)
		CHECK(asprintf((char **)&classes[i], "class %zu", i) > 0);
	snprintf(name, sizeof(name), "%s/names.beton", dir);
	snprintf(side, sizeof(side), "%s.sums", name);
	CHECK(!writer_open(name, fields, 2, 3, MADE_PAGE, NULL, &w));
	for (unsigned i = 0; i < 3; i++)
		CHECK(!writer_append(w, v));
	CHECK(!writer_finish(&w));
	make_sums(name);
	CHECK(!dataset_open(name, NULL, &hearing, &ds));
	CHECK(!verify_dataset(ds, NULL) &&
	      ds->format.fields[0].classes->num == 500);
	at = ds->format.fields[0].classes_at.off;
	CHECK(at > 2 << 20);
	dataset_close(ds);
	flip(name, at);
	heard.lines = 0;
	CHECK(!dataset_open(name, NULL, &hearing, &ds));
	CHECK(!verify_dataset(ds, NULL) && !ds->format.fields[0].classes);
	CHECK(heard.lines == 2 &&
	      strstr(heard.last, "ignoring its class names"));
	dataset_close(ds);
	unlink(name);
	unlink(side);
	for (size_t i = 0; i < 500; i++)
		free((char *)classes[i]);
}

static void unverified_datasets_count_nothing(void)
{
	struct verify_stats stats;
	struct dataset *ds;

	CHECK(!dataset_open(path, NULL, NULL, &ds));
	CHECK(!verify_stats(ds, &stats) && !stats.bytes);
	CHECK(!verify_set_memory(ds, 1 << 30));
	CHECK(source_reads(ds->source) == &ds->source->reads);
	dataset_close(ds);
}

int main(void)
{
	char side[80];

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x.beton", dir);
	snprintf(side, sizeof(side), "%s.sums", path);
	log_init(&hearing, hear, &heard);
	hearing.every = true;
	made_write(path, SAMPLES);
	make_sums(path);
	right_bytes_are_read(0);
	right_bytes_are_read(3 << 20);
	right_bytes_are_read(1 << 30);
	a_damaged_block_fails_alone(false);
	a_damaged_block_fails_alone(true);
	direct_reads_are_verified_each_time();
	samples_of_other_blocks_are_right();
	many_requests_share_few_buffers(0);
	many_requests_share_few_buffers(1 << 30);
	threads_read_at_once(0);
	threads_read_at_once(1 << 30);
	requests_are_cancelled();
	joined_files_are_verified();
	damaged_headers_are_refused();
	damaged_names_are_dropped();
	unverified_datasets_count_nothing();
	log_fini(&hearing);
	unlink(path);
	unlink(side);
	CHECK(!rmdir(dir));
	return 0;
}
