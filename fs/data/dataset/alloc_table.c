/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/dataset/alloc_table.h"

#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"

enum {
	CHUNK_ENTRIES = 1 << 15,
	CHUNK_BYTES = CHUNK_ENTRIES * FORMAT_ENTRY_SIZE,
};

struct alloc_table_extent {
	uint64_t off;
	uint64_t size;
};

/* Entries [first, first + n) of the table, ascending by offset. */
struct alloc_table_run {
	uint64_t first;
	uint64_t n;
	uint64_t low; /* offsets of its first and last entry */
	uint64_t high;
	size_t key; /* index of its first key */
};

/* The first entry of a stride. */
struct alloc_table_key {
	uint64_t off;
	/* In the first stride of its run that begins with this offset: the size
	   of the largest entry at it, in this stride and those after it. */
	uint64_t largest;
};

struct alloc {
	struct source *source;
	const struct format *format;
	size_t tables; /* tables that share the memory limit */
	struct log *log;
	struct alloc_table_extent
		*extents; /* all entries if they fit into memory: sorted, the
			     largest first among equal offsets; else NULL */
	size_t num_extents;
	struct alloc_table_run *runs;
	size_t num_runs;
	struct alloc_table_key *keys; /* per run: one for each stride */
	size_t num_keys;
	size_t group; /* the first key of the last run with the offset of its
			 last key */
	/* While the table is read: the last entry's sample, and how many of its
	   entries came one after the other. */
	uint64_t sample;
	uint64_t in_succession;
};

