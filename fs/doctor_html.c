/* SPDX-License-Identifier: Apache-2.0 */
/* The report as one page: no scripts, no fonts, no pictures from elsewhere. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/doctor_report.h"
#include "fs/outfile.h"
#include "fs/scope.h"

enum {
	WIDTH = 760, /* of pictures, in pixels */
	NAME = 190,  /* of it for what a bar is called */
	NUMBER = 130,
	ROW = 26,
	NAME_MAX_SHOWN = 26,
};

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<title>beton doctor</title>\n<style>\n"
	"body{font:15px/1.45 system-ui,sans-serif;color:#1d2430;background:#fff;"
	"max-width:800px;margin:2em auto;padding:0 1em}\n"
	"h1{font-size:1.3em}h2{font-size:1.05em;margin-top:2em}\n"
	".verdict{border-left:6px solid #b4451f;background:#fbf1ec;"
	"padding:.7em 1em;margin:1em 0}\n"
	".verdict.well{border-color:#2c7a4b;background:#edf7f0}\n"
	".verdict b{font-size:1.2em}\n"
	"table{border-collapse:collapse;width:100%}\n"
	"td,th{text-align:left;vertical-align:top;padding:.35em .6em;"
	"border-bottom:1px solid #dde1e8}\n"
	"td.n{white-space:nowrap;text-align:right}\n"
	"code{font:13px ui-monospace,monospace;background:#f2f4f7;"
	"padding:0 .2em;overflow-wrap:anywhere}\n"
	"small{color:#5b6575}svg{display:block;max-width:100%;height:auto}\n"
	"svg text{font:13px system-ui,sans-serif;fill:#1d2430}\n"
	"@media(prefers-color-scheme:dark){body{color:#e4e8ef;background:#14181f}"
	"svg text{fill:#e4e8ef}code{background:#232a35}"
	".verdict{background:#33221b}.verdict.well{background:#17301f}"
	"td,th{border-color:#333b48}small{color:#9aa5b5}}\n"
	"</style></head><body>\n";

/* Text of others: names of files, pipelines, GPUs. */
static void escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
		}
	}
}

/* --- pictures ------------------------------------------------------------ */

struct bar {
	char name[64];
	char number[48];
	double value;
	bool marked;
};

static void draw_bar(FILE *out, const struct bar *b, int row, double most)
{
	double room = WIDTH - NAME - NUMBER;
	double share = most > 0 ? fmin(fmax(b->value / most, 0), 1) : 0;
	char name[64];

	snprintf(name, sizeof(name), "%.*s", NAME_MAX_SHOWN, b->name);
	fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", NAME - 8,
		row * ROW + 18);
	escaped(out, name);
	fprintf(out,
		"</text><rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"18\" rx=\"2\" fill=\"%s\"/>"
		"<text x=\"%.1f\" y=\"%d\">",
		NAME, row * ROW + 4, fmax(share * room, 1),
		b->marked ? "#c8552b" : "#5b8bc9", NAME + share * room + 6,
		row * ROW + 18);
	escaped(out, b->number);
	fprintf(out, "</text>\n");
}

static void draw(FILE *out, const char *title, const struct bar *bars, size_t n)
{
	double most = 0;

	for (size_t i = 0; i < n; i++)
		most = fmax(most, bars[i].value);
	fprintf(out,
		"<h2>%s</h2>\n<svg role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %d %zu\" width=\"%d\">\n",
		title, title, WIDTH, n * ROW + 4, WIDTH);
	for (size_t i = 0; i < n; i++)
		draw_bar(out, &bars[i], (int)i, most);
	fprintf(out, "</svg>\n");
}

