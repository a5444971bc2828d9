/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/fsck/tables.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/fsck/content.h"
#include "loader/tools/fsck/sums.h"
#include "loader/tools/fsck/window.h"

enum { BUCKETS = 4096 };

/* How many entries and values begin in each bucket of a range of offsets. */
struct tables_counts {
	uint64_t low, high;
	unsigned shift; /* a bucket has 1 << shift bytes */
	uint64_t entries[BUCKETS];
	uint64_t values[BUCKETS];
};

struct check_run {
	struct target *t;
	struct scan *scan;
	struct window window;
	struct content *content; /* NULL: tables only */
};

/* --- counting --- */

static struct tables_counts *new_counts(uint64_t low, uint64_t high)
{
	struct tables_counts *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->low = low;
	c->high = high;
	while ((high - low) >> c->shift >= BUCKETS)
		c->shift++;
	return c;
}

static void count_entry(void *arg, const struct format_entry *e)
{
	struct tables_counts *c = arg;

	c->entries[(e->off - c->low) >> c->shift]++;
}

static void count_value(void *arg, const struct value_span *v)
{
	struct tables_counts *c = arg;

	c->values[(v->off - c->low) >> c->shift]++;
}

/* --- windows --- */

static int check_window(struct check_run *run, uint64_t low, uint64_t high)
{
	int r = low < high ? window_load(&run->window, low, high) : 0;

	if (r || low >= high || !run->content)
		return r;
	return content_window(run->content, &run->window);
}

static int check_crowd(struct check_run *run, uint64_t off)
{
	int r = window_crowd(&run->window, off);

	return r || !run->content ? r
				  : content_window(run->content, &run->window);
}

static int check_counted(struct check_run *run, const struct tables_counts *c);

/* A bucket that does not fit into memory. */
static int check_bucket(struct check_run *run, uint64_t low, uint64_t high)
{
	struct tables_counts *c;
	struct scan_fns fns = { count_entry, count_value, NULL };
	int r;

	if (high - low == 1)
		return check_crowd(run, low);
	c = new_counts(low, high);
	fns.arg = c;
	r = c ? scan_range(run->scan, low, high, &fns) : -ENOMEM;
	r = r ? r : check_counted(run, c);
	free(c);
	return r;
}

/* Cuts the range into windows that fit. */
static int check_counted(struct check_run *run, const struct tables_counts *c)
{
	uint64_t room = run->window.room, start = c->low, at = c->low;
	uint64_t entries = 0, values = 0;
	int r = 0;

	for (size_t i = 0; at < c->high && !r; i++) {
		uint64_t end = min_u64(at + ((uint64_t)1 << c->shift), c->high);

		if (entries + c->entries[i] > room ||
		    values + c->values[i] > room) {
			r = check_window(run, start, at);
			start = at;
			entries = values = 0;
		}
		if (!r && max_u64(c->entries[i], c->values[i]) > room) {
			r = check_bucket(run, at, end);
			start = end;
		} else {
			entries += c->entries[i];
			values += c->values[i];
		}
		at = end;
	}
	return r ? r : check_window(run, start, c->high);
}

/* --- the whole --- */

static int check_pages(struct check_run *run)
{
	const struct format *f = &run->t->format;
	struct tables_counts *c = new_counts(f->first_page, f->table_off);
	const struct scan_fns fns = { count_entry, count_value, c };
	int r = c ? scan_first(run->scan, &fns) : -ENOMEM;

	if (!r && run->content)
		r = content_plain(run->content, 0, f->first_page);
	r = r ? r : check_counted(run, c);
	if (!r && run->content)
		r = content_plain(run->content, f->table_off, f->file_size);
	if (!r && run->t->sums)
		r = sums_check_report(run->t->sums, run->scan);
	free(c);
	return r;
}

int tables_check(struct target *t)
{
	struct check_run run = { .t = t };
	int r = scan_open(t, &run.scan);

	/* A third for the window, and as much for sorting it. */
	if (!r)
		r = window_init(&run.window, t, run.scan, t->memory / 8 * 3);
	if (!r && t->extent != CHECK_TABLES)
		r = content_open(t, &run.content);
	r = r ? r : check_pages(&run);
	if (r == -ENOMEM)
		log_error(t->log, "%s: out of memory", t->source->path);
	content_close(run.content);
	window_fini(&run.window);
	scan_close(run.scan);
	return r;
}
