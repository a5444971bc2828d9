/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/top/draw.h"

#include <stdarg.h>
#include <string.h>

#include "fs/util/bytes.h"

enum {
	LINE_SIZE = 512,
	CELL_SIZE = 96,
	NAME_MIN = 12,
	BAR_MIN = 5, /* between its brackets */
	BAR_MAX = 20,
	VERDICT_MIN = 10,
	VERDICT_FULL = 28, /* the longest sentence, of a rank below 1000 */
	LONG_AGO_S = 60,
};

#define REVERSE "\033[7m"
#define BOLD "\033[1m"
#define PLAIN "\033[m"

enum column {
	COLUMN_NAME,
	COLUMN_SPEED,
	COLUMN_EPOCH,
	COLUMN_BATCH,
	COLUMN_QUEUE,
	COLUMN_WAIT,
	COLUMN_FAILED,
	COLUMN_VERDICT,
	COLUMNS,
};

/* Those that stay longest are the most useful in a narrow window. */
static const struct {
	const char *title;
	int width;
	int goes; /* in this order; 0: never */
} columns[COLUMNS] = {
	[COLUMN_NAME] = { "JOB", NAME_MIN, 0 },
	[COLUMN_SPEED] = { "IMG/S", 7, 0 },
	[COLUMN_EPOCH] = { "EPOCH", 5, 3 },
	[COLUMN_BATCH] = { "BATCH", 6, 2 },
	[COLUMN_QUEUE] = { "QUEUE", BAR_MIN + 2, 4 },
	[COLUMN_WAIT] = { "WAIT", 4, 5 },
	[COLUMN_FAILED] = { "FAILED", 6, 1 },
	[COLUMN_VERDICT] = { "VERDICT", VERDICT_MIN, 0 },
};

enum { GOES = 5 };

/* A row of the table: a job, or a rank that is one of several. */
struct row {
	const struct top_job_view *job;
	const struct top_rank_view *rank; /* NULL: the job's own */
};

struct canvas {
	FILE *out;
	const struct top_look *look;
	unsigned width;	     /* of a line, at most */
	unsigned left;	     /* lines */
	int widths[COLUMNS]; /* 0: not shown */
};

/* --- lines and numbers --- */

static void put_text(struct canvas *c, const char *style, const char *text)
{
	if (!c->left)
		return;
	c->left--;
	if (!c->look->has_styles)
		style = NULL;
	fprintf(c->out, "%s%.*s%s\n", style ? style : "", (int)c->width, text,
		style ? PLAIN : "");
}

