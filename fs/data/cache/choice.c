/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/cache/choice.h"

#include <stdio.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/rng.h"
#include "fs/data/cache/arena.h"
#include "fs/data/cache/cold.h"

enum {
	/* A smaller process cache holds too little to be useful, and one below
	   the least size holds no batch. */
	CACHE_USEFUL = 64 << 20,
	CACHE_LEAST = 4 << 20,
	/* Pieces of the datasets that are compressed to measure the ratio. */
	PROBES = 16,
	PROBE_BYTES = 64 << 10,
};

/* All processes share the page cache, so datasets may take this part of the
   available memory. */
static const double os_share = 0.8;

/*
 * A cold tier takes memory from the cache and holds 1/ratio as many bytes in
 * it. It pays below a ratio of about two thirds (arrays and drawings: 0.1 to
 * 0.5; JPEG and photographs: 0.9 to 1).
 */
static const double cold_worth = 0.67;

static const char *const names[] = {
	[CACHE_AUTO] = "auto",
	[CACHE_OS] = "os",
	[CACHE_PROCESS] = "process",
};

const char *cache_mode_name(enum cache_mode mode)
{
	return names[mode];
}

bool cache_parse_mode(const char *text, enum cache_mode *out)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!strcmp(names[i], text)) {
			*out = (enum cache_mode)i;
			return true;
		}
	}
	return false;
}

static double gib(uint64_t bytes)
{
	return (double)bytes / (1 << 30);
}

/* The mean compression ratio of some places, which are the same for a dataset
   each time. 1 if none can be read. */
static double shrinks_to(struct dataset *const *datasets, size_t n)
{
	cleanup_free uint8_t *bytes = malloc(PROBE_BYTES);
	struct rng rng = { .key = 1 };
	double sum = 0;
	unsigned probes = 0;

	for (size_t i = 0; i < n * PROBES && bytes; i++) {
		const struct dataset *ds = datasets[i % n];
		uint64_t pages = ds->format.table_off - ds->format.first_page;

		if (pages <= PROBE_BYTES ||
		    source_read(ds->source, bytes, PROBE_BYTES,
				ds->format.first_page +
					rng_next(&rng) % (pages - PROBE_BYTES)))
			continue;
		sum += cold_probe(bytes, PROBE_BYTES);
		probes++;
	}
	return probes ? sum / probes : 1;
}

static uint64_t size_of_all(struct dataset *const *datasets, size_t n)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++) {
		if (!add_ok(bytes, datasets[i]->format.file_size, &bytes))
			return UINT64_MAX;
	}
	return bytes;
}

/* Turns half of the cache into a cold tier, if that holds more. */
static void choose_cold(struct cache_choice *t, struct dataset *const *datasets,
			size_t n, char *why, size_t size)
{
	double ratio;

	if (t->cold_size != CACHE_COLD_AUTO)
		return;
	t->cold_size = 0;
	/* Samples of it would cost a round trip each. */
	if (cache_has_remote(datasets, n))
		return;
	ratio = shrinks_to(datasets, n);
	if (ratio < cold_worth) {
		t->cold_size = t->cache_size / 2;
		t->cache_size -= t->cold_size;
	}
	snprintf(why, size, "; %s cold tier: samples shrink to %.0f %%",
		 t->cold_size ? "a" : "no", 100 * ratio);
}

/* Half of the memory, or a process's part of it: the rest is for the process and
   for others. Writes the reason if it is little. */
static uint64_t part_of(const struct memory *memory, uint32_t processes,
			char *why, size_t size)
{
	uint64_t half = memory->available / 2;
	uint64_t part =
		max_u64(CACHE_LEAST, processes ? half / processes : half);
	int n = 0;

	if (processes > 1)
		n = snprintf(why, size, "; %u processes share half of it",
			     processes);
	if (part < CACHE_USEFUL && n >= 0 && (size_t)n < size)
		snprintf(why + n, size - (size_t)n,
			 "; a cache of %.1f MiB%s is small",
			 (double)part / (1 << 20),
			 processes > 1 ? "" : ", half of it,");
	return part;
}

bool cache_has_remote(struct dataset *const *datasets, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (dataset_is_remote(datasets[i]))
			return true;
	}
	return false;
}

void cache_choose_within(struct cache_choice *t, const struct memory *memory,
			 struct dataset *const *datasets, size_t n,
			 char why[CACHE_WHY_SIZE])
{
	uint64_t bytes = size_of_all(datasets, n);
	bool is_remote = cache_has_remote(datasets, n);
	enum cache_mode mode = t->mode;
	char *end;

	if (mode == CACHE_AUTO && is_remote)
		mode = CACHE_PROCESS;
	if (mode == CACHE_AUTO)
		mode = (double)bytes <= os_share * (double)memory->available
			       ? CACHE_OS
			       : CACHE_PROCESS;
	snprintf(why, CACHE_WHY_SIZE,
		 "cache %s%s: datasets %.2f GiB, memory %.2f GiB (%s)",
		 names[mode], t->mode == mode ? " as asked" : "", gib(bytes),
		 gib(memory->available), memory->why);
	end = why + strlen(why);
	if (is_remote)
		end += snprintf(end, (size_t)(why + CACHE_WHY_SIZE - end),
				"; the kernel caches no URLs");
	if (mode == CACHE_OS && t->cache_size)
		snprintf(end, (size_t)(why + CACHE_WHY_SIZE - end),
			 "; cache_size needs cache=process, and has no effect");
	if (mode == CACHE_OS)
		t->cache_size = t->cold_size = 0;
	else if (!t->cache_size)
		t->cache_size = part_of(memory, t->processes, end,
					(size_t)(why + CACHE_WHY_SIZE - end));
	end += strlen(end);
	if (mode == CACHE_PROCESS && t->mode == CACHE_AUTO)
		choose_cold(t, datasets, n, end,
			    (size_t)(why + CACHE_WHY_SIZE - end));
	if (t->cold_size == CACHE_COLD_AUTO)
		t->cold_size = 0;
	t->mode = mode;
}

void cache_choose(struct cache_choice *t, struct dataset *const *datasets,
		  size_t n, char why[CACHE_WHY_SIZE])
{
	struct memory memory = { .available = 2 * CACHE_USEFUL,
				 .why = "unknown" };

	memory_read("", &memory);
	cache_choose_within(t, &memory, datasets, n, why);
}
