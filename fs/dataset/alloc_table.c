/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/dataset/alloc_table.h"

#include <stdlib.h>

#include "fs/util/bytes.h"
#include "fs/util/cleanup.h"

enum {
	CHUNK_ENTRIES = 1 << 15,
	CHUNK_BYTES = CHUNK_ENTRIES * FORMAT_ENTRY_SIZE,
};

struct extent {
	uint64_t off;
	uint64_t size;
};

/* Entries [first, first + n) of the table, ascending by offset. */
struct run {
	uint64_t first;
	uint64_t n;
	uint64_t low; /* offsets of its first and last entry */
	uint64_t high;
	size_t key; /* index of its first key */
};

struct alloc {
	struct source *source;
	const struct format *format;
	struct log *log;
	struct extent *extents; /* of a small table: sorted, the largest first
				   among equal offsets; else NULL */
	size_t num_extents;
	struct run *runs;
	size_t num_runs;
	uint64_t *keys; /* per run: the offset of each stride's first entry */
	size_t num_keys;
	/* While the table is read: the last entry's sample, and how many of its
	   entries came one after the other. */
	uint64_t sample;
	uint64_t in_succession;
};

static int by_offset(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	return x->size > y->size ? -1 : x->size < y->size;
}

static int read_entries(const struct alloc *a, uint64_t first, size_t n,
			uint8_t *buf)
{
	return source_read(a->source, buf, n * FORMAT_ENTRY_SIZE,
			   a->format->table_off + first * FORMAT_ENTRY_SIZE);
}

static int keep_whole(struct alloc *a)
{
	size_t n = (size_t)a->format->table_entries;
	cleanup_free uint8_t *bytes = malloc(n * FORMAT_ENTRY_SIZE + 1);
	int r;

	a->extents = malloc((n + 1) * sizeof(*a->extents));
	if (!bytes || !a->extents)
		return -ENOMEM;
	r = read_entries(a, 0, n, bytes);
	if (r)
		return r;
	for (size_t i = 0; i < n; i++) {
		struct format_entry e =
			format_entry_parse(bytes + i * FORMAT_ENTRY_SIZE);

		a->extents[i] = (struct extent){ e.off, e.size };
	}
	a->num_extents = n;
	qsort(a->extents, n, sizeof(*a->extents), by_offset);
	return 0;
}

/* Makes room for one more element by doubling the array. Returns -ENOMEM. */
static int grow_array(void *array, size_t n, size_t size)
{
	void **p = array, *bigger;

	if (n & (n - 1))
		return 0;
	bigger = realloc(*p, (n ? 2 * n : 1) * size);
	if (!bigger)
		return -ENOMEM;
	*p = bigger;
	return 0;
}

static int refuse_table(const struct alloc *a, const char *what, uint64_t limit)
{
	log_error(a->log, "%s: allocation table at %llu: more than %llu %s",
		  a->source->path, (unsigned long long)a->format->table_off,
		  (unsigned long long)limit, what);
	return -BETON_ECORRUPT;
}

/* A hole of a sparse file reads as entries of sample 0. */
static int count_of_sample(struct alloc *a, uint64_t sample)
{
	if (sample != a->sample)
		a->in_succession = 0;
	a->sample = sample;
	if (a->in_succession++ < a->format->sample_entries)
		return 0;
	return refuse_table(a, "entries of one sample",
			    a->format->sample_entries);
}

static int add_run(struct alloc *a, uint64_t entry, uint64_t off)
{
	if (a->num_runs == ALLOC_RUNS_MAX)
		return refuse_table(a, "ascending runs", ALLOC_RUNS_MAX);
	if (grow_array(&a->runs, a->num_runs, sizeof(*a->runs)))
		return -ENOMEM;
	a->runs[a->num_runs++] = (struct run){
		.first = entry,
		.low = off,
		.high = off,
		.key = a->num_keys,
	};
	return 0;
}

