/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/source/object/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/clock.h"
#include "fs/base/util/rng.h"
#include "fs/source/tier/store.h"
#include "tests/unit/counted.h"
#include "tests/unit/heard.h"

enum { PAGE = TIER_PAGE, SIZE = (6 << 20) + 1234, READ = 110000 };

static char top[] = "/tmp/beton_disk.XXXXXX";
static char dir[64], path[64];
static uint8_t *all;
static struct rng rng = { .key = 3 };

static struct heard heard = HEARD_NOTHING;
static struct log hearing;

static uint64_t random_below(uint64_t n)
{
	return rng_next(&rng) % n;
}

static void pause_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* --- the directory --- */

static void remove_dir(const char *name)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", name);
	CHECK(!system(command));
}

/* Calls fn with each file whose name ends so. Returns their number. */
static unsigned each_file(const char *end, void (*fn)(const char *))
{
	DIR *entries = opendir(dir);
	struct dirent *e;
	unsigned n = 0;
	char name[512];

	while (entries && (e = readdir(entries))) {
		if (e->d_name[0] == '.' ||
		    strcmp(e->d_name + strlen(e->d_name) - strlen(end), end))
			continue;
		snprintf(name, sizeof(name), "%s/%s", dir, e->d_name);
		n++;
		if (fn)
			fn(name);
	}
	if (entries)
		closedir(entries);
	return n;
}

/* --- opening --- */

static uint64_t memory; /* of the tiers; 0: the default */

static int try_to_open(const char *url, const char *version, uint64_t limit,
		       struct counted **inner, struct source **out)
{
	struct source_options options = { .disk = dir,
					  .disk_size = limit,
					  .memory = memory };
	struct tier_identity identity = { url, version, SIZE };
	int r;

	*inner = counted_open(path, &hearing);
	r = disk_open(&(*inner)->base, &identity, &options, &hearing, out);
	if (r)
		source_close(&(*inner)->base);
	return r;
}

static struct source *open_tier(uint64_t limit, struct counted **inner)
{
	struct source *s;

	CHECK(!try_to_open("http://host/a.beton", "\"1\"", limit, inner, &s));
	heard.lines = 0;
	return s;
}

static struct disk_stats stats_of(const struct source *s)
{
	struct disk_stats stats;

	CHECK(disk_stats(s, &stats));
	return stats;
}