__attribute__((format(printf, 2, 3))) static void
put_line(struct canvas *c, const char *format, ...)
{
	char line[LINE_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	put_text(c, NULL, line);
}

/* In six characters or, above a million, a few more; below ten with so many
   digits behind the point. */
static const char *brief(double v, int digits, char out[CELL_SIZE])
{
	static const char units[] = " kMGTPEZ";
	unsigned i = 0;

	while (v >= 999999.5 && units[i + 2]) {
		v /= 1000;
		i++;
	}
	if (i)
		snprintf(out, CELL_SIZE, "%.0f%c", v, units[i]);
	else
		snprintf(out, CELL_SIZE, "%.*f", v > 0 && v < 9.95 ? digits : 0,
			 v);
	return out;
}

static const char *bytes(double v, char out[CELL_SIZE])
{
	static const char *const units[] = { "B",   "KiB", "MiB", "GiB",
					     "TiB", "PiB", "EiB" };
	unsigned i = 0;

	while (v >= 1023.5 && i + 1 < ARRAY_LEN(units)) {
		v /= 1024;
		i++;
	}
	snprintf(out, CELL_SIZE, "%.*f %s", i && v < 99.95, v, units[i]);
	return out;
}

static const char *duration(uint64_t s, char out[CELL_SIZE])
{
	typedef unsigned long long ull;
	ull days = s / 86400, h = s / 3600 % 24, m = s / 60 % 60;

	if (days)
		snprintf(out, CELL_SIZE, "%llu days %llu:%02llu", days, h, m);
	else
		snprintf(out, CELL_SIZE, "%llu:%02llu:%02llu", h, m,
			 (ull)(s % 60));
	return out;
}

static const char *bar(double fill, int inner, char out[CELL_SIZE])
{
	static const char full[BAR_MAX + 1] = "####################";
	static const char empty[BAR_MAX + 1] = "....................";
	int n = (int)(fill * inner + 0.5);

	snprintf(out, CELL_SIZE, "[%.*s%.*s]", n, full, inner - n, empty);
	return out;
}

/* --- what the daemon does --- */

/* The end of a path says more than its beginning. */
static void put_title(struct canvas *c, const struct top_view *v)
{
	char rest[LINE_SIZE], mount[LINE_SIZE], up[CELL_SIZE], every[CELL_SIZE];
	const struct top_reading *r = v->now;
	size_t room, n;

	*every = '\0';
	if (c->look->interval_s > 0)
		snprintf(every, sizeof(every), ", every %.3g s",
			 c->look->interval_s);
	snprintf(rest, sizeof(rest),
		 ", up %s; jobs %zu, ranks %zu, readers %zu%s",
		 duration(r->uptime_s, up), r->num_jobs, r->num_ranks,
		 r->readers, every);
	top_printable(c->look->mount, mount, sizeof(mount));
	n = strlen(mount);
	room = c->width > strlen(rest) + 16 ? c->width - strlen(rest) : 16;
	if (n > room)
		put_line(c, "...%s%s", mount + n - room + 3, rest);
	else
		put_line(c, "%s%s", mount, rest);
}

static void put_batches(struct canvas *c, const struct top_view *v)
{
	char n[CELL_SIZE], size[CELL_SIZE];

	if (v->seconds > 0)
		put_line(
			c,
			"batches  %s/s, %s/s, %.1f %% of them were not ready when asked for",
			brief(v->batches_per_s, 1, n),
			bytes(v->bytes_per_s, size),
			100 * v->batches_late_share);
	else
		put_line(c, "batches  -");
}

static void put_values(struct canvas *c, const struct top_view *v)
{
	char n[CELL_SIZE];

	if (strcmp(v->now->mode, "process"))
		put_line(
			c,
			"cache    the kernel's, which does not tell what it does");
	else if (v->seconds > 0)
		put_line(
			c,
			"values   %s/s: %.1f %% cache hits, %.1f %% late prefetches, %.1f %% misses",
			brief(v->values_per_s, 1, n), 100 * v->hit_share,
			100 * v->late_share, 100 * v->miss_share);
	else
		put_line(c, "values   -");
}

static void put_reads(struct canvas *c, const struct top_view *v)
{
	char n[CELL_SIZE], size[CELL_SIZE], by[CELL_SIZE] = "-";

	if (strcmp(v->now->mode, "process"))
		return;
	if (v->amplification > 0)
		snprintf(by, sizeof(by), "%.2f", v->amplification);
	if (v->seconds > 0)
		put_line(c, "disk     %s/s, %s reads/s, read amplification %s",
			 bytes(v->read_bytes_per_s, size),
			 brief(v->reads_per_s, 1, n), by);
	else
		put_line(c, "disk     -");
}

static void put_budget(struct canvas *c, const struct top_view *v)
{
	char used[CELL_SIZE], limit[CELL_SIZE], slots[CELL_SIZE];
	char fill[CELL_SIZE];
	const struct top_reading *r = v->now;
	double share =
		r->limit ? (double)min_u64(r->used, r->limit) / (double)r->limit
			 : 0;

	bytes((double)r->slot_bytes, slots);
	if (strcmp(r->mode, "process"))
		put_line(c, "memory   batches %s", slots);
	else
		put_line(c, "memory   %s cache %s of %s; batches %s",
			 bar(share, BAR_MAX, fill),
			 bytes((double)r->used, used),
			 bytes((double)r->limit, limit), slots);
}

/* As many lines as a window of this height can spare, the first ones most. */
static void put_head(struct canvas *c, const struct top_view *v)
{
	static void (*const lines[])(struct canvas *,
				     const struct top_view *) = {
		put_title, put_batches, put_values, put_reads, put_budget,
	};
	unsigned height = c->look->height;
	size_t n = !height || height >= 16 ? ARRAY_LEN(lines)
		   : height >= 10	   ? 3
					   : 1;

	for (size_t i = 0; i < n; i++)
		lines[i](c, v);
	if (!height || height >= 16)
		put_line(c, "%s", "");
}

/* --- the table --- */

static bool is_shown(const struct top_look *look, const struct top_job_view *j)
{
	return j->verdict != TOP_ENDED || look->shows_ended ||
	       j->now->idle_s < LONG_AGO_S;
}

/* A job of one rank is one row. */
static size_t ranks_shown(const struct top_look *look,
			  const struct top_job_view *job)
{
	return look->hides_ranks || job->now->num_ranks < 2
		       ? 0
		       : job->now->num_ranks;
}

static size_t count_rows(const struct top_view *v, const struct top_look *look)
{
	size_t n = 0;

	for (size_t i = 0; i < v->num_jobs; i++) {
		if (is_shown(look, &v->jobs[i]))
			n += 1 + ranks_shown(look, &v->jobs[i]);
	}
	return n;
}

static int longest_name(const struct top_view *v)
{
	size_t n = NAME_MIN;

	for (size_t i = 0; i < v->num_jobs; i++)
		n = max_u64(n, strlen(v->jobs[i].now->name));
	return (int)n;
}

static int sum_of(const int widths[COLUMNS])
{
	int sum = -1;

	for (enum column i = 0; i < COLUMNS; i++)
		sum += widths[i] ? widths[i] + 1 : 0;
	return sum;
}

static int take_up_to(int *spare, int most)
{
	int n = *spare < most ? *spare : most;

	*spare -= n;
	return n;
}

/* First what does not fit goes; then the sentence, names and bars get what is
   left over. */
static void lay_out(struct canvas *c, const struct top_view *v)
{
	int *w = c->widths, spare;

	for (enum column i = 0; i < COLUMNS; i++)
		w[i] = columns[i].width;
	for (int turn = 1; turn <= GOES && sum_of(w) > (int)c->width; turn++) {
		for (enum column i = 0; i < COLUMNS; i++)
			w[i] = columns[i].goes == turn ? 0 : w[i];
	}
	spare = (int)c->width - sum_of(w);
	if (spare <= 0)
		return;
	w[COLUMN_VERDICT] += take_up_to(&spare, VERDICT_FULL - VERDICT_MIN);
	w[COLUMN_NAME] += take_up_to(&spare, longest_name(v) - NAME_MIN);
	if (w[COLUMN_QUEUE])
		w[COLUMN_QUEUE] += take_up_to(&spare, BAR_MAX - BAR_MIN);
}

static bool is_left(enum column column)
{
	return column == COLUMN_NAME || column == COLUMN_QUEUE ||
	       column == COLUMN_VERDICT;
}

static void trim(char *line, int n)
{
	while (n && line[n - 1] == ' ')
		line[--n] = '\0';
}

static void put_titles(struct canvas *c)
{
	char line[LINE_SIZE];
	int n = 0;

	for (enum column i = 0; i < COLUMNS; i++) {
		if (c->widths[i])
			n += snprintf(line + n, sizeof(line) - (size_t)n,
				      is_left(i) ? "%s%-*s" : "%s%*s",
				      n ? " " : "", c->widths[i],
				      columns[i].title);
	}
	if (!c->look->has_styles)
		trim(line, n);
	put_text(c, REVERSE, line);
}

static void cell_name(const struct row *row, int width, char out[CELL_SIZE])
{
	if (row->rank)
		snprintf(out, CELL_SIZE, "  rank %llu",
			 (unsigned long long)row->rank->now->rank);
	else if (strlen(row->job->now->name) <= (size_t)width)
		snprintf(out, CELL_SIZE, "%s", row->job->now->name);
	else
		snprintf(out, CELL_SIZE, "%.*s...", width - 3,
			 row->job->now->name);
}

static void cell_verdict(const struct row *row, int width, char out[CELL_SIZE])
{
	bool in_full = true;

	do {
		if (row->rank)
			top_say_rank(row->rank, in_full, out);
		else
			top_say_job(row->job, in_full, out);
		in_full = !in_full;
	} while (!in_full && strlen(out) > (size_t)width);
}

static void cell(enum column column, const struct row *row, int width,
		 char out[CELL_SIZE])
{
	const struct top_rank_view *r =
		row->rank ? row->rank : &row->job->worst;
	uint64_t failed =
		row->rank ? row->rank->now->failed_rows : row->job->failed_rows;
	double speed = row->rank ? r->samples_per_s : row->job->samples_per_s;

	strcpy(out, "-");
	if (column == COLUMN_NAME)
		cell_name(row, width, out);
	else if (column == COLUMN_VERDICT)
		cell_verdict(row, width, out);
	else if (column == COLUMN_FAILED && row->job->now->num_ranks)
		brief((double)failed, 0, out);
	else if (column == COLUMN_EPOCH && r->now)
		brief((double)r->now->epoch, 0, out);
	else if (column == COLUMN_BATCH && r->now)
		brief((double)r->now->number, 0, out);
	else if (column == COLUMN_SPEED && r->is_active)
		brief(speed, 1, out);
	else if (column == COLUMN_QUEUE && r->is_active)
		bar(r->queue_fill, width - 2, out);
	else if (column == COLUMN_WAIT && r->is_active)
		snprintf(out, CELL_SIZE, "%.0f%%", 100 * r->wait_share);
}

static void put_row(struct canvas *c, const struct row *row)
{
	bool is_bold = !row->rank && (row->job->verdict == TOP_WAITS ||
				      row->job->verdict == TOP_LATE);
	char line[LINE_SIZE], text[CELL_SIZE];
	int n = 0;

	for (enum column i = 0; i < COLUMNS; i++) {
		int w = c->widths[i];

		if (!w)
			continue;
		cell(i, row, w, text);
		n += snprintf(line + n, sizeof(line) - (size_t)n,
			      is_left(i) ? "%s%-*.*s" : "%s%*.*s", n ? " " : "",
			      w, w, text);
	}
	trim(line, n);
	put_text(c, is_bold ? BOLD : NULL, line);
}

/* From row `first` on, as many as there are lines for. */
static void put_rows(struct canvas *c, const struct top_view *v, size_t first,
		     size_t lines)
{
	size_t at = 0, end = first + lines;

	for (size_t i = 0; i < v->num_jobs && at < end; i++) {
		struct row row = { .job = &v->jobs[i] };

		if (!is_shown(c->look, row.job))
			continue;
		if (at >= first)
			put_row(c, &row);
		at++;
		for (size_t k = 0;
		     k < ranks_shown(c->look, row.job) && at < end; k++, at++) {
			row.rank = &row.job->ranks[k];
			if (at >= first)
				put_row(c, &row);
		}
	}
}

static void put_keys(struct canvas *c, size_t first, size_t seen, size_t rows)
{
	enum top_sort by = c->look->sort;
	char part[CELL_SIZE] = "";

	if (seen < rows)
		snprintf(part, sizeof(part), "%zu-%zu of %zu  ", first + 1,
			 first + seen, rows);
	put_line(
		c,
		"%sq quit  sort: n name%s s speed%s w wait%s f failed%s  r ranks  e ended",
		part, by == TOP_BY_NAME ? "*" : "",
		by == TOP_BY_SPEED ? "*" : "", by == TOP_BY_WAIT ? "*" : "",
		by == TOP_BY_FAILED ? "*" : "");
}

size_t top_draw(const struct top_view *view, const struct top_look *look,
		FILE *out)
{
	struct canvas c = {
		.out = out,
		.look = look,
		.width = look->width && look->width < LINE_SIZE - 1
				 ? look->width
				 : LINE_SIZE - 1,
		.left = look->height ? look->height : UINT32_MAX,
	};
	size_t rows = count_rows(view, look), lines, first;
	bool has_keys = look->height >= 8;

	put_head(&c, view);
	lay_out(&c, view);
	put_titles(&c);
	lines = min_u64(rows, c.left > has_keys ? c.left - has_keys : c.left);
	first = min_u64(look->first, rows - lines);
	put_rows(&c, view, first, lines);
	if (!rows && c.left > has_keys)
		put_line(&c, "nobody reads batches");
	if (has_keys)
		put_keys(&c, first, lines, rows);
	return rows - lines;
}
