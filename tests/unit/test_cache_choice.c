/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/rng.h"
#include "fs/data/cache/choice.h"
#include "tests/unit/t.h"

enum { DATASETS = 16, FIRST_PAGE = 8192 };

static const uint64_t MIB = 1 << 20;
static const uint64_t HUGE_FILE = (uint64_t)1 << 60;

/* Datasets that have sizes, and pages that shrink or do not. */
struct fixture {
	struct source source; /* first */
	int result;
	bool shrinks;
	unsigned reads;
	uint64_t pages_end;
	struct dataset datasets[DATASETS];
	struct dataset *list[DATASETS];
	char why[CACHE_WHY_SIZE];
};

static int read_pages(struct source *source, void *buf, size_t size,
		      uint64_t off)
{
	struct fixture *f = (struct fixture *)source;
	struct rng rng = { .key = off };
	uint8_t *bytes = buf;

	CHECK(off >= FIRST_PAGE && range_ok(off, size, f->pages_end));
	f->reads++;
	for (size_t i = 0; i < size; i++)
		bytes[i] = f->shrinks ? (uint8_t)(i / 100)
				      : (uint8_t)rng_next(&rng);
	return f->result;
}

static const struct source_ops source_ops = { .name = "pages",
					      .read = read_pages };

static char local[] = "a.beton", remote[] = "https://h/a.beton";

static void set_up(struct fixture *f, uint64_t file_size, uint64_t pages)
{
	memset(f, 0, sizeof(*f));
	f->source.ops = &source_ops;
	f->source.path = local;
	f->pages_end = FIRST_PAGE + pages;
	for (size_t i = 0; i < DATASETS; i++) {
		f->datasets[i].source = &f->source;
		f->datasets[i].format.file_size = file_size;
		f->datasets[i].format.first_page = FIRST_PAGE;
		f->datasets[i].format.table_off = f->pages_end;
		f->list[i] = &f->datasets[i];
	}
}

static struct cache_choice choose(struct fixture *f, struct cache_choice t,
				  size_t n)
{
	cache_choose(&t, f->list, n, f->why);
	CHECK(memchr(f->why, '\0', sizeof(f->why)));
	return t;
}

static void modes_have_names(void)
{
	static const char *const wrong[] = { "",       "OS",	    "os ",
					     "proces", "processes", "none" };
	enum cache_mode mode;

	for (mode = CACHE_AUTO; mode <= CACHE_PROCESS; mode++) {
		enum cache_mode parsed;

		CHECK(cache_parse_mode(cache_mode_name(mode), &parsed));
		CHECK(parsed == mode);
	}
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		mode = CACHE_PROCESS;
		CHECK(!cache_parse_mode(wrong[i], &mode));
		CHECK(mode == CACHE_PROCESS);
	}
}

static void small_datasets_use_the_page_cache(void)
{
	struct fixture f;
	struct cache_choice t;

	set_up(&f, 4096, HUGE_FILE);
	t = choose(&f,
		   (struct cache_choice){ .cache_size = 99, .cold_size = 9 },
		   1);
	CHECK(t.mode == CACHE_OS && !t.cache_size && !t.cold_size);
	CHECK(!strncmp(f.why, "cache os: ", 10) && !f.reads);
	CHECK(strstr(f.why, "cache_size needs cache=process"));
	t = choose(&f, (struct cache_choice){ .cold_size = CACHE_COLD_AUTO },
		   0);
	CHECK(t.mode == CACHE_OS && !t.cold_size);
}

static void large_datasets_get_a_process_cache(void)
{
	struct fixture f;
	struct cache_choice t;

	set_up(&f, HUGE_FILE, 0);
	t = choose(&f, (struct cache_choice){ .cold_size = CACHE_COLD_AUTO },
		   1);
	CHECK(t.mode == CACHE_PROCESS && t.cache_size >= 64 * MIB);
	CHECK(!t.cold_size && strstr(f.why, "no cold tier"));
	/* The sum of all datasets overflows 64 bits. */
	t = choose(&f, (struct cache_choice){ .cold_size = 0 }, DATASETS);
	CHECK(t.mode == CACHE_PROCESS);
}

static void urls_get_a_process_cache(void)
{
	struct fixture f;
	struct cache_choice t;

	set_up(&f, 4096, HUGE_FILE);
	f.source.path = remote;
	f.shrinks = true;
	t = choose(&f, (struct cache_choice){ .cold_size = CACHE_COLD_AUTO },
		   1);
	CHECK(t.mode == CACHE_PROCESS && t.cache_size && !t.cold_size);
	CHECK(strstr(f.why, "the kernel caches no URLs") && !f.reads);
	t = choose(&f, (struct cache_choice){ CACHE_PROCESS, 96 * MIB, 7, 0 },
		   1);
	CHECK(t.cache_size == 96 * MIB && t.cold_size == 7);
}