/* Waits until all that was read has been written. */
static void settle(const struct source *s)
{
	while (stats_of(s).waiting)
		pause_ms(1);
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

static void ask(struct source *source, struct asked *a,
		struct source_wait *wait, uint64_t off, size_t size,
		size_t need, bool direct)
{
	size_t piece = direct ? align_up(size / 30 + 1, PAGE) : size / 30 + 1;

	*a = (struct asked){ .wait = wait };
	a->bytes = aligned_alloc(PAGE, align_up(size, PAGE) + PAGE);
	CHECK(a->bytes);
	for (size_t at = 0; at < size; at += piece)
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
			size_t need, bool direct)
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

/* Reads bytes in one of three ways, and compares them. */
static void read_some(struct source *source, uint64_t off, size_t size,
		      unsigned way)
{
	uint64_t from = off / PAGE * PAGE;
	uint8_t *bytes;

	size = (size_t)min_u64(size, SIZE - off);
	if (way == 0) {
		bytes = malloc(size + 1);
		CHECK(bytes && !source_read(source, bytes, size, off));
		CHECK(!memcmp(bytes, all + off, size));
		free(bytes);
	} else if (way == 1) {
		CHECK(!ask_and_wait(source, off, size, 0, false));
	} else {
		CHECK(!ask_and_wait(
			source, from, align_up(off + size - from, PAGE),
			(size_t)min_u64(off + size - from, SIZE - from), true));
	}
}

/* Reads the whole object in pieces, in a random order. */
static void read_epoch(struct source *source, bool aligned)
{
	const uint64_t step = aligned ? align_up(READ, PAGE) : READ;
	struct permutation p =
		permutation_init((SIZE + step - 1) / step, random_below(1000));

	for (uint64_t i = 0; i < p.n; i++)
		read_some(source, permutation_at(&p, i) * step, step,
			  (unsigned)random_below(3));
}

/* --- tests --- */

static void one_epoch_fills_the_tier(void)
{
	struct counted *inner;
	struct source *s;
	uint64_t bytes;

	for (unsigned aligned = 0; aligned < 2; aligned++) {
		s = open_tier(0, &inner);
		CHECK(stats_of(s).is_writer && !*stats_of(s).why);
		read_epoch(s, aligned);
		settle(s);
		CHECK(stats_of(s).present == SIZE);
		/* Edges are read again if the writer has not yet come to
		   them. */
		bytes = stats_of(s).misses;
		CHECK(bytes >= SIZE && bytes < SIZE + SIZE / 20);
		read_epoch(s, aligned);
		CHECK(stats_of(s).misses == bytes);
		source_close(s);

		s = open_tier(0, &inner);
		read_epoch(s, aligned);
		CHECK(!atomic_load(&inner->bytes));
		CHECK(stats_of(s).hits >= SIZE && !stats_of(s).misses);
		CHECK(source_descriptor(s, 0, &bytes, &bytes) == -1);
		source_close(s);
		remove_dir(dir);
	}
	CHECK(!heard.lines);
}

static void an_idle_link_fills_the_tier(void)
{
	struct counted *inner;
	struct source *s = open_tier(0, &inner);

	read_some(s, 100, 100, 1);
	for (unsigned i = 0; i < 100 && stats_of(s).present < SIZE; i++)
		pause_ms(50);
	CHECK(stats_of(s).present == SIZE && stats_of(s).filled);
	CHECK(stats_of(s).filled <= SIZE - PAGE);
	source_close(s);
	remove_dir(dir);
}

static void readers_come_before_the_idle_link(void)
{
	struct counted *inner;
	struct source *s = open_tier(0, &inner);
	unsigned held = 0;

	read_some(s, 100, 100, 1);
	inner->holds = true;
	for (unsigned i = 0; i < 100 && !held; i++) {
		pause_ms(20);
		pthread_mutex_lock(&inner->lock);
		held = inner->num_held;
		pthread_mutex_unlock(&inner->lock);
	}
	CHECK(held == 1);
	pthread_mutex_lock(&inner->lock);
	inner->holds = false;
	pthread_mutex_unlock(&inner->lock);
	/* Its run is ended. */
	read_some(s, 5 << 20, 100, 1);
	for (unsigned i = 0; i < 100 && held; i++) {
		pause_ms(20);
		pthread_mutex_lock(&inner->lock);
		held = inner->num_held;
		pthread_mutex_unlock(&inner->lock);
	}
	CHECK(!held);
	source_close(s);
	remove_dir(dir);
}

static void reads_end_where_the_object_ends(void)
{
	struct counted *inner;
	struct source *s = open_tier(0, &inner);
	const uint64_t last = SIZE / PAGE * PAGE;
	char byte;

	for (unsigned i = 0; i < 2; i++) {
		CHECK(!ask_and_wait(s, last, PAGE, SIZE % PAGE, true));
		CHECK(!ask_and_wait(s, last, 3 * PAGE, 5, false));
		CHECK(ask_and_wait(s, last, PAGE, 0, true) == -EIO);
		CHECK(ask_and_wait(s, SIZE + 5, 1, 0, false) == -EIO);
		CHECK(source_read(s, &byte, 1, SIZE) == -EIO);
		CHECK(!source_read(s, &byte, 1, SIZE - 1));
		CHECK(!source_read(s, &byte, 0, SIZE));
		settle(s);
	}
	source_close(s);
	remove_dir(dir);
}

static void fill_tier(void)
{
	struct counted *inner;
	struct source *s = open_tier(0, &inner);

	read_epoch(s, false);
	settle(s);
	CHECK(stats_of(s).present == SIZE);
	source_close(s);
}

static void flip_bit(const char *name)
{
	int fd = open(name, O_RDWR);
	off_t off = (off_t)random_below((uint64_t)lseek(fd, 0, SEEK_END));
	uint8_t byte;

	CHECK(fd >= 0 && pread(fd, &byte, 1, off) == 1);
	byte ^= (uint8_t)(1 << random_below(8));
	CHECK(pwrite(fd, &byte, 1, off) == 1 && !close(fd));
}

static void wipe(const char *name)
{
	static const uint8_t zeros[PAGE];
	int fd = open(name, O_RDWR);

	CHECK(fd >= 0);
	for (uint64_t off = 0; off < SIZE; off += PAGE)
		CHECK(pwrite(fd, zeros, min_u64(PAGE, SIZE - off), (off_t)off) >
		      0);
	CHECK(!close(fd));
}

static void many_damaged_pages_have_few_lines(void)
{
	struct counted *inner;
	struct source *s;
	unsigned lines = 0;

	fill_tier();
	s = open_tier(0, &inner);
	each_file(".data", wipe);
	read_epoch(s, false);
	for (uint64_t n = stats_of(s).dropped; n; n /= 10)
		lines++;
	CHECK(stats_of(s).dropped >= 10 && heard.lines == lines);
	CHECK(strstr(heard.last, "0 damaged pages so far"));
	settle(s);
	source_close(s);
	remove_dir(dir);
}

static void flipped_bits_are_found(void)
{
	struct counted *inner;
	struct source *s;
	uint64_t bytes;

	fill_tier();
	for (unsigned i = 0; i < 10; i++) {
		s = open_tier(0, &inner);
		for (unsigned j = 0; j < 5; j++)
			each_file(".data", flip_bit);
		read_epoch(s, i % 2);
		CHECK(stats_of(s).dropped >= 1 && stats_of(s).dropped <= 5);
		CHECK(heard.lines == 1);
		CHECK(strstr(heard.last, "is damaged"));
		bytes = stats_of(s).misses;
		CHECK(bytes > 0 && bytes < 200 * PAGE);
		settle(s);
		read_epoch(s, i % 2);
		CHECK(stats_of(s).misses == bytes);
		source_close(s);
	}
	remove_dir(dir);
}

/* Whether all pages are in the tier, once the writer has counted them. A slow
   disk does not get all. */
static bool is_complete(const struct source *s)
{
	for (unsigned i = 0; i < 5000; i++) {
		if (stats_of(s).present == SIZE || stats_of(s).skipped ||
		    *stats_of(s).why)
			return true;
		pause_ms(1);
	}
	return false;
}

static void flip_first_bit(const char *name)
{
	int fd = open(name, O_RDWR);
	uint8_t byte;

	CHECK(fd >= 0 && pread(fd, &byte, 1, 0) == 1);
	byte ^= 1;
	CHECK(pwrite(fd, &byte, 1, 0) == 1 && !close(fd));
}

/* The writer counts the pages in the same moment. */
static void a_page_dropped_at_once_counts_once(void)
{
	struct counted *inner;
	struct source *s;

	fill_tier();
	for (unsigned i = 0; i < 500; i++) {
		each_file(".data", flip_first_bit);
		s = open_tier(0, &inner);
		read_some(s, 0, 1, 0);
		CHECK(stats_of(s).dropped == 1);
		CHECK(is_complete(s));
		source_close(s);
	}
	remove_dir(dir);
}

/* In the head a flipped bit costs the tier, elsewhere at most a page. */
static void flipped_bits_of_the_index_are_harmless(void)
{
	struct counted *inner;
	struct source *s;

	fill_tier();
	for (unsigned i = 0; i < 40; i++) {
		each_file(".index", flip_bit);
		s = open_tier(0, &inner);
		read_epoch(s, false);
		settle(s);
		CHECK(is_complete(s));
		source_close(s);
	}
	remove_dir(dir);
}

static void shorten(const char *name)
{
	CHECK(!truncate(name, (off_t)random_below(SIZE)));
}

static void lengthen(const char *name)
{
	CHECK(!truncate(name, SIZE + 100000));
}

static void scramble(const char *name)
{
	int fd = open(name, O_RDWR);
	uint64_t words[PAGE / 8];
	struct rng mine = { .key = 4 }; /* other threads draw from `rng` */

	CHECK(fd >= 0);
	for (off_t at = lseek(fd, 0, SEEK_END) - PAGE; at >= 0; at -= PAGE) {
		for (size_t i = 0; i < ARRAY_LEN(words); i++)
			words[i] = rng_next(&mine);
		CHECK(pwrite(fd, words, PAGE, at) == PAGE);
	}
	CHECK(!close(fd));
}

/* The checksums that the writer clears first prove it. */
static void zero_sums(const char *name)
{
	const uint32_t none[SIZE / PAGE + 1] = { 0 };
	int fd = open(name, O_RDWR);

	CHECK(fd >= 0 && pwrite(fd, none, sizeof(none), TIER_HEAD) ==
				 (ssize_t)sizeof(none));
	CHECK(!close(fd));
}

static void *remove_pages(void *arg)
{
	(void)arg;
	each_file(".index", zero_sums);
	each_file(".data", scramble);
	return NULL;
}

static void removed_pages_are_not_trusted(void)
{
	struct counted *inner;
	pthread_t thread;
	struct source *s;

	fill_tier();
	s = open_tier(0, &inner);
	read_epoch(s, true);
	read_epoch(s, true);
	CHECK(!atomic_load(&inner->bytes));
	CHECK(!pthread_create(&thread, NULL, remove_pages, NULL));
	for (unsigned i = 0; i < 300; i++)
		read_some(s, random_below(SIZE), READ, 2);
	pthread_join(thread, NULL);
	source_close(s);
	remove_dir(dir);
}

static void scramble_sums(const char *name)
{
	uint8_t head[PAGE];
	int fd = open(name, O_RDWR);

	CHECK(pread(fd, head, PAGE, 0) == PAGE);
	scramble(name);
	CHECK(pwrite(fd, head, PAGE, 0) == PAGE && !close(fd));
}

/* While the tier is open, and before it is opened. */
static void files_may_contain_anything(void)
{
	static void (*const harms[])(const char *) = {
		shorten,
		lengthen,
		scramble,
		scramble_sums,
	};
	struct counted *inner;
	struct source *s;

	for (unsigned i = 0; i < 16; i++) {
		fill_tier();
		if (i & 4)
			each_file(i & 8 ? ".data" : ".index", harms[i & 3]);
		s = open_tier(0, &inner);
		if (!(i & 4))
			each_file(i & 8 ? ".data" : ".index", harms[i & 3]);
		read_epoch(s, false);
		source_close(s);
		remove_dir(dir);
	}
}

static int open_once(void)
{
	struct counted *inner;
	struct source *s;
	int r;

	heard.lines = 0;
	r = try_to_open("http://host/a.beton", "\"1\"", 0, &inner, &s);
	if (!r)
		source_close(s);
	CHECK(heard.lines == (r != 0));
	return r;
}

static void make_link(const char *name)
{
	CHECK(!unlink(name) && !symlink(path, name));
}

static void make_dangling(const char *name)
{
	CHECK(!unlink(name) && !symlink("/tmp/beton_disk.none", name));
}

static void make_fifo(const char *name)
{
	CHECK(!unlink(name) && !mkfifo(name, 0600));
}

static void make_directory(const char *name)
{
	CHECK(!unlink(name) && !mkdir(name, 0700));
}

static void make_writable(const char *name)
{
	CHECK(!chmod(name, 0666));
}

static void give_away(const char *name)
{
	CHECK(!chown(name, 12345, 12345));
}

static void files_of_others_are_refused(void)
{
	static void (*const harms[])(const char *) = {
		make_link,	make_dangling, make_fifo,
		make_directory, make_writable, give_away,
	};

	for (size_t i = 0; i < 2 * ARRAY_LEN(harms); i++) {
		if (harms[i / 2] == give_away && geteuid())
			continue;
		CHECK(!open_once());
		each_file(i % 2 ? ".index" : ".data", harms[i / 2]);
		CHECK(open_once() < 0);
		CHECK(strstr(heard.last, "remove it"));
		remove_dir(dir);
	}
	CHECK(access("/tmp/beton_disk.none", F_OK));
}

static void directories_of_others_are_refused(void)
{
	struct stat st;

	CHECK(!open_once());
	CHECK(!stat(dir, &st) && (st.st_mode & 0777) == 0700);
	CHECK(!chmod(dir, 0770));
	CHECK(open_once() == -EPERM && strstr(heard.last, "chmod 700"));
	CHECK(!chmod(dir, 0755) && !open_once());
	if (!geteuid()) {
		CHECK(!chown(dir, 12345, 12345));
		CHECK(open_once() == -EPERM);
		CHECK(strstr(heard.last, "user 12345"));
	}
	remove_dir(dir);
	CHECK(!symlink(path, dir));
	CHECK(open_once() == -ENOTDIR);
	CHECK(!unlink(dir));
}

static void long_urls_are_refused(void)
{
	char url[5000] = { 0 };
	struct counted *inner;
	struct source *s;

	memset(url, 'x', sizeof(url) - 1);
	CHECK(try_to_open(url, "1", 0, &inner, &s) == -ENAMETOOLONG);
	remove_dir(dir);
}

static void a_small_tier_keeps_what_it_has(void)
{
	struct counted *inner;
	struct source *s = open_tier(SIZE / 2, &inner);
	uint64_t bytes;

	read_epoch(s, true);
	settle(s);
	CHECK(!strcmp(stats_of(s).why, "the tier is full"));
	CHECK(stats_of(s).present <= SIZE / 2);
	CHECK(stats_of(s).present > SIZE / 2 - 20 * PAGE);
	for (unsigned i = 0; i < 3; i++) {
		bytes = atomic_load(&inner->bytes);
		read_epoch(s, true);
		CHECK(atomic_load(&inner->bytes) - bytes < SIZE * 0.53);
	}
	source_close(s);
	/* More is allowed now. */
	s = open_tier(0, &inner);
	read_epoch(s, true);
	settle(s);
	CHECK(stats_of(s).present == SIZE);
	source_close(s);
	remove_dir(dir);
}

static void open_version(const char *url, const char *version, uint64_t limit)
{
	struct counted *inner;
	struct source *s;

	CHECK(!try_to_open(url, version, limit, &inner, &s));
	read_epoch(s, true);
	settle(s);
	source_close(s);
}

static void old_files_make_room(void)
{
	struct counted *inner;
	struct source *s;

	open_version("http://host/a", "1", 0);
	open_version("http://host/a", "2", 0);
	CHECK(each_file(".data", NULL) == 1 && each_file(".index", NULL) == 1);
	open_version("http://host/b", "1", 0);
	CHECK(each_file(".data", NULL) == 2);
	/* The least recently opened one goes. Times of files have steps of some
	   milliseconds. */
	pause_ms(20);
	open_version("http://host/a", "2", 0);
	open_version("http://host/c", "1", 2 * SIZE + SIZE / 2);
	CHECK(each_file(".data", NULL) == 2);
	CHECK(!try_to_open("http://host/a", "2", 0, &inner, &s));
	read_epoch(s, true);
	CHECK(!atomic_load(&inner->bytes));
	/* Files that are open stay, and keep what they are allowed. */
	open_version("http://host/d", "1", SIZE);
	CHECK(each_file(".data", NULL) == 2);
	open_version("http://host/a", "3", SIZE);
	read_epoch(s, true);
	CHECK(!atomic_load(&inner->bytes));
	source_close(s);
	remove_dir(dir);
}

static void two_mounts_share_a_tier(void)
{
	struct counted *first, *second;
	struct source *a = open_tier(0, &first), *b = open_tier(0, &second);
	uint64_t bytes;

	CHECK(stats_of(a).is_writer && !stats_of(b).is_writer);
	CHECK(*stats_of(b).why);
	read_epoch(b, true);
	CHECK(atomic_load(&second->bytes) >= SIZE);
	read_epoch(a, true);
	settle(a);
	bytes = atomic_load(&second->bytes);
	read_epoch(b, true);
	CHECK(atomic_load(&second->bytes) == bytes);
	source_close(a);
	/* It becomes the writer, and repairs pages. */
	for (unsigned i = 0; i < 200 && !stats_of(b).is_writer; i++)
		pause_ms(50);
	CHECK(stats_of(b).is_writer);
	each_file(".data", flip_bit);
	read_epoch(b, true);
	settle(b);
	CHECK(stats_of(b).dropped == 1 && stats_of(b).present == SIZE);
	source_close(b);
	remove_dir(dir);
}

static void failures_of_the_server_are_passed_on(void)
{
	struct counted *inner;
	struct source *s = open_tier(0, &inner);
	uint8_t bytes[100];

	read_some(s, 0, 10 * PAGE, 1);
	settle(s);
	atomic_store(&inner->fail, -EIO);
	CHECK(ask_and_wait(s, 5 * PAGE, 10 * PAGE, 0, false) == -EIO);
	CHECK(source_read(s, bytes, 100, SIZE - 100) == -EIO);
	read_some(s, 0, 10 * PAGE, 2);
	settle(s);
	CHECK(stats_of(s).present == 10 * PAGE);
	source_close(s);
	remove_dir(dir);
}

static void requests_that_wait_are_cancelled(void)
{
	struct counted *inner;
	struct source *s = open_tier(0, &inner);
	struct source_wait wait;
	struct asked a[3];

	read_some(s, 0, 10 * PAGE, 1);
	settle(s);
	inner->holds = true;
	source_wait_init(&wait);
	for (unsigned i = 0; i < 3; i++)
		ask(s, &a[i], &wait, (uint64_t)i * 8 * PAGE, 7 * PAGE, 0, true);
	source_cancel(s, &a[0].request);
	source_cancel(s, &a[1].request);
	source_close(s);
	source_wait_idle(&wait);
	CHECK(!a[0].result || a[0].result == -ECANCELED);
	CHECK(a[1].result == -ECANCELED);
	CHECK(a[2].result == -ECANCELED);
	for (unsigned i = 0; i < 3; i++)
		free(a[i].bytes);
	source_wait_fini(&wait);
	remove_dir(dir);
}

/* The disk is slower than the link, or memory is short. */
static void a_part_of_a_large_request_is_stored(void)
{
	struct counted *inner;
	struct source *s;

	memory = 1;
	s = open_tier(0, &inner);
	CHECK(stats_of(s).memory == 5 << 20);
	CHECK(!ask_and_wait(s, 0, SIZE / PAGE * PAGE, 0, true));
	settle(s);
	CHECK(stats_of(s).present >= 4 << 20);
	read_epoch(s, true);
	settle(s);
	CHECK(stats_of(s).present == SIZE);
	source_close(s);
	memory = 0;
	s = open_tier(0, &inner);
	CHECK(stats_of(s).memory == 40 << 20);
	source_close(s);
	remove_dir(dir);
}

/* --- many threads --- */

struct crowd {
	struct source *source;
	uint64_t key;
	unsigned count;
};

static void *read_at_random(void *arg)
{
	struct crowd *c = arg;
	struct rng mine = { .key = c->key };
	uint64_t off;

	for (unsigned i = 0; i < c->count; i++) {
		off = rng_next(&mine) % SIZE;
		read_some(c->source, off,
			  1 + rng_next(&mine) %
					  (rng_next(&mine) % 8 ? READ : SIZE),
			  (unsigned)(rng_next(&mine) % 3));
	}
	return NULL;
}

/* Bits flip meanwhile, and another mount reads. */
static void many_threads_read(void)
{
	struct counted *first, *second;
	struct source *a = open_tier(0, &first), *b = open_tier(0, &second);
	struct crowd crowd[6];
	pthread_t threads[6];

	for (unsigned i = 0; i < 6; i++) {
		crowd[i] = (struct crowd){ i % 3 ? a : b, i, 150 };
		CHECK(!pthread_create(&threads[i], NULL, read_at_random,
				      &crowd[i]));
	}
	for (unsigned i = 0; i < 50; i++) {
		each_file(".data", flip_bit);
		each_file(".index", flip_bit);
		pause_ms(3);
	}
	for (unsigned i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	source_close(a);
	source_close(b);
	remove_dir(dir);
}

/* --- kills --- */

static void read_until_killed(void)
{
	struct counted *inner;
	struct source *s = open_tier(0, &inner);
	struct crowd crowd = { s, (uint64_t)clock_ns(), 100000 };

	read_at_random(&crowd);
	_exit(0);
}

/* Opens the tier as a new process does. Returns its pages. */
static uint64_t look_after_kill(void)
{
	struct tier_identity identity = { "http://host/a.beton", "\"1\"",
					  SIZE };
	struct tier_store store;
	struct counted *inner;
	uint64_t present;
	struct source *s;

	CHECK(!tier_store_open(&store, dir, 0, &identity, &hearing));
	while (tier_store_tick(&store))
		;
	present = atomic_load(&store.present);
	tier_store_close(&store);
	s = open_tier(0, &inner);
	for (unsigned i = 0; i < 10; i++)
		read_some(s, random_below(SIZE), READ, 1);
	CHECK(!stats_of(s).dropped && !heard.lines);
	source_close(s);
	return present;
}

static void a_kill_costs_nothing_that_was_written(void)
{
	const char *kills = getenv("BETON_KILLS");
	unsigned n = kills ? (unsigned)atoi(kills) : 40;
	uint64_t before = 0, now;
	pid_t child;

	for (unsigned i = 0; i < n; i++) {
		child = fork();
		CHECK(child >= 0);
		if (!child)
			read_until_killed();
		pause_ms((long)random_below(25));
		CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) > 0);
		now = look_after_kill();
		CHECK(now >= before);
		before = now;
		if (i % 10 == 9) {
			remove_dir(dir);
			before = 0;
		}
	}
	remove_dir(dir);
}