static struct bar bar(const char *name, double value, bool marked,
		      const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static struct bar bar(const char *name, double value, bool marked,
		      const char *format, ...)
{
	struct bar b = { .value = value, .marked = marked };
	va_list args;

	snprintf(b.name, sizeof(b.name), "%.60s", name);
	va_start(args, format);
	vsnprintf(b.number, sizeof(b.number), format, args);
	va_end(args);
	return b;
}

static void draw_ladder(FILE *out, const struct evidence *e)
{
	struct bar bars[RUNGS];
	size_t n = 0;

	for (enum rung r = RUNG_ALL; r < RUNGS; r++) {
		const struct figure *f = &e->ladder[r];

		if (f->known && (r != RUNG_TRANSFORM || e->on_gpu))
			bars[n++] = bar(report_rung(r), f->rate, r == RUNG_ALL,
					"%.0f/s", f->rate);
	}
	draw(out, "The ladder, samples a second", bars, n);
}

static void draw_shares(FILE *out, const struct evidence *e)
{
	struct stage_share s[SHARES_MAX];
	size_t n = report_shares(e, s);
	struct bar bars[SHARES_MAX];

	for (size_t i = 0; i < n; i++)
		bars[i] = bar(s[i].name, s[i].us, false, "%.0f us, %.0f %%",
			      s[i].us, 100 * s[i].share);
	draw(out, "CPU time of a sample", bars, n);
}

/* It is the short ones that matter. */
static void draw_limits(FILE *out, const struct evidence *e)
{
	enum term least = TERMS;
	double rate = model_rate(&e->model, &least);
	struct bar bars[TERMS];
	size_t n = 0;

	for (enum term t = 0; t < TERMS; t++) {
		double r = model_term(&e->model, t);

		if (isfinite(r))
			bars[n++] = bar(report_term(t), fmin(r, 5 * rate),
					t == least, "%.0f/s", r);
	}
	draw(out,
	     "What each resource can carry (bars end at five times the least)",
	     bars, n);
}

static void draw_ops(FILE *out, const struct evidence *e)
{
	struct bar bars[DOCTOR_OPS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < e->num_ops; i++) {
		double us =
			e->ladder[RUNG_ALL].cpu_us - e->ops[i].without.cpu_us;

		if (e->ops[i].without.known)
			bars[n++] = bar(e->ops[i].written, fmax(us, 0), false,
					"%.0f us", us);
	}
	if (n)
		draw(out, "CPU time saved without one operation", bars, n);
}

static void draw_sweep(FILE *out, const struct evidence *e)
{
	struct bar bars[DOCTOR_SWEEP_MAX];
	char name[32];
	size_t n = 0;

	for (size_t i = 0; i < e->num_sweep; i++) {
		const struct sweep_point *p = &e->sweep[i];

		if (!p->figure.known)
			continue;
		snprintf(name, sizeof(name), "%u worker%s", p->workers,
			 p->workers == 1 ? "" : "s");
		bars[n++] = bar(name, p->figure.rate,
				p->workers == (unsigned)e->model.workers,
				"%.0f/s", p->figure.rate);
	}
	if (n)
		draw(out, "Workers", bars, n);
}

/* --- text ---------------------------------------------------------------- */

static void write_fixes(FILE *out, const struct diagnosis *d)
{
	fprintf(out, "<h2>What could be done</h2>\n");
	if (!d->num_fixes) {
		fprintf(out,
			"<p>No setting that is known here would gain anything.</p>\n");
		return;
	}
	fprintf(out,
		"<table><tr><th>gain</th><th>how</th><th>cost</th></tr>\n");
	for (size_t i = 0; i < d->num_fixes; i++) {
		const struct fix *f = &d->fixes[i];

		fprintf(out, "<tr><td class=\"n\">&times; %.2f</td><td><code>",
			f->gain);
		escaped(out, f->option);
		fprintf(out, "</code><br><small>");
		escaped(out, f->why);
		fprintf(out, "</small></td><td>");
		escaped(out, f->cost);
		fprintf(out, "</td></tr>\n");
	}
	fprintf(out, "</table>\n");
}

static void write_verdict(FILE *out, const struct diagnosis *d)
{
	bool well = !strcmp(d->verdict.name, "not data");

	fprintf(out, "<div class=\"verdict%s\"><b>", well ? " well" : "");
	escaped(out, d->verdict.name);
	if (*d->verdict.cause)
		fprintf(out, " (%s)", d->verdict.cause);
	fprintf(out, "</b><br>");
	escaped(out, d->verdict.text);
	fprintf(out, ".</div>\n");
}

/* What the text has besides, as it stands there. */
static void write_facts(FILE *out, const struct evidence *e)
{
	fprintf(out,
		"<h2>What was looked at</h2>\n<table><tr><td>dataset</td><td><code>");
	escaped(out, e->path);
	fprintf(out, "</code>, %.0f samples, %.1f MB, on ", e->model.samples,
		1e-6 * (double)e->file_size);
	escaped(out, e->disk.source);
	fprintf(out, " (%s)</td></tr>\n<tr><td>pipeline</td><td><code>",
		e->disk.type);
	escaped(out, e->pipeline);
	fprintf(out, "</code></td></tr>\n<tr><td>spec</td><td><code>");
	escaped(out, e->spec);
	fprintf(out,
		"</code></td></tr>\n<tr><td>machine</td><td>%u CPUs, %u allowed, %.1f cores; others had %.2f; %.1f GB of memory free; copies %.1f GB/s</td></tr>\n",
		e->cpu.online, e->cpu.allowed, machine_cpu_cores(&e->cpu),
		e->others, 1e-9 * (double)e->memory.size.available,
		1e-9 * e->memory_rate);
	if (e->watch.known)
		fprintf(out,
			"<tr><td>trainer</td><td>main thread busy %.0f %%, loader %.2f cores, %.0f samples/s</td></tr>\n",
			100 * e->watch.main_busy, e->watch.loader_cores,
			e->watch.rate);
	for (size_t i = 0; i < e->num_notes; i++) {
		fprintf(out, "<tr><td>note</td><td>");
		escaped(out, e->notes[i]);
		fprintf(out, "</td></tr>\n");
	}
	fprintf(out, "</table>\n");
}

static void write_page(FILE *out, const struct diagnosis *d)
{
	fputs(head, out);
	fprintf(out,
		"<h1>Why this training is slow, and what would help</h1>\n");
	write_verdict(out, d);
	draw_limits(out, d->evidence);
	draw_ladder(out, d->evidence);
	draw_shares(out, d->evidence);
	write_fixes(out, d);
	draw_ops(out, d->evidence);
	draw_sweep(out, d->evidence);
	write_facts(out, d->evidence);
	fprintf(out,
		"<p><small>beton-doctor(1) explains each of these.</small></p>\n</body></html>\n");
}

int report_html(const struct diagnosis *d, const char *path, struct log *log)
{
	cleanup_free char *text = NULL;
	struct outfile *f = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (!out)
		return -ENOMEM;
	write_page(out, d);
	if (fclose(out))
		return -ENOMEM;
	r = outfile_open(path, log, &f);
	r = r ? r : outfile_write(f, text, size, 0);
	if (!r)
		return outfile_publish(&f);
	outfile_abort(&f);
	return r;
}
