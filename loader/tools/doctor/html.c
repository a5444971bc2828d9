/* SPDX-License-Identifier: Apache-2.0 */
/* The report as one page. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "loader/tools/doctor/report.h"
#include "loader/tools/ui/html.h"

static const char style[] =
#include "loader/tools/doctor/report.css.inc"
	;

static const char body[] =
#include "loader/tools/doctor/report.html.inc"
	;

/* --- pictures ------------------------------------------------------------ */

static void draw_bars(FILE *out, const char *title, const struct html_bar *bars,
		      size_t n)
{
	fprintf(out, "<h2>%s</h2>\n", title);
	html_bars(out, title, bars, n);
}

static void draw_ladder(FILE *out, const void *facts)
{
	const struct evidence *e = &((const struct facts *)facts)->e;
	struct html_bar bars[RUNGS];
	size_t n = 0;

	for (enum rung r = RUNG_ALL; r < RUNGS; r++) {
		const struct figure *f = &e->ladder[r];

		if (f->known && (r != RUNG_TRANSFORM || e->on_gpu))
			bars[n++] = html_bar(report_rung(r), f->rate,
					     r == RUNG_ALL, "%.0f/s", f->rate);
	}
	draw_bars(out, "Rate with one stage less per line", bars, n);
}

static void draw_shares(FILE *out, const void *facts)
{
	const struct evidence *e = &((const struct facts *)facts)->e;
	struct stage_share s[SHARES_MAX];
	size_t n = report_shares(e, s);
	struct html_bar bars[SHARES_MAX];

	for (size_t i = 0; i < n; i++)
		bars[i] =
			html_bar(s[i].name, s[i].us, false, "%.0f us, %.0f %%",
				 s[i].us, 100 * s[i].share);
	draw_bars(out, "CPU time per sample, by stage", bars, n);
}

/* The short bars matter, so long ones are cut. */
static void draw_limits(FILE *out, const void *facts)
{
	const struct evidence *e = &((const struct facts *)facts)->e;
	enum term least = TERMS;
	double rate = model_rate(&e->model, &least);
	struct html_bar bars[TERMS];
	size_t n = 0;

	for (enum term t = 0; t < TERMS; t++) {
		double r = model_term(&e->model, t);

		if (isfinite(r))
			bars[n++] = html_bar(report_term(t), fmin(r, 5 * rate),
					     t == least, "%.0f/s", r);
	}
	draw_bars(
		out,
		"Highest rate of each resource (bars end at five times the lowest)",
		bars, n);
}

static void draw_ops(FILE *out, const void *facts)
{
	const struct evidence *e = &((const struct facts *)facts)->e;
	struct html_bar bars[DOCTOR_OPS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < e->num_ops; i++) {
		double us =
			e->ladder[RUNG_ALL].cpu_us - e->ops[i].without.cpu_us;

		if (e->ops[i].without.known)
			bars[n++] = html_bar(e->ops[i].written, fmax(us, 0),
					     false, "%.0f us", us);
	}
	if (n)
		draw_bars(
			out,
			"CPU time per sample that you save without one operation",
			bars, n);
}

static void draw_sweep(FILE *out, const void *facts)
{
	const struct evidence *e = &((const struct facts *)facts)->e;
	struct html_bar bars[DOCTOR_SWEEP_MAX];
	char name[32];
	size_t n = 0;

	for (size_t i = 0; i < e->num_sweep; i++) {
		const struct sweep_point *p = &e->sweep[i];

		if (!p->figure.known)
			continue;
		snprintf(name, sizeof(name), "%u worker%s", p->workers,
			 p->workers == 1 ? "" : "s");
		bars[n++] = html_bar(name, p->figure.rate,
				     p->workers == (unsigned)e->model.workers,
				     "%.0f/s", p->figure.rate);
	}
	if (n)
		draw_bars(out, "Rate by number of workers", bars, n);
}

/* --- text ---------------------------------------------------------------- */

static void write_fixes(FILE *out, const void *facts)
{
	const struct diagnosis *d = ((const struct facts *)facts)->d;

	if (!d->num_fixes) {
		fprintf(out,
			"<p>The doctor found no change that makes loading faster.</p>\n");
		return;
	}
	fprintf(out,
		"<table><tr><th>gain</th><th>change</th><th>cost</th></tr>\n");
	for (size_t i = 0; i < d->num_fixes; i++)
		fact_html(out, facts_fix, &d->fixes[i]);
	fprintf(out, "</table>\n");
}

static void write_verdict(FILE *out, const void *facts)
{
	const struct diagnosis *d = ((const struct facts *)facts)->d;
	bool well = !strcmp(d->verdict.name, "not data");

	html_print(out, "<div class=\"verdict%s\"><b>%s", well ? " well" : "",
		   d->verdict.name);
	if (*d->verdict.cause)
		html_print(out, " (%s)", d->verdict.cause);
	html_print(out, "</b><br>%s.</div>\n", d->verdict.text);
}

static void write_dataset(FILE *out, const void *facts)
{
	fact_html(out, facts_head, facts);
	fact_html(out, facts_disk, facts);
}

static void write_network(FILE *out, const void *facts)
{
	if (!((const struct facts *)facts)->e.network.known)
		return;
	fputs("<tr><td>network</td><td>", out);
	fact_html(out, facts_network, facts);
	fputs("</td></tr>\n", out);
}

static void write_machine(FILE *out, const void *facts)
{
	fact_html(out, facts_cpu, facts);
	fact_html(out, facts_others, facts);
	fact_html(out, facts_memory, facts);
}

static void write_trainer(FILE *out, const void *facts)
{
	if (!((const struct facts *)facts)->e.watch.known)
		return;
	fputs("<tr><td>trainer</td><td>", out);
	fact_html(out, facts_watch, facts);
	fputs("</td></tr>\n", out);
}

static void write_notes(FILE *out, const void *facts)
{
	const struct evidence *e = &((const struct facts *)facts)->e;

	for (size_t i = 0; i < e->num_notes; i++)
		html_print(out, "<tr><td>note</td><td>%s</td></tr>\n",
			   e->notes[i]);
}

static int write_page(FILE *out, void *arg)
{
	const struct facts *f = arg;
	const struct html_part parts[] = {
		{ "verdict", .write = write_verdict },
		{ "limits", .write = draw_limits },
		{ "ladder", .write = draw_ladder },
		{ "shares", .write = draw_shares },
		{ "fixes", .write = write_fixes },
		{ "operations", .write = draw_ops },
		{ "workers", .write = draw_sweep },
		{ "dataset", .write = write_dataset },
		{ "pipeline", .text = f->e.pipeline },
		{ "spec", .text = f->e.spec },
		{ "network", .write = write_network },
		{ "machine", .write = write_machine },
		{ "trainer", .write = write_trainer },
		{ "notes", .write = write_notes },
		{ .name = NULL },
	};

	html_page(out,
		  &(struct html_page){ "beton doctor", style, body, parts, f });
	return 0;
}

int report_html(const struct diagnosis *d, const char *path, struct log *log)
{
	struct facts f;

	facts_of(d, &f);
	return html_save(path, log, write_page, &f);
}