/* --- a full file system --- */

static bool mount_small(unsigned mib)
{
	char size[32];

	snprintf(size, sizeof(size), "size=%um", mib);
	CHECK(!mkdir(dir, 0700));
	if (!unshare(CLONE_NEWNS) &&
	    !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	    !mount("tmpfs", dir, "tmpfs", 0, size))
		return !chmod(dir, 0700);
	printf("skip: a full file system: cannot mount a tmpfs\n");
	CHECK(!rmdir(dir));
	return false;
}

static void write_other(const char *name, size_t size)
{
	char other[128];
	int fd;

	snprintf(other, sizeof(other), "%s/%s", dir, name);
	fd = open(other, O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	for (size_t i = 0; i < size; i += SIZE)
		if (write(fd, all, min_u64(SIZE, size - i)) < 0)
			break;
	CHECK(!close(fd));
}

static void other_files_keep_their_space(void)
{
	struct counted *inner;
	struct source *s;

	if (!mount_small(16))
		return;
	/* 5 % are left free from the beginning. */
	write_other("a", 11 << 20);
	s = open_tier(0, &inner);
	read_epoch(s, true);
	settle(s);
	CHECK(stats_of(s).present && stats_of(s).present < 4500000);
	CHECK(!strcmp(stats_of(s).why, "the tier is full"));
	/* Pages make room. */
	write_other("b", 600000);
	pause_ms(1500);
	read_epoch(s, true);
	CHECK(strstr(heard.last, "removed"));
	CHECK(!stats_of(s).dropped);
	source_close(s);
	CHECK(!umount(dir));
	remove_dir(dir);
}

static void a_full_disk_ends_filling(void)
{
	struct counted *inner;
	struct source *s;

	if (!mount_small(8))
		return;
	s = open_tier(0, &inner);
	read_some(s, 0, READ, 1);
	heard.lines = 0;
	write_other("a", 8 << 20);
	read_epoch(s, true);
	settle(s);
	CHECK(*stats_of(s).why && heard.lines >= 1);
	read_epoch(s, true);
	source_close(s);
	CHECK(!umount(dir));
	remove_dir(dir);
}

static void make_object(void)
{
	FILE *f = fopen(path, "w");

	all = malloc(SIZE);
	CHECK(all && f);
	for (size_t i = 0; i < SIZE; i++)
		all[i] = (uint8_t)rng_next(&rng);
	CHECK(fwrite(all, 1, SIZE, f) == SIZE && !fclose(f));
}

int main(void)
{
	CHECK(mkdtemp(top));
	snprintf(dir, sizeof(dir), "%s/tier", top);
	snprintf(path, sizeof(path), "%s/object", top);
	log_init(&hearing, hear, &heard);
	hearing.every = true;
	make_object();
	/* First, because it forks. */
	a_kill_costs_nothing_that_was_written();
	one_epoch_fills_the_tier();
	an_idle_link_fills_the_tier();
	readers_come_before_the_idle_link();
	reads_end_where_the_object_ends();
	flipped_bits_are_found();
	many_damaged_pages_have_few_lines();
	for (unsigned i = 0; i < 10; i++)
		removed_pages_are_not_trusted();
	a_page_dropped_at_once_counts_once();
	flipped_bits_of_the_index_are_harmless();
	files_may_contain_anything();
	files_of_others_are_refused();
	directories_of_others_are_refused();
	long_urls_are_refused();
	a_small_tier_keeps_what_it_has();
	old_files_make_room();
	two_mounts_share_a_tier();
	failures_of_the_server_are_passed_on();
	requests_that_wait_are_cancelled();
	a_part_of_a_large_request_is_stored();
	many_threads_read();
	other_files_keep_their_space();
	a_full_disk_ends_filling();
	log_fini(&hearing);
	free(all);
	remove_dir(top);
	return 0;
}