static int note_entry(struct alloc *a, uint64_t entry, const uint8_t *bytes)
{
	struct run *run = a->num_runs ? &a->runs[a->num_runs - 1] : NULL;
	const struct format_entry e = format_entry_parse(bytes);
	uint64_t off = e.off;
	int r = count_of_sample(a, e.sample);

	if (!r && (!run || off < run->high))
		r = add_run(a, entry, off);
	if (r)
		return r;
	run = &a->runs[a->num_runs - 1];
	if (run->n % ALLOC_STRIDE == 0) {
		if (grow_array(&a->keys, a->num_keys, sizeof(*a->keys)))
			return -ENOMEM;
		a->keys[a->num_keys++] = off;
	}
	run->high = off;
	run->n++;
	return 0;
}

static int index_runs(struct alloc *a)
{
	uint64_t total = a->format->table_entries, n;
	cleanup_free uint8_t *bytes = malloc(CHUNK_BYTES);
	int r = bytes ? 0 : -ENOMEM;

	for (uint64_t first = 0; first < total && !r; first += n) {
		n = min_u64(CHUNK_ENTRIES, total - first);
		r = read_entries(a, first, (size_t)n, bytes);
		for (uint64_t i = 0; i < n && !r; i++)
			r = note_entry(a, first + i,
				       bytes + i * FORMAT_ENTRY_SIZE);
	}
	return r;
}

int alloc_open(struct source *source, const struct format *format,
	       struct log *log, struct alloc **out)
{
	struct alloc *a = calloc(1, sizeof(*a));
	int r = -ENOMEM;

	if (a) {
		a->source = source;
		a->format = format;
		a->log = log;
		r = format->table_entries * FORMAT_ENTRY_SIZE <=
				    ALLOC_KEEP_BYTES
			    ? keep_whole(a)
			    : index_runs(a);
	}
	if (!r) {
		*out = a;
		return 0;
	}
	alloc_close(a);
	return r;
}

void alloc_close(struct alloc *a)
{
	if (!a)
		return;
	free(a->extents);
	free(a->runs);
	free(a->keys);
	free(a);
}

static int size_in_extents(const struct alloc *a, uint64_t off, uint64_t *size)
{
	size_t low = 0, high = a->num_extents, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (a->extents[mid].off < off)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == a->num_extents || a->extents[low].off != off)
		return -ENOENT;
	*size = a->extents[low].size;
	return 0;
}

/* The index of the run's last stride whose first offset is below `off`, or 0.
   The first one at `off` itself is too late: equal offsets may begin in the
   stride before it. */
static uint64_t stride_of(const struct alloc *a, const struct run *run,
			  uint64_t off)
{
	uint64_t low = 0, high = (run->n - 1) / ALLOC_STRIDE, mid;

	while (low < high) {
		mid = low + (high - low + 1) / 2;
		if (a->keys[run->key + mid] < off)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

/* Searches the strides of one run that may contain `off`. */
static int size_in_run(const struct alloc *a, const struct run *run,
		       uint64_t off, uint64_t *size)
{
	uint8_t bytes[ALLOC_STRIDE * FORMAT_ENTRY_SIZE];
	uint64_t at = stride_of(a, run, off) * ALLOC_STRIDE, n;
	int r, found = -ENOENT;

	for (; at < run->n; at += ALLOC_STRIDE) {
		n = min_u64(ALLOC_STRIDE, run->n - at);
		r = read_entries(a, run->first + at, (size_t)n, bytes);
		if (r)
			return r;
		for (uint64_t i = 0; i < n; i++) {
			struct format_entry e = format_entry_parse(
				bytes + i * FORMAT_ENTRY_SIZE);

			if (e.off > off)
				return found;
			if (e.off == off && (found || e.size > *size)) {
				*size = e.size;
				found = 0;
			}
		}
	}
	return found;
}

int alloc_size(const struct alloc *a, uint64_t off, uint64_t *size)
{
	uint64_t in_run, largest = 0;
	int r, found = -ENOENT;

	if (a->extents)
		return size_in_extents(a, off, size);
	for (size_t i = 0; i < a->num_runs; i++) {
		if (off < a->runs[i].low || off > a->runs[i].high)
			continue;
		r = size_in_run(a, &a->runs[i], off, &in_run);
		if (r && r != -ENOENT)
			return r;
		if (!r) {
			found = 0;
			largest = max_u64(largest, in_run);
		}
	}
	if (!found)
		*size = largest;
	return found;
}

size_t alloc_reads(const struct alloc *a)
{
	return a->extents ? 0 : a->num_runs;
}
