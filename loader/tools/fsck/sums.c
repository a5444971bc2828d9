/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/fsck/sums.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/crc32c.h"
#include "fs/data/dataset/dataset.h"
#include "fs/data/dataset/sums.h"
#include "loader/tools/fsck/scan.h"

typedef unsigned long long ull;

/* Entries in bad blocks whose values get the name of their field. */
enum { ENTRIES_MAX = 1 << 16 };

struct bad_block {
	uint64_t number;
	uint32_t crc;
};

struct sums_check {
	struct target *t;
	struct sums *side;     /* to compare with, or NULL */
	struct sums *made;     /* to write, or NULL */
	uint64_t pos;	       /* bytes so far */
	uint32_t crc;	       /* of the block that is not complete */
	struct bad_block *bad; /* owned, ascending */
	size_t num_bad;
	struct format_entry *entries; /* in bad blocks */
	size_t num_entries;
};

/* --- opening ------------------------------------------------------------- */

static int load_side(struct sums_check *s)
{
	struct target *t = s->t;
	uint64_t size = (uint64_t)t->source->stat.st_size;
	int r = sums_load(t->given, NULL, NULL, &s->side);

	if (r == -BETON_ECORRUPT) {
		report_file(t->report, CHECK_SUMS_FILE, 0,
			    "the file of checksums is damaged");
		return 0;
	}
	if (r && r != -ENOENT)
		log_error(t->log, "%s: its file of checksums: %s",
			  t->source->path, strerror(-r));
	if (r || s->side->size == size)
		return r;
	report_file(
		t->report, CHECK_SUMS_FILE, 0,
		"the checksums are of a file of %llu bytes, this one has %llu",
		(ull)s->side->size, (ull)size);
	sums_free(steal(s->side));
	return 0;
}

int sums_check_open(struct target *t, enum sums_use use,
		    struct sums_check **out)
{
	struct sums_check *s = calloc(1, sizeof(*s));
	int r = -ENOENT;

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->t = t;
	if (use != SUMS_RENEW)
		r = load_side(s);
	if (r == -ENOENT)
		r = use == SUMS_VERIFY ? 0 : sums_new(&s->made);
	if (!r && (s->side || s->made))
		*out = s;
	else
		sums_check_close(s);
	return r;
}

void sums_check_close(struct sums_check *s)
{
	if (!s)
		return;
	sums_free(s->side);
	sums_free(s->made);
	free(s->bad);
	free(s->entries);
	free(s);
}

/* --- blocks -------------------------------------------------------------- */

static int end_block(struct sums_check *s)
{
	uint64_t number = (s->pos - 1) / SUMS_BLOCK;
	size_t n = s->num_bad;

	if (s->side->crc[number] == s->crc)
		return 0;
	if (!(n & (n - 1))) {
		void *more = realloc(s->bad, (n ? 2 * n : 1) * sizeof(*s->bad));

		if (!more)
			return -ENOMEM;
		s->bad = more;
	}
	s->bad[s->num_bad++] = (struct bad_block){ number, s->crc };
	return 0;
}

static int compare(struct sums_check *s, const uint8_t *bytes, size_t size)
{
	size_t n;
	int r = 0;

	for (; size && !r; bytes += n, size -= n) {
		n = min_u64(size, SUMS_BLOCK - s->pos % SUMS_BLOCK);
		s->crc = crc32c(s->pos % SUMS_BLOCK ? s->crc : 0, bytes, n);
		s->pos += n;
		if (s->pos % SUMS_BLOCK == 0 || s->pos == s->side->size)
			r = end_block(s);
	}
	return r;
}

int sums_check_bytes(struct sums_check *s, const uint8_t *bytes, size_t size)
{
	return s->side ? compare(s, bytes, size)
		       : sums_add(s->made, bytes, size);
}

int sums_check_file(struct sums_check *s)
{
	uint64_t size = (uint64_t)s->t->source->stat.st_size, n;
	cleanup_free uint8_t *bytes = malloc(SUMS_BLOCK);
	int r = bytes ? 0 : -ENOMEM;

	for (uint64_t at = 0; at < size && !r; at += n) {
		n = min_u64(SUMS_BLOCK, size - at);
		r = target_read(s->t, bytes, n, at);
		r = r ? r : sums_check_bytes(s, bytes, n);
		r = r ? r : target_poll(s->t, n);
	}
	return r;
}

/* --- the report ---------------------------------------------------------- */

/* Returns the first bad block with a byte of the range, or NULL. */
static const struct bad_block *find_bad(const struct sums_check *s,
					uint64_t off, uint64_t size)
{
	size_t low = 0, high = s->num_bad;
	uint64_t first = off / SUMS_BLOCK;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->bad[mid].number < first)
			low = mid + 1;
		else
			high = mid;
	}
	if (!size || low == s->num_bad ||
	    s->bad[low].number > (off + size - 1) / SUMS_BLOCK)
		return NULL;
	return &s->bad[low];
}

