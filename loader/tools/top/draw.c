/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/top/draw.h"

#include <stdarg.h>
#include <string.h>

#include "fs/base/util/bytes.h"
#include "loader/tools/top/facts.h"

enum {
	LINE_SIZE = 512,
	CELL_SIZE = 96,
	BAR_MAX = 20,
	BAR_MEMORY = 10,
	VERDICT_FULL = 28, /* the longest sentence, with a rank below 1000 */
	LONG_AGO_S = 60,
	NETWORKS_MAX = 4, /* lines; JSON has all */
};

#define REVERSE "\033[7m"
#define BOLD "\033[1m"
#define PLAIN "\033[m"

enum { GOES = 5 };

struct draw_canvas {
	FILE *out;
	const struct top_look *look;
	unsigned width; /* characters of a line, at most */
	unsigned left;	/* lines that may still be printed */
	const struct fact *columns[COLUMNS];
	int widths[COLUMNS]; /* 0: not shown */
};

/* --- lines and numbers --- */

static void put_text(struct draw_canvas *c, const char *style, const char *text)
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
put_line(struct draw_canvas *c, const char *format, ...)
{
	char line[LINE_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	put_text(c, NULL, line);
}

/* Prints a line of the head. If it is too wide, its last facts are missing,
   because the beginning of a number looks like another number. */
static void put_whole_facts(struct draw_canvas *c, char *line)
{
	while (strlen(line) > c->width) {
		char *comma = strrchr(line, ',');

		if (!comma)
			break;
		*comma = '\0';
	}
	put_text(c, NULL, line);
}

/* A line of the head: all of `facts`, or "-" without rates. */
static void put_facts(struct draw_canvas *c, const char *label,
		      const struct fact *facts, const void *thing,
		      bool is_known)
{
	char line[LINE_SIZE] = "", whole[LINE_SIZE + CELL_SIZE];
	FILE *out = is_known ? fmemopen(line, sizeof(line), "w") : NULL;

	if (out) {
		fact_text(out, facts, thing);
		fclose(out);
	}
	snprintf(whole, sizeof(whole), "%s%s", label, is_known ? line : "-");
	put_whole_facts(c, whole);
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

static const char *draw_bar(double fill, int inner, char out[CELL_SIZE])
{
	static const char full[BAR_MAX + 1] = "####################";
	static const char empty[BAR_MAX + 1] = "....................";
	int n = (int)(fill * inner + 0.5);

	snprintf(out, CELL_SIZE, "[%.*s%.*s]", n, full, inner - n, empty);
	return out;
}

/* --- what the daemon does --- */

/* Cuts a path at its beginning: the end identifies the mount. */
static void put_title(struct draw_canvas *c, const struct top_view *v)
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

static bool has_own_cache(const struct top_view *v)
{
	return !strcmp(v->now->mode, "process");
}

static void put_batches(struct draw_canvas *c, const struct top_view *v)
{
	put_facts(c, "batches  ", top_delivery_facts, v, v->has_rates);
}

static void put_values(struct draw_canvas *c, const struct top_view *v)
{
	if (!v->now->is_whole)
		put_line(
			c,
			"cache    shared with other datasets: see the directory above");
	else if (has_own_cache(v))
		put_facts(c, "values   ", top_value_facts, v, v->has_rates);
	else
		put_line(
			c,
			"cache    the page cache of the kernel, which has no statistics");
}

static void put_reads(struct draw_canvas *c, const struct top_view *v)
{
	if (v->now->is_whole && has_own_cache(v))
		put_facts(c, "disk     ", top_disk_facts, v, v->has_rates);
}

/* A line for each of the first datasets behind URLs. */
static void put_networks(struct draw_canvas *c, const struct top_view *v)
{
	size_t n = min_u64(v->num_networks, NETWORKS_MAX);

	for (size_t i = 0; i < n; i++)
		put_facts(c, "network  ", top_network_facts, &v->networks[i],
			  true);
	if (v->num_networks > n)
		put_line(c, "         and %zu more datasets behind URLs",
			 v->num_networks - n);
}

/* Returns the bytes of a purpose that are in use. The budget counts a cache by
   its limit. */
static uint64_t bytes_in_use(const struct top_reading *r, unsigned use)
{
	return use == BUDGET_CACHE ? r->used : r->budget_by[use];
}

/* Returns their sum. */
static uint64_t print_uses(const struct top_reading *r, char line[LINE_SIZE])
{
	static const char *const names[BUDGET_USES] = {
#define NAME(use, name, help, bulk) [use] = (name),
		BUDGET_ROWS(NAME)
#undef NAME
	};
	char number[FACT_NUMBER_SIZE];
	uint64_t sum = 0;
	size_t n = 0;

	*line = '\0';
	for (unsigned i = 0; i < BUDGET_USES; i++) {
		uint64_t bytes = bytes_in_use(r, i);

		sum += bytes;
		if (bytes && n < LINE_SIZE)
			n += (size_t)snprintf(
				line + n, LINE_SIZE - n, "%s %s %s",
				n ? "," : ":", names[i],
				fact_bytes((double)bytes, number));
	}
	return sum;
}

static void put_budget(struct draw_canvas *c, const struct top_view *v)
{
	char fill[CELL_SIZE], line[LINE_SIZE], whole[2 * LINE_SIZE];
	char used[FACT_NUMBER_SIZE], limit[FACT_NUMBER_SIZE];
	const struct top_reading *r = v->now;
	double most = (double)r->budget_limit;
	double sum = (double)min_u64(print_uses(r, line), r->budget_limit);

	if (!r->is_whole || !r->budget_limit)
		return;
	snprintf(whole, sizeof(whole), "memory   %s %s of %s%s",
		 draw_bar(sum / most, BAR_MEMORY, fill), fact_bytes(sum, used),
		 fact_bytes(most, limit), line);
	put_whole_facts(c, whole);
}

/* Prints the first lines of the head, as many as the height permits. */
static void put_head(struct draw_canvas *c, const struct top_view *v)
{
	static void (*const lines[])(struct draw_canvas *,
				     const struct top_view *) = {
		put_title, put_batches,	 put_values,
		put_reads, put_networks, put_budget,
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

/* A job with a single rank has no rows of ranks. */
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

static int sum_of_widths(const int widths[COLUMNS])
{
	int sum = -1;

	for (enum top_column i = COLUMN_NAME; i < COLUMNS; i++)
		sum += widths[i] ? widths[i] + 1 : 0;
	return sum;
}

static int take_up_to(int *spare, int most)
{
	int n = *spare < most ? *spare : most;

	*spare -= n;
	return n;
}

/* Drops columns until the line fits. Then widens the sentence, the names and
   the bars, in this order. */
static void lay_out(struct draw_canvas *c, const struct top_view *v)
{
	int *w = c->widths, spare;

	for (const struct fact *f = top_row_facts; f->type != FACT_END; f++) {
		c->columns[f->place] = f;
		w[f->place] = f->width;
	}
	for (int turn = 1; turn <= GOES && sum_of_widths(w) > (int)c->width;
	     turn++) {
		for (enum top_column i = COLUMN_NAME; i < COLUMNS; i++)
			w[i] = c->columns[i]->goes == turn ? 0 : w[i];
	}
	spare = (int)c->width - sum_of_widths(w);
	if (spare <= 0)
		return;
	w[COLUMN_VERDICT] += take_up_to(&spare, VERDICT_FULL - VERDICT_MIN);
	w[COLUMN_NAME] += take_up_to(&spare, longest_name(v) - NAME_MIN);
	if (w[COLUMN_QUEUE])
		w[COLUMN_QUEUE] += take_up_to(&spare, BAR_MAX - BAR_MIN);
}

static bool is_left_aligned(enum top_column column)
{
	return column == COLUMN_NAME || column == COLUMN_QUEUE ||
	       column == COLUMN_VERDICT;
}

static void trim_line(char *line, int n)
{
	while (n && line[n - 1] == ' ')
		line[--n] = '\0';
}

static void put_titles(struct draw_canvas *c)
{
	char line[LINE_SIZE];
	int n = 0;

	for (enum top_column i = COLUMN_NAME; i < COLUMNS; i++) {
		if (c->widths[i])
			n += snprintf(line + n, sizeof(line) - (size_t)n,
				      is_left_aligned(i) ? "%s%-*s" : "%s%*s",
				      n ? " " : "", c->widths[i],
				      c->columns[i]->title);
	}
	if (!c->look->has_styles)
		trim_line(line, n);
	put_text(c, REVERSE, line);
}

static void cell_name(const struct top_row *row, int width, char out[CELL_SIZE])
{
	if (row->rank)
		snprintf(out, CELL_SIZE, "  rank %llu",
			 (unsigned long long)row->now.rank);
	else if (strlen(row->name) <= (size_t)width)
		snprintf(out, CELL_SIZE, "%s", row->name);
	else
		snprintf(out, CELL_SIZE, "%.*s...", width - 3, row->name);
}

static void cell_verdict(const struct top_row *row, int width,
			 char out[CELL_SIZE])
{
	bool in_full = true;

	do {
		if (row->rank)
			top_describe_rank(row->rank, in_full, out);
		else
			top_describe_job(row->job, in_full, out);
		in_full = !in_full;
	} while (!in_full && strlen(out) > (size_t)width);
}

static void draw_cell(const struct fact *column, const struct top_row *row,
		      int width, char out[CELL_SIZE])
{
	if (column->place == COLUMN_NAME)
		cell_name(row, width, out);
	else if (column->place == COLUMN_VERDICT)
		cell_verdict(row, width, out);
	else if (column->place == COLUMN_QUEUE && row->seen.is_active)
		draw_bar(row->seen.queue_fill, width - 2, out);
	else
		fact_cell(column, row, out, CELL_SIZE);
}

static void put_row(struct draw_canvas *c, const struct top_view *v,
		    const struct top_job_view *job,
		    const struct top_rank_view *rank)
{
	bool is_bold = !rank && (job->verdict == TOP_WAITS ||
				 job->verdict == TOP_STALLED);
	char line[LINE_SIZE], text[CELL_SIZE];
	struct top_row row;
	int n = 0;

	top_row_fill(v, job, rank, &row);
	for (enum top_column i = COLUMN_NAME; i < COLUMNS; i++) {
		int w = c->widths[i];

		if (!w)
			continue;
		draw_cell(c->columns[i], &row, w, text);
		n += snprintf(line + n, sizeof(line) - (size_t)n,
			      is_left_aligned(i) ? "%s%-*.*s" : "%s%*.*s",
			      n ? " " : "", w, w, text);
	}
	trim_line(line, n);
	put_text(c, is_bold ? BOLD : NULL, line);
}

/* Prints at most `lines` rows, from row `first` on. */
static void put_rows(struct draw_canvas *c, const struct top_view *v,
		     size_t first, size_t lines)
{
	size_t at = 0, end = first + lines;

	for (size_t i = 0; i < v->num_jobs && at < end; i++) {
		const struct top_job_view *job = &v->jobs[i];

		if (!is_shown(c->look, job))
			continue;
		if (at++ >= first)
			put_row(c, v, job, NULL);
		for (size_t k = 0; k < ranks_shown(c->look, job) && at < end;
		     k++) {
			if (at++ >= first)
				put_row(c, v, job, &job->ranks[k]);
		}
	}
}

static void put_keys(struct draw_canvas *c, size_t first, size_t seen,
		     size_t rows)
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
	struct draw_canvas c = {
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
		put_line(&c, "no process reads batches");
	if (has_keys)
		put_keys(&c, first, lines, rows);
	return rows - lines;
}