/* As in a small control group: the other half is for the process itself. */
static void half_of_little_memory_is_less(void)
{
	static const uint64_t sizes[][2] = {
		/* available, cache */
		{ 64, 32 },    { 100, 50 }, { 127, 63 }, { 128, 64 },
		{ 1024, 512 }, { 8, 4 },    { 2, 4 },	 { 0, 4 },
	};
	struct memory memory = { .why = "little" };
	struct fixture f;

	set_up(&f, HUGE_FILE, HUGE_FILE);
	f.shrinks = true;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct cache_choice t = { .mode = CACHE_PROCESS,
					  .cold_size = CACHE_COLD_AUTO };

		memory.available = sizes[i][0] * MIB;
		cache_choose_within(&t, &memory, f.list, 1, f.why);
		CHECK(t.cache_size >> 20 == sizes[i][1] && !t.cold_size);
		CHECK(!strstr(f.why, " is small") == (sizes[i][1] >= 64));
		t = (struct cache_choice){ .cold_size = CACHE_COLD_AUTO };
		cache_choose_within(&t, &memory, f.list, 1, f.why);
		CHECK((t.cache_size + t.cold_size) >> 20 == sizes[i][1]);
		CHECK(!strstr(f.why, " is small") == (sizes[i][1] >= 64));
		CHECK(strstr(f.why, "a cold tier"));
		/* A size that was asked for is the user's. */
		t = (struct cache_choice){ CACHE_PROCESS, 96 * MIB, 0, 0 };
		cache_choose_within(&t, &memory, f.list, 1, f.why);
		CHECK(t.cache_size == 96 * MIB && !strstr(f.why, "small"));
	}
}

/* Processes that torchrun starts on a machine share what one would take. */
static void processes_share_the_memory(void)
{
	struct memory memory = { .available = 4096 * MIB, .why = "shared" };
	struct fixture f;

	set_up(&f, HUGE_FILE, HUGE_FILE);
	for (uint32_t n = 0; n <= 64; n++) {
		struct cache_choice t = { .mode = CACHE_PROCESS,
					  .processes = n };

		cache_choose_within(&t, &memory, f.list, 1, f.why);
		CHECK(t.cache_size == 2048 * MIB / (n ? n : 1));
		CHECK(!strstr(f.why, "processes share half") == (n < 2));
		CHECK(!strstr(f.why, " is small") ==
		      (t.cache_size >= 64 * MIB));
	}
}

static void a_request_is_granted(void)
{
	struct fixture f;
	struct cache_choice t;

	set_up(&f, HUGE_FILE, HUGE_FILE);
	t = choose(&f,
		   (struct cache_choice){ .mode = CACHE_OS, .cold_size = 5 },
		   2);
	CHECK(t.mode == CACHE_OS && !t.cache_size && !t.cold_size);
	CHECK(strstr(f.why, "cache os as asked: "));
	CHECK(!strstr(f.why, "has no effect"));
	f.shrinks = true;
	t = choose(&f,
		   (struct cache_choice){ CACHE_PROCESS, 96 * MIB,
					  CACHE_COLD_AUTO, 0 },
		   1);
	CHECK(t.mode == CACHE_PROCESS && t.cache_size == 96 * MIB);
	/* A cold tier is a choice of its own where nothing is left to us. */
	CHECK(!t.cold_size && !f.reads);
	t = choose(&f,
		   (struct cache_choice){ CACHE_PROCESS, 96 * MIB, 7 * MIB, 0 },
		   1);
	CHECK(t.cache_size == 96 * MIB && t.cold_size == 7 * MIB);
	t = choose(&f,
		   (struct cache_choice){ CACHE_AUTO, 96 * MIB, 7 * MIB, 0 },
		   1);
	CHECK(t.cache_size == 96 * MIB && t.cold_size == 7 * MIB && !f.reads);
}

static void compressible_datasets_get_a_cold_tier(void)
{
	const struct cache_choice asked = { CACHE_AUTO, 96 * MIB,
					    CACHE_COLD_AUTO, 0 };
	struct fixture f;
	struct cache_choice t;

	set_up(&f, HUGE_FILE, 100 * MIB);
	f.shrinks = true;
	t = choose(&f, asked, 2);
	CHECK(t.cache_size == 48 * MIB && t.cold_size == 48 * MIB);
	CHECK(f.reads == 32 && strstr(f.why, "a cold tier"));
	f.shrinks = false;
	t = choose(&f, asked, 2);
	CHECK(t.cache_size == 96 * MIB && !t.cold_size);
	CHECK(f.reads == 64 && strstr(f.why, "no cold tier"));
}

static void unreadable_datasets_get_no_cold_tier(void)
{
	const struct cache_choice asked = { CACHE_AUTO, 96 * MIB,
					    CACHE_COLD_AUTO, 0 };
	struct fixture f;
	struct cache_choice t;

	set_up(&f, HUGE_FILE, 100 * MIB);
	f.shrinks = true;
	f.result = -EIO;
	t = choose(&f, asked, 1);
	CHECK(f.reads && t.cache_size == 96 * MIB && !t.cold_size);
	/* Too little to look at. */
	set_up(&f, HUGE_FILE, 64 << 10);
	f.shrinks = true;
	t = choose(&f, asked, 1);
	CHECK(!f.reads && t.cache_size == 96 * MIB && !t.cold_size);
}

int main(void)
{
	modes_have_names();
	small_datasets_use_the_page_cache();
	large_datasets_get_a_process_cache();
	half_of_little_memory_is_less();
	urls_get_a_process_cache();
	processes_share_the_memory();
	a_request_is_granted();
	compressible_datasets_get_a_cold_tier();
	unreadable_datasets_get_no_cold_tier();
	return 0;
}