static void report_value(struct sums_check *s, uint64_t sample, uint32_t field,
			 uint64_t off, uint64_t size, const char *what)
{
	const struct bad_block *b = find_bad(s, off, size);
	struct finding f = {
		.check = CHECK_SUMS_VALUE,
		.sample = sample,
		.field = field,
		.off = off,
		.size = size,
	};

	if (!b)
		return;
	snprintf(f.why, sizeof(f.why), "its %s has bytes in bad block %llu",
		 what, (ull)b->number);
	report_add(s->t->report, &f);
}

static void on_entry(void *arg, const struct format_entry *e)
{
	struct sums_check *s = arg;

	if (!find_bad(s, e->off, e->size))
		return;
	if (s->num_entries < ENTRIES_MAX)
		s->entries[s->num_entries++] = *e;
	else if (e->sample < s->t->format.samples)
		report_value(s, e->sample, NO_FIELD, e->off, e->size, "value");
}

static int by_offset(const void *a, const void *b)
{
	const struct format_entry *x = a, *y = b;

	return x->off < y->off ? -1 : x->off > y->off;
}

static void on_value(void *arg, const struct value_span *v)
{
	struct sums_check *s = arg;
	const struct format_entry key = { .off = v->off }, *e = NULL;
	uint64_t size = v->size;

	if (size == VALUE_SIZE_IN_TABLE) {
		e = bsearch(&key, s->entries, s->num_entries, sizeof(key),
			    by_offset);
		size = e ? e->size : 1;
	}
	report_value(s, v->sample, v->field, v->off, size, "value");
}

static void ignore_entry(void *arg, const struct format_entry *e)
{
	(void)arg;
	(void)e;
}

static void ignore_value(void *arg, const struct value_span *v)
{
	(void)arg;
	(void)v;
}

/* The table has the size of a JPEG, and the records have the fields. */
static int report_values(struct sums_check *s, struct scan *scan)
{
	const struct scan_fns entries = { on_entry, ignore_value, s };
	const struct scan_fns values = { ignore_entry, on_value, s };
	uint64_t low = s->bad[0].number * SUMS_BLOCK;
	uint64_t high = (s->bad[s->num_bad - 1].number + 1) * SUMS_BLOCK;
	int r;

	/* A value begins in the page of its last byte. */
	low -= low % s->t->format.page_size;
	s->entries = malloc(ENTRIES_MAX * sizeof(*s->entries));
	if (!s->entries)
		return -ENOMEM;
	r = scan_range(scan, low, high, &entries);
	if (r)
		return r;
	qsort(s->entries, s->num_entries, sizeof(*s->entries), by_offset);
	return scan_range(scan, low, high, &values);
}

static void report_records(struct sums_check *s, const struct bad_block *b)
{
	const struct format *f = &s->t->format;
	uint64_t low = b->number * SUMS_BLOCK, high = low + SUMS_BLOCK;
	uint64_t end = f->meta_off + f->samples * f->itemsize;

	low = max_u64(low, f->meta_off);
	high = min_u64(high, end);
	if (low >= high)
		return;
	for (uint64_t i = (low - f->meta_off) / f->itemsize;
	     i < f->samples && f->meta_off + i * f->itemsize < high; i++)
		report_value(s, i, NO_FIELD, f->meta_off + i * f->itemsize,
			     f->itemsize, "record");
}

static void report_block(struct sums_check *s, const struct bad_block *b)
{
	struct report *r = s->t->report;
	uint64_t off = b->number * SUMS_BLOCK;
	char why[SUMS_WHY_SIZE];

	snprintf(why, sizeof(why), "block %llu has another checksum",
		 (ull)b->number);
	/* It takes a while. */
	if (r->counts[CHECK_SUMS_BLOCK] < r->limit)
		sums_explain(s->side, b->number, b->crc, why);
	report_file(r, CHECK_SUMS_BLOCK, off, "%s", why);
	if (off < s->t->format.meta_off)
		report_file(
			r, CHECK_SUMS_HEAD, off,
			"the block has the header or descriptors, so these may be wrong");
	if (s->t->format.itemsize)
		report_records(s, b);
}

int sums_check_report(struct sums_check *s, struct scan *scan)
{
	struct report *r = s->t->report;

	if (!s->num_bad)
		return 0;
	/* A dataset that replaced another one of the same size. */
	if (s->num_bad > 1 && s->num_bad == s->side->num) {
		report_file(
			r, CHECK_SUMS_FILE, 0,
			"no block has its checksum: these are the checksums of another file, or of an earlier one");
		return 0;
	}
	for (size_t i = 0; i < s->num_bad; i++)
		report_block(s, &s->bad[i]);
	return scan ? report_values(s, scan) : 0;
}

int sums_check_save(struct sums_check *s, bool *written)
{
	struct dataset *ds;
	int r;

	*written = false;
	if (!s->made)
		return 0;
	r = dataset_open(s->t->source->path, NULL, s->t->log, &ds);
	if (r)
		return r;
	memcpy(s->made->fingerprint, ds->fingerprint,
	       sizeof(s->made->fingerprint));
	dataset_close(ds);
	r = sums_check_same(s->t->source->path, &s->t->source->stat, s->t->log);
	r = r ? r : sums_save(s->made, s->t->source->path, s->t->log);
	*written = !r;
	return r;
}