static int by_offset(const void *a, const void *b)
{
	const struct alloc_table_extent *x = a, *y = b;

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

typedef int note_entry_fn(struct alloc *a, uint64_t i,
			  const struct format_entry *e);

/* Reads the whole table, and passes every entry on. */
static int read_table(struct alloc *a, note_entry_fn *note)
{
	uint64_t total = a->format->table_entries, n;
	cleanup_free uint8_t *bytes = malloc(CHUNK_BYTES);
	struct format_entry e;
	int r = bytes ? 0 : -ENOMEM;

	source_prefetch(a->source, a->format->table_off,
			total * FORMAT_ENTRY_SIZE);
	for (uint64_t first = 0; first < total && !r; first += n) {
		n = min_u64(CHUNK_ENTRIES, total - first);
		r = read_entries(a, first, (size_t)n, bytes);
		for (uint64_t i = 0; i < n && !r; i++) {
			e = format_entry_parse(bytes + i * FORMAT_ENTRY_SIZE);
			r = note(a, first + i, &e);
		}
	}
	return r;
}

static int note_extent(struct alloc *a, uint64_t i,
		       const struct format_entry *e)
{
	a->extents[i] = (struct alloc_table_extent){ e->off, e->size };
	return 0;
}

static int keep_whole(struct alloc *a)
{
	size_t n = (size_t)a->format->table_entries;
	int r;

	a->extents = malloc((n + 1) * sizeof(*a->extents));
	r = a->extents ? read_table(a, note_extent) : -ENOMEM;
	if (r)
		return r;
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

static uint64_t table_bytes(const struct alloc *a)
{
	return a->format->table_entries * FORMAT_ENTRY_SIZE;
}

/* -E2BIG: there are more runs than look-ups should have to read. */
static int add_run(struct alloc *a, uint64_t entry, uint64_t off)
{
	if (a->num_runs == ALLOC_RUNS_FEW &&
	    table_bytes(a) <= ALLOC_SORT_BYTES / a->tables)
		return -E2BIG;
	if (a->num_runs == ALLOC_RUNS_MAX)
		return refuse_table(a, "ascending runs", ALLOC_RUNS_MAX);
	if (grow_array(&a->runs, a->num_runs, sizeof(*a->runs)))
		return -ENOMEM;
	a->runs[a->num_runs++] = (struct alloc_table_run){
		.first = entry,
		.low = off,
		.high = off,
		.key = a->num_keys,
	};
	return 0;
}

static int add_key(struct alloc *a, const struct alloc_table_run *run,
		   uint64_t off)
{
	if (grow_array(&a->keys, a->num_keys, sizeof(*a->keys)))
		return -ENOMEM;
	if (run->key == a->num_keys || a->keys[a->group].off != off)
		a->group = a->num_keys;
	a->keys[a->num_keys++] = (struct alloc_table_key){ .off = off };
	return 0;
}

static int index_entry(struct alloc *a, uint64_t i,
		       const struct format_entry *e)
{
	struct alloc_table_run *run =
		a->num_runs ? &a->runs[a->num_runs - 1] : NULL;
	struct alloc_table_key *key;
	int r = count_of_sample(a, e->sample);

	if (!r && (!run || e->off < run->high))
		r = add_run(a, i, e->off);
	if (r)
		return r;
	run = &a->runs[a->num_runs - 1];
	if (run->n % ALLOC_STRIDE == 0)
		r = add_key(a, run, e->off);
	if (r)
		return r;
	key = &a->keys[a->group];
	if (key->off == e->off)
		key->largest = max_u64(key->largest, e->size);
	run->high = e->off;
	run->n++;
	return 0;
}

static int take_table(struct alloc *a)
{
	int r;

	if (table_bytes(a) <= ALLOC_KEEP_BYTES / a->tables)
		return keep_whole(a);
	r = read_table(a, index_entry);
	return r == -E2BIG ? keep_whole(a) : r;
}

int alloc_open(struct source *source, const struct format *format,
	       size_t tables, struct log *log, struct alloc **out)
{
	struct alloc *a = calloc(1, sizeof(*a));
	int r = -ENOMEM;

	if (a) {
		a->source = source;
		a->format = format;
		a->tables = tables;
		a->log = log;
		r = take_table(a);
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

/* The largest entry at an offset that a search has found so far. */
struct alloc_table_search {
	uint64_t off;
	uint64_t largest;
	bool found;
};

static void note_found(struct alloc_table_search *s, uint64_t size)
{
	s->largest = max_u64(s->largest, size);
	s->found = true;
}

/* Returns the number of the run's strides that begin below `off`. */
static uint64_t strides_below(const struct alloc *a,
			      const struct alloc_table_run *run, uint64_t off)
{
	uint64_t low = 0, high = (run->n - 1) / ALLOC_STRIDE + 1, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (a->keys[run->key + mid].off < off)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Returns the number of entries of a stride; *first is the first one. */
static uint64_t stride_entries(const struct alloc_table_run *run,
			       uint64_t stride, uint64_t *first)
{
	uint64_t at = stride * ALLOC_STRIDE;

	*first = run->first + at;
	return min_u64(ALLOC_STRIDE, run->n - at);
}

static int search_stride(const struct alloc *a,
			 const struct alloc_table_run *run, uint64_t stride,
			 struct alloc_table_search *s)
{
	uint8_t bytes[ALLOC_STRIDE * FORMAT_ENTRY_SIZE];
	uint64_t first, n = stride_entries(run, stride, &first);
	int r = read_entries(a, first, (size_t)n, bytes);

	for (uint64_t i = 0; i < n && !r; i++) {
		struct format_entry e =
			format_entry_parse(bytes + i * FORMAT_ENTRY_SIZE);

		if (e.off == s->off)
			note_found(s, e.size);
	}
	return r;
}

/*
 * Equal offsets may fill any number of strides. All but the first of these
 * strides begin with the offset, and a key has the largest of their entries.
 */
static int search_run(const struct alloc *a, const struct alloc_table_run *run,
		      struct alloc_table_search *s)
{
	uint64_t strides = (run->n - 1) / ALLOC_STRIDE + 1;
	uint64_t below = strides_below(a, run, s->off);
	const struct alloc_table_key *key = &a->keys[run->key + below];

	if (below < strides && key->off == s->off)
		note_found(s, key->largest);
	return below ? search_stride(a, run, below - 1, s) : 0;
}

int alloc_size(const struct alloc *a, uint64_t off, uint64_t *size)
{
	struct alloc_table_search s = { .off = off };
	int r = 0;

	if (a->extents)
		return size_in_extents(a, off, size);
	for (size_t i = 0; i < a->num_runs && !r; i++) {
		if (off >= a->runs[i].low && off <= a->runs[i].high)
			r = search_run(a, &a->runs[i], &s);
	}
	if (r || !s.found)
		return r ? r : -ENOENT;
	*size = s.largest;
	return 0;
}

static bool is_stride_cached(const struct alloc *a,
			     const struct alloc_table_run *run, uint64_t stride)
{
	uint8_t bytes[ALLOC_STRIDE * FORMAT_ENTRY_SIZE];
	uint64_t first, n = stride_entries(run, stride, &first);

	return !source_read_cached(a->source, bytes, n * FORMAT_ENTRY_SIZE,
				   a->format->table_off +
					   first * FORMAT_ENTRY_SIZE);
}

bool alloc_is_at_hand(const struct alloc *a, uint64_t off)
{
	bool is_at_hand = true;
	uint64_t below;

	for (size_t i = 0; i < a->num_runs && !a->extents && is_at_hand; i++) {
		if (off < a->runs[i].low || off > a->runs[i].high)
			continue;
		below = strides_below(a, &a->runs[i], off);
		is_at_hand =
			!below || is_stride_cached(a, &a->runs[i], below - 1);
	}
	return is_at_hand;
}

void alloc_prefetch(const struct alloc *a, uint64_t off)
{
	uint64_t below, first, n;

	for (size_t i = 0; i < a->num_runs && !a->extents; i++) {
		if (off < a->runs[i].low || off > a->runs[i].high)
			continue;
		below = strides_below(a, &a->runs[i], off);
		if (!below)
			continue;
		n = stride_entries(&a->runs[i], below - 1, &first);
		source_prefetch(a->source,
				a->format->table_off +
					first * FORMAT_ENTRY_SIZE,
				n * FORMAT_ENTRY_SIZE);
	}
}

size_t alloc_reads(const struct alloc *a)
{
	return a->extents ? 0 : a->num_runs;
}
